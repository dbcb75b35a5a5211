//! L*(ε) from one start: the cap moves, stage by stage, to where kl_nats is ε.
//!
//! At a minimum within a cap the multipliers λ of the bounds |z| ≤ L are the frontier's own slope, dE*/dL = −Σ|λ|
//! (sensitivity of a constrained minimum: Nocedal and Wright, 2nd ed., section 12.8). So each stage ends with a
//! Newton step on log E*(L) = log ε in log L, which moves the cap, and the next goes on from where it is.

use super::budget::SolverBudget;
use super::feasible::{feasible, reaching};
use super::lagrangian::{Descent, Plan, Policy};
use super::objective::Objective;
use super::observer::{FitHandle, FitState};
use super::penalty::Penalty;
use super::problem::{FitError, LARGEST_CAP};
use super::solution::Solution;

/// Stages of one solve at most: the cap moves at each, so more than at a fixed cap.
const STAGES: usize = 60;
/// L-BFGS iterations of one stage at most: the cap had better move before a fit at the wrong cap is
/// exact.
const STAGE_ITERATIONS: usize = 400;
/// The same where a solve is sparing.
const SPARING_ITERATIONS: usize = 75;
/// The share by which a sparing solve's stages may exceed the cap without a steeper slope: as short as they are they seldom
/// halve the violation, and a slope that is raised after each leads to worse minima.
const SPARING_VIOLATION: f64 = 0.05;
/// The cap that a sparing solve begins at, over what would be enough.
const FIRST: f64 = 1.2;
/// The cap that it goes to where its value tells no more than that the cap is far too large, over what would be enough.
const LANDING: f64 = 1.08;
/// A stage tells whether a sparing solve still gains where the best is no more than this over its cap.
const HERE: f64 = 1.02;
/// A sparing solve ends where a stage gains less than this share ...
const LITTLE: f64 = 3e-3;
/// ... and Newton's step promises less than this.
const PROMISED: f64 = 0.01;
/// The cap has settled when Newton would move it by less than this share.
const SETTLED: f64 = 3e-3;
/// The cap moves by at most this factor in one stage.
const LARGEST_MOVE: f64 = 1.6;
/// A share of ε that is as good as no error at all.
const NOTHING: f64 = 1e-6;
/// What [`LogitBoundSearch::far_below`] is in searches that come from factors that have the target already.
pub(super) const FAR_BELOW: f64 = 0.1;

/// The caps that a search may try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    /// L⁰(ε): no cap under it is tried.
    floor: f64,
    /// The largest: [`LARGEST_CAP`], or the largest logit of what a search was given, if that is more.
    largest: f64,
}

impl Caps {
    /// Those of a search from nothing.
    pub fn above(floor: f64) -> Self {
        Self { floor, largest: LARGEST_CAP }
    }

    /// Those of a search that is given factors whose largest logit is `own`: they reach ε there, so the search must not
    /// begin, nor end, under what they have.
    pub fn with(self, own: f64) -> Self {
        Self { largest: self.largest.max(just_above(own)), ..self }
    }

    /// A cap as close to `cap` as may be tried.
    pub fn clamp(self, cap: f64) -> f64 {
        cap.max(1.0005 * self.floor).clamp(1e-3, self.largest)
    }
}

/// A hair above, so that rounding does not scale the logits down.
pub(super) fn just_above(own: f64) -> f64 {
    own * (1.0 + 1e-9)
}

/// A solve that spends less: it begins near to where it will end, moves the cap more often, takes what a point reaches by
/// scaling its logits for what it has found, and ends where another stage gains little.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sparing {
    /// Logits no larger than these are all that is asked for, where ε is reached with them.
    enough: f64,
    /// The least logits with which ε was reached, after the last stage that told.
    reached: f64,
}

impl Sparing {
    /// To logits of `enough`, or a little more.
    pub fn to(enough: f64) -> Self {
        Self { enough, reached: f64::INFINITY }
    }

    /// The cap to begin at, in place of a larger one.
    pub fn first_cap(&self) -> f64 {
        FIRST * self.enough
    }

    /// After a stage with which `best` is the least: whether that is enough, or the stage gained little.
    fn is_done(&mut self, best: f64) -> bool {
        let before = std::mem::replace(&mut self.reached, best);
        best <= self.enough || best > (1.0 - LITTLE) * before
    }
}

/// The cap moves to the least with which ε is reached.
pub(super) struct LogitBoundSearch {
    pub tolerance: f64,
    pub caps: Caps,
    pub effort: SolverBudget,
    /// A stage that has less than this share of ε has a cap far too large, and need not end exactly. 0 in searches
    /// that come from above.
    pub far_below: f64,
    /// How a solve spends less; none for one that is to be as exact as its effort.
    pub sparing: Option<Sparing>,
    /// The best on the way.
    pub best: Option<Solution>,
}

impl LogitBoundSearch {
    /// The least logits with kl_nats ≤ ε on the way, or, where ε was never reached, the least
    /// kl_nats.
    pub fn fit(
        mut self,
        objective: &mut Objective<'_>,
        from: FitState,
        attendance: &FitHandle<'_>,
    ) -> Result<Solution, FitError> {
        if let Some(x) = &from.best {
            // With the logits that it has, which may be larger than the cap by now.
            self.best = Some(feasible(objective, x, self.caps.largest, f64::INFINITY)?);
        }
        let end = Descent::run(objective, from, &mut self, Some(attendance))?;
        let best = match self.best {
            Some(best) => best,
            None => feasible(objective, &end.x, end.penalty.cap, f64::INFINITY)?,
        };
        Ok(end.with(best))
    }

    /// The frontier's slope where the error is E: −d log E/d log L = Σ|λ|·L/E.
    fn slope(&self, penalty: &Penalty, kl_nats: f64) -> f64 {
        penalty.total_multiplier() * penalty.cap / self.something(kl_nats)
    }

    /// The error, where it is not next to nothing: rounding leaves a little on either side of 0 where the target is met, and
    /// bounds that act by rounding alone. Their slope over it would say that the frontier is too steep to move along.
    fn something(&self, kl_nats: f64) -> f64 {
        kl_nats.max(NOTHING * self.tolerance)
    }

    /// The Newton step in log L: log(E/ε) over the slope.
    fn newton(&self, penalty: &Penalty, kl_nats: f64) -> f64 {
        // Aim just under ε, so that the last stage lands on the right side of it.
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
            stages: STAGES,
            iterations: self.effort.iterations,
            stage_iterations,
            relative_decrease: self.effort.relative_decrease,
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
        let mut here = feasible(objective, &at.x, at.penalty.cap, at.gradient_norm)?;
        // The augmented Lagrangian's value estimates E*(L) before the violation is gone; what the
        // factors reach within the cap decides once the estimate has settled. With a violation that a sparing solve
        // tolerates no longer, that error is mostly what scaling the logits down has cost.
        let mut step = self.newton(&at.penalty, at.value);
        let is_held = sparing.is_none() || at.violation <= SPARING_VIOLATION;
        if step.abs() <= SETTLED && is_held {
            step = self.newton(&at.penalty, here.kl_nats);
        }
        let meets = here.kl_nats <= tolerance;
        if sparing.is_some() {
            here = reaching(objective, here, tolerance, self.slope(&at.penalty, at.value));
        }
        let reaches_with = here.max_abs_logit;
        self.best = Some(match self.best.take() {
            Some(best) if !here.preferred(&best, tolerance).is_lt() => best,
            _ => here,
        });
        let next = at.penalty.cap * step.exp();
        let reached = self.best.as_ref().filter(|best| best.kl_nats <= tolerance);
        // Not so long as the cap is on its way down from what it began with, or from the last that reached ε.
        let of_here = |least: &f64| *least <= HERE * at.penalty.cap;
        let least = reached.map(|best| best.max_abs_logit).filter(of_here);
        if let (Some(sparing), Some(least)) = (&mut self.sparing, least)
            && sparing.is_done(least)
            && is_held
            && reaches_with <= (1.0 + PROMISED) * next
        {
            return Ok(None);
        }
        let at_limit = at.penalty.cap >= caps.largest && step > 0.0;
        let done = at.is_minimum_within(effort.violation)
            && (at_limit || (meets && step.abs() <= SETTLED));
        let is_far = step <= -LARGEST_MOVE.ln();
        let next = match sparing.map(|sparing| LANDING * sparing.enough) {
            Some(landing) if is_far && at.penalty.cap > landing => next.max(landing),
            _ => next,
        };
        Ok((!done).then(|| caps.clamp(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::problem::Problem;
    use crate::targets::{Family, Parameters, Visibility};

    /// Logits that have the target to the last bit, and the largest of which float32 rounds above the cap.
    #[test]
    fn a_bound_that_acts_by_rounding_alone_does_not_hold_the_cap() {
        let band = Parameters { window: Some(6), ..Parameters::default() };
        let family = Family::from_parameters("dirichlet-band", &band).unwrap();
        let target = family.build(20, 1, Visibility::Causal).unwrap();
        let problem = Problem::new(target, "global".parse().unwrap(), 4).unwrap();
        let effort = SolverBudget::default();
        let caps = Caps::above(1.0);
        let to = LogitBoundSearch {
            tolerance: 0.01,
            caps,
            effort,
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
