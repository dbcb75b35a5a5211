//! The fit at one cap: minimise kl_nats subject to |z| ≤ cap on every visible pair of every head.
//!
//! The bounds enter as an augmented Lagrangian (Nocedal and Wright, 2nd ed., framework 17.3, in its
//! form for inequalities, 17.65): stages of L-BFGS at fixed multipliers and slope, multipliers
//! updated between them, the slope raised where the violation does not fall. What is left of the
//! violation is removed by scaling the logits, so the cap holds exactly at the end.

use std::sync::atomic::{AtomicBool, Ordering};

use super::curvature::Preconditioner;
use super::effort::Effort;
use super::factors::{Factors, norm_product};
use super::lbfgs::{self, Ending, Iterate, Minimum, Stopping};
use super::objective::Objective;
use super::outcome::Outcome;
use super::penalty::Penalty;
use super::problem::FitError;
use super::solution::Solution;
use super::watch::{FitName, FitProgress, FitState, Watch};

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
        penalty.raise_slope(reached, violation);
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
