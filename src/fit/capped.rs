//! The fit at one cap: minimise kl_nats subject to |z| ≤ cap on every visible pair of every head.
//!
//! The bounds enter as an augmented Lagrangian (Nocedal and Wright, 2nd ed., framework 17.3, in its
//! form for inequalities, 17.65): stages of L-BFGS at fixed multipliers and slope, multipliers
//! updated between them, the slope raised where the violation does not fall. What is left of the
//! violation is removed by scaling the logits, so the cap holds exactly at the end.

use std::sync::atomic::{AtomicBool, Ordering};

use super::curvature::Preconditioner;
use super::factors::Factors;
use super::lbfgs::{self, Ending, Iterate, Minimum, Stopping};
use super::objective::Objective;
use super::penalty::Penalty;
use super::problem::FitError;
use super::watch::{FitName, FitProgress, FitState, Watch};

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
    /// It was ended from outside before either; the point it was at is kept.
    Stopped,
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
            Self::Stopped => "stopped",
            Self::Diverged => "diverged",
            Self::Infeasible => "infeasible",
        }
    }

    /// The outcome that `name` writes so.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Converged, Self::StepLimit, Self::Stopped, Self::Diverged, Self::Infeasible]
            .into_iter()
            .find(|outcome| outcome.name() == name)
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
pub(super) const FIRST_SLOPE: f64 = 0.4;
/// What the slope is multiplied by where the violation fell by less than half.
pub(super) const SLOPE_GROWTH: f64 = 4.0;

/// Fits at the cap of `from`, from there on.
pub(super) fn fit(
    objective: &mut Objective,
    from: FitState,
    effort: Effort,
    attendance: &Attendance,
) -> Result<Solution, FitError> {
    let FitState { mut x, cap, slope, multipliers, mut violation, mut iterations, .. } = from;
    let before = objective.evaluations;
    let mut penalty = Penalty { cap, slope, multipliers };
    let mut gradient_norm = f64::INFINITY;
    let mut outcome = Outcome::StepLimit;
    for stage in from.stage..effort.stages {
        let limit = effort.iterations.saturating_sub(iterations).min(effort.iterations / 4);
        // Early stages only steer the multipliers.
        let decrease = effort.relative_decrease * if stage < 2 { 10.0 } else { 1.0 };
        let ends = (limit, decrease, f64::NEG_INFINITY);
        let minimum = descend(objective, &x, &penalty, ends, &mut |objective, at| {
            let state = || FitState {
                x: at.x.to_vec(),
                cap,
                slope: penalty.slope,
                multipliers: penalty.multipliers.clone(),
                violation,
                stage,
                iterations: iterations + at.iterations,
                evaluations: from.evaluations + objective.evaluations - before,
                best: None,
            };
            attendance.goes_on(cap, iterations + at.iterations, at.value, &state)
                && !attendance.has_enough(objective, at, cap)
        });
        iterations += minimum.iterations;
        if minimum.ending == Ending::NotFinite {
            outcome = Outcome::Diverged;
            break;
        }
        x = minimum.x;
        gradient_norm = minimum.gradient_norm;
        if minimum.ending == Ending::Stopped {
            outcome = Outcome::Stopped;
            break;
        }
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
    let factors = objective.factors(&x)?;
    let factors = within_cap(objective, factors, cap);
    let evaluation = objective.measure_factors(&factors);
    Ok(Solution {
        factors,
        kl_nats: evaluation.kl_nats,
        max_abs_logit: evaluation.max_abs_logit,
        logit_spread: evaluation.logit_spread,
        outcome,
        gradient_norm,
        iterations,
        evaluations: from.evaluations + objective.evaluations - before,
    })
}

/// What is done after each iteration of a stage; false ends it.
type AfterIteration<'a, 'p> = &'a mut dyn FnMut(&mut Objective<'p>, &Iterate<'_>) -> bool;

/// One stage: the augmented Lagrangian's minimum at fixed multipliers and slope, unless iterations run out or the
/// value is low enough before.
pub(super) fn descend<'p>(
    objective: &mut Objective<'p>,
    x: &[f64],
    penalty: &Penalty,
    (iterations, relative_decrease, enough): (usize, f64, f64),
    after: AfterIteration<'_, 'p>,
) -> Minimum {
    let stopping = Stopping {
        iterations,
        gradient: 1e-12,
        relative_decrease,
        absolute_decrease: 1e-15,
        enough,
    };
    lbfgs::minimise(x.to_vec(), stopping, &mut Lagrangian { objective, penalty, after })
}

/// The augmented Lagrangian at fixed multipliers and slope.
struct Lagrangian<'a, 'p> {
    objective: &'a mut Objective<'p>,
    penalty: &'a Penalty,
    after: AfterIteration<'a, 'p>,
}

impl lbfgs::Smooth for Lagrangian<'_, '_> {
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self.objective.evaluate(x, Some(self.penalty), gradient).value
    }

    fn goes_on(&mut self, at: &Iterate<'_>) -> bool {
        (self.after)(self.objective, at)
    }

    fn preconditioner(&mut self, x: &[f64]) -> Option<Preconditioner> {
        self.objective.preconditioner(x, self.penalty)
    }
}

/// A search's hold on one of its fits.
pub(super) struct Attendance<'a> {
    pub watch: &'a dyn Watch,
    pub name: FitName,
    /// Iterations of the fit at most.
    pub limit: usize,
    /// Whether the search is to end.
    pub ended: &'a AtomicBool,
    /// kl_nats within the cap that ends it.
    pub enough: Option<f64>,
}

/// Iterations between two looks at whether a fit has reached enough.
const LOOK: usize = 20;

impl Attendance<'_> {
    /// Tells of an iteration; whether the fit is to go on.
    pub fn goes_on(
        &self,
        cap: f64,
        iterations: usize,
        value: f64,
        state: &dyn Fn() -> FitState,
    ) -> bool {
        let at = FitProgress { fit: &self.name, cap, iterations, limit: self.limit, value };
        if !self.watch.goes_on(&at, state) {
            self.ended.store(true, Ordering::Relaxed);
        }
        !self.ended.load(Ordering::Relaxed)
    }

    /// Whether the point, scaled into the cap, has the kl_nats that ends the search.
    fn has_enough(&self, objective: &mut Objective, at: &Iterate<'_>, cap: f64) -> bool {
        let Some(enough) = self.enough.filter(|_| at.iterations.is_multiple_of(LOOK)) else {
            return false;
        };
        let Ok(factors) = objective.factors(at.x) else { return false };
        let share = (cap / objective.measure(at.x).max_abs_logit).min(1.0);
        let has = objective.measure_factors(&factors.scaled(share)).kl_nats <= enough;
        if has {
            self.ended.store(true, Ordering::Relaxed);
        }
        has
    }
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
