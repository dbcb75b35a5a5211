//! L*(ε) from one start: the logit bound moves, stage by stage, to where kl_nats is ε.
//!
//! At a minimum within a bound L the multipliers λ of |z| ≤ L give the slope of the frontier, dE*/dL = −Σ|λ| (sensitivity of a
//! constrained minimum: Nocedal and Wright, 2nd ed., section 12.8). So each stage ends with a Newton step on log E*(L) = log ε
//! in log L, which moves the bound, and the next stage starts at the current point.

use super::error::FitError;
use super::feasible::{feasible, reaching};
use super::lagrangian::{Descent, Plan, Policy, SolverBudget};
use super::objective::{KEPT, Objective};
use super::observer::{FitHandle, FitState};
use super::penalty::Penalty;
use super::problem::LARGEST_CAP;
use super::solution::Solution;

/// The most stages of one solve: the bound moves at each, so there are more than at a fixed bound.
const STAGES: usize = 90;
/// The most L-BFGS iterations of one stage: the bound should move before a fit at the wrong bound is exact.
const STAGE_ITERATIONS: usize = 400;
/// The most iterations of a stage of an early-stop solve. Each stage begins with a new preconditioner, since the bound moved.
const SPARING_ITERATIONS: usize = KEPT;
/// Stages of an early-stop solve may exceed the bound by this share without a steeper slope. Such short stages seldom halve the
/// violation, and raising the slope after each of them leads to worse minima.
const SPARING_VIOLATION: f64 = 0.05;
/// The first bound of an early-stop solve, relative to the logits that are enough.
const FIRST: f64 = 1.2;
/// The bound, relative to the logits that are enough, to which it moves if the value only shows that the bound is far too
/// large.
const LANDING: f64 = 1.08;
/// An early-stop solve checks its gain only after stages whose best logits are at most this factor above the bound.
const HERE: f64 = 1.02;
/// An early-stop solve ends if a stage gains less than this share ...
const LITTLE: f64 = 3e-3;
/// ... and the Newton step promises less than this share.
const PROMISED: f64 = 0.01;
/// ... and the error it reached is below ε by at most this share. After a large move the multipliers still belong to a tighter
/// bound. Their slope is too steep then, the step too short, and the error far below ε.
const SPARE_ERROR: f64 = 0.01;
/// The bound has settled if the Newton step would move it by less than this share.
const SETTLED: f64 = 3e-3;
/// The largest factor by which the bound moves in one stage.
const LARGEST_MOVE: f64 = 1.6;
/// A smaller share of ε counts as no error.
const NOTHING: f64 = 1e-6;
/// [`LogitBoundSearch::far_below`] for searches that start from factors that already reach the target.
pub(super) const FAR_BELOW: f64 = 0.1;

/// The logit bounds that a search may try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    /// L⁰(ε): no smaller bound is tried.
    floor: f64,
    /// The largest bound: [`LARGEST_CAP`], or the largest logit of the given factors if that is larger.
    largest: f64,
}

impl Caps {
    /// The bounds of a search without given factors.
    pub fn above(floor: f64) -> Self {
        Self { floor, largest: LARGEST_CAP }
    }

    /// The bounds of a search with given factors whose largest logit is `own`: they reach ε there, so the search must not start
    /// or end below it.
    pub fn with(self, own: f64) -> Self {
        Self { largest: self.largest.max(just_above(own)), ..self }
    }

    /// The bound nearest to `cap` that may be tried.
    pub fn clamp(self, cap: f64) -> f64 {
        cap.max(1.0005 * self.floor).clamp(1e-3, self.largest)
    }
}

/// A slightly larger value, so that rounding does not scale the logits down.
pub(super) fn just_above(own: f64) -> f64 {
    own * (1.0 + 1e-9)
}

/// An early-stop solve. It starts near the expected result, moves the bound more often, and counts the logits that a point
/// reaches by scaling as found. It ends when another stage gains little.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sparing {
    /// Logits no larger than this end the solve if they reach ε.
    enough: f64,
    /// The smallest logits that reached ε, at the last check.
    reached: f64,
}

impl Sparing {
    /// Aims for logits of `enough`, or slightly more.
    pub fn to(enough: f64) -> Self {
        Self { enough, reached: f64::INFINITY }
    }

    /// The first bound, in place of a larger one.
    pub fn first_cap(&self) -> f64 {
        FIRST * self.enough
    }

    /// Called after a stage with the smallest logits `best` so far, and whether their error is about ε: whether they are
    /// enough, or the stage gained little.
    fn is_done(&mut self, best: f64, is_at_error: bool) -> bool {
        let before = std::mem::replace(&mut self.reached, best);
        best <= self.enough || (is_at_error && best > (1.0 - LITTLE) * before)
    }
}

/// Moves the logit bound to the smallest at which ε is reached.
pub(super) struct LogitBoundSearch {
    pub tolerance: f64,
    pub caps: Caps,
    pub effort: SolverBudget,
    /// A stage whose error is below this share of ε has a far too large bound and need not be exact. 0 for searches without
    /// given factors.
    pub far_below: f64,
    /// The early-stop settings; `None` for a solve that uses its whole budget.
    pub sparing: Option<Sparing>,
    /// The best solution so far.
    pub best: Option<Solution>,
}

impl LogitBoundSearch {
    /// Returns the smallest logits with kl_nats ≤ ε on the way, or the smallest kl_nats if ε was never reached.
    pub fn fit(
        mut self,
        objective: &mut Objective<'_>,
        from: FitState,
        attendance: &FitHandle<'_>,
    ) -> Result<Solution, FitError> {
        if let Some(x) = &from.best {
            // With its own logits, which may be larger than the current bound.
            self.best = Some(feasible(objective, x, self.caps.largest, f64::INFINITY)?);
        }
        let end = Descent::run(objective, from, &mut self, attendance)?;
        let best = match self.best {
            Some(best) => best,
            None => feasible(objective, &end.state.x, end.state.penalty.cap, f64::INFINITY)?,
        };
        Ok(end.with(best))
    }

    /// The slope of the frontier at error E: −d log E/d log L = Σ|λ|·L/E.
    fn slope(&self, penalty: &Penalty, kl_nats: f64) -> f64 {
        penalty.total_multiplier() * penalty.cap / self.something(kl_nats)
    }

    /// The error, at least a negligible share of ε. If the target is met, rounding leaves a small error of either sign, and
    /// bounds that are active by rounding only. Their slope relative to it would be too steep for any step.
    fn something(&self, kl_nats: f64) -> f64 {
        kl_nats.max(NOTHING * self.tolerance)
    }

    /// The Newton step in log L: log(E/ε) divided by the slope.
    fn newton(&self, penalty: &Penalty, kl_nats: f64) -> f64 {
        // Aims slightly below ε, so that the last stage ends on its right side.
        let aim = (1.0 - 1e-3) * self.tolerance;
        let step = (self.something(kl_nats) / aim).ln() / self.slope(penalty, kl_nats);
        let limit = LARGEST_MOVE.ln();
        if step.is_nan() { 0.0 } else { step.clamp(-limit, limit) }
    }
}

impl Policy for LogitBoundSearch {
    fn plan(&self) -> Plan {
        let (stage_iterations, tolerated) = match self.sparing {
            None => (STAGE_ITERATIONS, self.effort.violation),
            Some(_) => (SPARING_ITERATIONS, SPARING_VIOLATION),
        };
        Plan {
            budget: SolverBudget { stages: STAGES, ..self.effort },
            stage_iterations,
            early: 1.0,
            enough: self.far_below * self.tolerance,
            tolerated,
        }
    }

    fn best(&self, objective: &Objective<'_>) -> Option<Vec<f64>> {
        objective.point_of(&self.best.as_ref()?.factors)
    }

    fn next_cap(
        &mut self,
        objective: &mut Objective<'_>,
        at: &Descent,
    ) -> Result<Option<f64>, FitError> {
        let Self { tolerance, caps, effort, sparing, .. } = *self;
        let FitState { x, penalty, violation, .. } = &at.state;
        let mut here = feasible(objective, x, penalty.cap, at.gradient_norm)?;
        // The augmented Lagrangian's value estimates E*(L) while the bound is still violated. Once the estimate has settled,
        // the error of the factors scaled to the bound decides. If the violation exceeds the early-stop tolerance, that error
        // mostly comes from scaling the logits down.
        let mut step = self.newton(penalty, at.value);
        let is_held = sparing.is_none() || *violation <= SPARING_VIOLATION;
        if step.abs() <= SETTLED && is_held {
            step = self.newton(penalty, here.kl_nats);
        }
        let meets = here.kl_nats <= tolerance;
        if sparing.is_some() {
            here = reaching(objective, here, tolerance, self.slope(penalty, at.value));
        }
        let reaches_with = here.max_abs_logit;
        self.best = Some(match self.best.take() {
            Some(best) if !here.preferred(&best, tolerance).is_lt() => best,
            _ => here,
        });
        let next = penalty.cap * step.exp();
        let reached = self.best.as_ref().filter(|best| best.kl_nats <= tolerance);
        // Not while the bound is still falling from its first value or from the last that reached ε.
        let of_here = |best: &&Solution| best.max_abs_logit <= HERE * penalty.cap;
        if let (Some(sparing), Some(least)) = (&mut self.sparing, reached.filter(of_here))
            && sparing
                .is_done(least.max_abs_logit, least.kl_nats >= (1.0 - SPARE_ERROR) * tolerance)
            && is_held
            && reaches_with <= (1.0 + PROMISED) * next
        {
            return Ok(None);
        }
        let at_limit = penalty.cap >= caps.largest && step > 0.0;
        let done = at.is_minimum_within(effort.violation)
            && (at_limit || (meets && step.abs() <= SETTLED));
        let is_far = step <= -LARGEST_MOVE.ln();
        let next = match sparing.map(|sparing| LANDING * sparing.enough) {
            Some(landing) if is_far && penalty.cap > landing => next.max(landing),
            _ => next,
        };
        Ok((!done).then(|| caps.clamp(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::problem::Problem;
    use crate::targets::{Family, Visibility};

    /// Logits that reach the target exactly, with the largest of them rounded above the bound by float32.
    #[test]
    fn a_bound_that_acts_by_rounding_alone_does_not_hold_the_cap() {
        let family = Family::DirichletBand { window: 6, alpha: 1.0 };
        let target = family.build(20, 1, Visibility::Causal).unwrap();
        let problem = Problem::new(target, "global".parse().unwrap(), 4).unwrap();
        let to = LogitBoundSearch {
            tolerance: 0.01,
            caps: Caps::above(1.0),
            effort: SolverBudget::default(),
            far_below: FAR_BELOW,
            sparing: None,
            best: None,
        };
        let mut penalty = Penalty::new(&problem, 5.0, 0.08);
        penalty.multipliers[0][7].push((3, 1e-8));
        for kl_nats in [-2e-14, 0.0, 2e-14] {
            assert_eq!(to.newton(&penalty, kl_nats), -LARGEST_MOVE.ln(), "{kl_nats}");
        }
    }

    #[test]
    fn caps_go_up_to_what_was_given() {
        let caps = Caps::above(2.0);
        assert_eq!((caps.clamp(1.0), caps.clamp(1e3)), (2.001, LARGEST_CAP));
        assert_eq!(caps.with(100.0).clamp(1e3), LARGEST_CAP);
        assert_eq!(caps.with(149.0).clamp(1e3), just_above(149.0));
    }
}
