//! The fit at one logit bound: E*(L) from one start.

use super::budget::SolverBudget;
use super::feasible::feasible;
use super::lagrangian::{Descent, Plan, Policy};
use super::lbfgs::Iterate;
use super::objective::Objective;
use super::observer::{FitHandle, FitState};
use super::problem::FitError;
use super::solution::Solution;

/// Iterations between two checks whether a fit has reached enough.
const LOOK: usize = 20;

/// Keeps the logit bound fixed.
pub(super) struct FixedCap {
    pub effort: SolverBudget,
    /// kl_nats within the bound that ends the search.
    pub enough: Option<f64>,
}

impl FixedCap {
    /// Fits at the logit bound of `from`, starting at its state.
    pub fn fit(
        mut self,
        objective: &mut Objective<'_>,
        from: FitState,
        attendance: &FitHandle<'_>,
    ) -> Result<Solution, FitError> {
        let end = Descent::run(objective, from, &mut self, Some(attendance))?;
        Ok(end.with(feasible(objective, &end.x, end.penalty.cap, end.gradient_norm)?))
    }
}

impl Policy for FixedCap {
    fn plan(&self) -> Plan {
        let SolverBudget { iterations, stages, relative_decrease, .. } = self.effort;
        Plan {
            stages,
            iterations,
            stage_iterations: iterations / 4,
            relative_decrease,
            early: 10.0,
            enough: f64::NEG_INFINITY,
            tolerated: f64::NEG_INFINITY,
        }
    }

    fn has_enough(&self, objective: &mut Objective<'_>, at: &Iterate<'_>, cap: f64) -> bool {
        let Some(enough) = self.enough.filter(|_| at.iterations.is_multiple_of(LOOK)) else {
            return false;
        };
        let Ok(factors) = objective.factors(at.x) else { return false };
        let share = (cap / objective.measure(at.x).max_abs_logit).min(1.0);
        objective.measure_factors(&factors.scaled(share)).kl_nats <= enough
    }

    fn next_cap(&mut self, _: &mut Objective<'_>, at: &Descent) -> Result<Option<f64>, FitError> {
        Ok((!at.is_minimum_within(self.effort.violation)).then_some(at.penalty.cap))
    }
}
