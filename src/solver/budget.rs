//! Limits of a fit's search.

/// The limits and tolerances of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverBudget {
    /// The most L-BFGS iterations of one fit at one logit bound, all stages together.
    pub iterations: usize,
    /// The most augmented-Lagrangian stages.
    pub stages: usize,
    /// A stage ends when ten iterations lower its value by less than this share.
    pub relative_decrease: f64,
    /// The fit has converged when the bound is exceeded by less than this share before scaling.
    pub violation: f64,
}

impl Default for SolverBudget {
    fn default() -> Self {
        Self { iterations: 3000, stages: 12, relative_decrease: 1e-4, violation: 2e-3 }
    }
}
