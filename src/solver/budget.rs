//! Limits of a fit's search.

/// How hard a fit tries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverBudget {
    /// L-BFGS iterations of one fit at one cap, all stages together, at most.
    pub iterations: usize,
    /// Augmented-Lagrangian stages at most.
    pub stages: usize,
    /// A stage ends when ten iterations lower its value by less than this share.
    pub relative_decrease: f64,
    /// The fit has converged when the cap is exceeded by less than this share before scaling.
    pub violation: f64,
}

impl Default for SolverBudget {
    fn default() -> Self {
        Self { iterations: 3000, stages: 12, relative_decrease: 1e-4, violation: 2e-3 }
    }
}
