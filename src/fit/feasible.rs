//! Factors that keep a cap exactly: what is left of a violation is removed by scaling the logits.

use super::factors::{Factors, norm_product};
use super::kernel::Evaluation;
use super::objective::Objective;
use super::outcome::Outcome;
use super::problem::FitError;
use super::solution::Solution;

/// What the point x reaches within the cap, where the gradient has this norm; what it took is not counted yet.
pub(super) fn feasible(
    objective: &mut Objective<'_>,
    x: &[f64],
    cap: f64,
    gradient_norm: f64,
) -> Result<Solution, FitError> {
    let factors = objective.factors(x)?;
    let factors = within_cap(objective, factors, cap);
    let Evaluation { kl_nats, max_abs_logit, logit_spread, .. } =
        objective.measure_factors(&factors);
    Ok(Solution {
        factors,
        kl_nats,
        max_abs_logit,
        logit_spread,
        outcome: Outcome::StepLimit,
        gradient_norm,
        iterations: 0,
        evaluations: 0,
    })
}

/// Scales all logits down until the largest is within the cap, with room for the rounding of
/// whoever multiplies the factors out again.
pub(super) fn within_cap(objective: &mut Objective, mut factors: Factors, cap: f64) -> Factors {
    loop {
        let reached = objective.measure_factors(&factors).max_abs_logit;
        let room = rounding(&factors);
        if reached + room <= cap || reached == 0.0 {
            return factors;
        }
        factors = factors.scaled(((cap - 2.0 * room) / reached).min(1.0 - f64::EPSILON));
    }
}

/// A bound on the rounding of one dot product in any order: d·ε·max‖q‖·max‖k‖/√d.
fn rounding(factors: &Factors) -> f64 {
    (factors.rank() + 2) as f64 * f64::EPSILON * norm_product(factors)
}
