//! The fit at one cap: minimise kl_nats subject to |z| ≤ cap on every visible pair of every head.
//!
//! The bounds enter as an augmented Lagrangian (Nocedal and Wright, 2nd ed., framework 17.3, in its
//! form for inequalities, 17.65): stages of L-BFGS at fixed multipliers and slope, multipliers
//! updated between them, the slope raised where the violation does not fall. What is left of the
//! violation is removed by scaling the logits, so the cap holds exactly at the end.

use super::curvature::Preconditioner;
use super::factors::Factors;
use super::lbfgs::{self, Ending, Minimum, Stopping};
use super::objective::Objective;
use super::penalty::Penalty;
use super::problem::FitError;

/// How hard a fit tries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// L-BFGS iterations of one fit at one cap, all stages together, at most.
    pub iterations: usize,
    /// Augmented-Lagrangian stages at most.
    pub stages: usize,
    /// A stage ends when ten iterations lower its value by less than this share.
    pub relative_decrease: f64,
    /// The fit has converged when the cap is exceeded by less than this share before scaling.
    pub violation: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { iterations: 3000, stages: 12, relative_decrease: 1e-4, violation: 2e-3 }
    }
}

/// How a fit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A stationary point within tolerance.
    Converged,
    /// The iterations ran out first; the best point is kept.
    StepLimit,
    /// The objective became NaN or infinite; the last finite point is kept.
    Diverged,
    /// No factors can do it: the heads do not see all of the target, or no cap tried reached the
    /// tolerance.
    Infeasible,
}

impl Outcome {
    /// As it is written in a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::StepLimit => "step-limit",
            Self::Diverged => "diverged",
            Self::Infeasible => "infeasible",
        }
    }
}

/// Factors within a cap, with what they reach: a certificate that anyone can check.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The factors; max_abs_logit ≤ cap holds exactly.
    pub factors: Factors,
    /// Mean over rows of KL(Aᵢ ‖ Pᵢ), nats.
    pub kl_nats: f64,
    /// max |z| over visible pairs.
    pub max_abs_logit: f64,
    /// max over rows of (max − min) of the visible logits.
    pub logit_spread: f64,
    /// How the fit ended.
    pub outcome: Outcome,
    /// The largest entry of the augmented Lagrangian's gradient where it ended.
    pub gradient_norm: f64,
    /// L-BFGS iterations spent on this fit.
    pub iterations: usize,
    /// Evaluations of objective and gradient spent on this fit.
    pub evaluations: usize,
}

/// The penalty's first slope, in nats a squared logit: the violation of the first stage is about
/// (probability mass wanted there) / slope.
pub(super) const FIRST_SLOPE: f64 = 0.1;
/// What the slope is multiplied by where the violation fell by less than half.
pub(super) const SLOPE_GROWTH: f64 = 4.0;

/// Fits at `cap` from `start`.
pub(super) fn fit(
    objective: &mut Objective,
    start: &Factors,
    cap: f64,
    effort: Effort,
) -> Result<Solution, FitError> {
    let problem = objective.problem();
    let (heads, n, rank) = (problem.heads(), problem.n(), problem.rank());
    let before = objective.evaluations;
    let mut x = start.to_vector();
    let mut penalty = Penalty::new(problem, cap, FIRST_SLOPE);
    let (mut iterations, mut gradient_norm) = (0, f64::INFINITY);
    let mut violation = f64::INFINITY;
    let mut outcome = Outcome::StepLimit;
    for stage in 0..effort.stages {
        let limit = (effort.iterations - iterations).min(effort.iterations / 4);
        // Early stages only steer the multipliers.
        let decrease = effort.relative_decrease * if stage < 2 { 10.0 } else { 1.0 };
        let minimum = descend(objective, &x, &penalty, limit, decrease);
        iterations += minimum.iterations;
        if minimum.ending == Ending::NotFinite {
            outcome = Outcome::Diverged;
            break;
        }
        x = minimum.x;
        gradient_norm = minimum.gradient_norm;
        let reached = objective.measure(&x).max_abs_logit / cap - 1.0;
        if reached <= effort.violation && minimum.ending == Ending::Stationary && stage >= 2 {
            outcome = Outcome::Converged;
            break;
        }
        if iterations >= effort.iterations {
            break;
        }
        penalty.multipliers = objective.updated_multipliers(&x, &penalty);
        if reached > 0.5 * violation {
            penalty.slope *= SLOPE_GROWTH;
        }
        violation = reached;
    }
    let factors = within_cap(objective, Factors::from_vector(&x, heads, n, rank)?, cap);
    let evaluation = objective.measure(&factors.to_vector());
    Ok(Solution {
        factors,
        kl_nats: evaluation.kl_nats,
        max_abs_logit: evaluation.max_abs_logit,
        logit_spread: evaluation.logit_spread,
        outcome,
        gradient_norm,
        iterations,
        evaluations: objective.evaluations - before,
    })
}

/// One stage: the augmented Lagrangian's minimum at fixed multipliers and slope.
pub(super) fn descend(
    objective: &mut Objective,
    x: &[f64],
    penalty: &Penalty,
    iterations: usize,
    relative_decrease: f64,
) -> Minimum {
    let stopping =
        Stopping { iterations, gradient: 1e-9, relative_decrease, absolute_decrease: 1e-13 };
    lbfgs::minimise(x.to_vec(), stopping, &mut Lagrangian { objective, penalty })
}

/// The augmented Lagrangian at fixed multipliers and slope.
struct Lagrangian<'a, 'p> {
    objective: &'a mut Objective<'p>,
    penalty: &'a Penalty,
}

impl lbfgs::Smooth for Lagrangian<'_, '_> {
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self.objective.evaluate(x, Some(self.penalty), gradient).value
    }

    fn preconditioner(&mut self, x: &[f64]) -> Option<Preconditioner> {
        Preconditioner::at(self.objective.problem(), x, self.penalty)
    }
}

/// Scales all logits down until the largest is within the cap, with room for the rounding of
/// whoever multiplies the factors out again.
pub(super) fn within_cap(objective: &mut Objective, mut factors: Factors, cap: f64) -> Factors {
    loop {
        let reached = objective.measure(&factors.to_vector()).max_abs_logit;
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

/// maxᵢ‖qᵢ‖ · maxⱼ‖kⱼ‖ / √d, the greatest over heads. It depends on the gauge (Q·M and K·M⁻ᵀ give
/// the same logits), so it bounds max_abs_logit from above and says no more.
pub fn norm_product(factors: &Factors) -> f64 {
    let greatest = |m: ndarray::ArrayView2<f64>| {
        m.rows().into_iter().map(|r| r.dot(&r)).fold(0.0, f64::max).sqrt()
    };
    (0..factors.heads())
        .map(|head| {
            let (q, k) = factors.head(head);
            greatest(q) * greatest(k) / (factors.rank() as f64).sqrt()
        })
        .fold(0.0, f64::max)
}
