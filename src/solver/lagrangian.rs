//! The augmented Lagrangian: minimises kl_nats subject to |z| ≤ cap on every allowed pair of every head.
//!
//! Runs stages of L-BFGS at fixed multipliers and slope. Between stages the multipliers are updated, and the slope is raised if
//! the violation does not decrease (Nocedal and Wright, 2nd ed., framework 17.3, in its form for inequalities, 17.65). A
//! [`Policy`] chooses the logit bound of each stage and decides when the descent ends.

use std::sync::Arc;

use serde::Serialize;

use super::curvature::Preconditioner;
use super::error::FitError;
use super::lbfgs::{self, Ending, Iterate, Smooth, Stopping};
use super::objective::Objective;
use super::observer::{FitHandle, FitState};
use super::penalty::Penalty;
use super::problem::Precision;
use super::solution::{Outcome, Solution};

/// The limits and tolerances of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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

/// The limits of a descent and of its stages.
pub(super) struct Plan {
    pub budget: SolverBudget,
    /// The most L-BFGS iterations of one stage.
    pub stage_iterations: usize,
    /// The first two stages, which only steer the multipliers, end at a relative decrease this many times as large.
    pub early: f64,
    /// A stage also ends when it reaches this value.
    pub enough: f64,
    /// The slope is not raised if the bound is exceeded by no more than this share.
    pub tolerated: f64,
}

impl Plan {
    /// The stopping rule of stage number `stage` with `left` iterations left.
    fn stopping(&self, stage: usize, left: usize) -> Stopping {
        Stopping {
            iterations: self.stage_iterations.min(left),
            gradient: 1e-12,
            relative_decrease: self.budget.relative_decrease
                * if stage < 2 { self.early } else { 1.0 },
            absolute_decrease: 1e-15,
            enough: self.enough,
        }
    }
}

/// Chooses the logit bound between stages and decides when the descent ends.
pub(super) trait Policy {
    fn plan(&self) -> Plan;

    /// Whether a point on the way is good enough to end the search.
    fn has_enough(&self, _: &mut Objective<'_>, _at: &Iterate<'_>, _cap: f64) -> bool {
        false
    }

    /// The best point so far; `None` if it is the last point.
    fn best(&self, _: &Objective<'_>) -> Option<Vec<f64>> {
        None
    }

    /// The next stage's logit bound, or `None` to end the descent. Called after each stage, when the multipliers are updated.
    fn next_cap(
        &mut self,
        objective: &mut Objective<'_>,
        at: &Descent,
    ) -> Result<Option<f64>, FitError>;
}

/// A descent, stage by stage.
pub(super) struct Descent {
    /// The state after the last stage.
    pub state: FitState,
    /// The augmented Lagrangian and the largest entry of its gradient; ∞ until a stage has ended.
    pub value: f64,
    pub gradient_norm: f64,
    /// The ending of the last stage.
    ending: Ending,
    outcome: Outcome,
}

impl Descent {
    /// Runs stages from the state `from`, until `policy` ends the descent, stages or iterations run out, or `attendance` ends
    /// it.
    pub fn run(
        objective: &mut Objective<'_>,
        from: FitState,
        policy: &mut impl Policy,
        attendance: &FitHandle<'_>,
    ) -> Result<Self, FitError> {
        let mut at = Self {
            state: from,
            value: f64::INFINITY,
            gradient_norm: f64::INFINITY,
            ending: Ending::Limit,
            outcome: Outcome::StepLimit,
        };
        let plan = policy.plan();
        while at.state.stage < plan.budget.stages {
            at.run_stage(objective, &plan, policy, attendance);
            if at.ending == Ending::NotFinite {
                at.outcome = Outcome::Diverged;
                break;
            }
            let FitState { x, penalty, violation, .. } = &mut at.state;
            let reached = objective.measure(x).max_abs_logit / penalty.cap - 1.0;
            let before = std::mem::replace(violation, reached);
            penalty.multipliers = objective.updated_multipliers(x, penalty);
            let next_cap = policy.next_cap(objective, &at)?;
            if at.ending == Ending::Stopped {
                at.outcome = Outcome::Stopped;
                break;
            }
            let Some(next_cap) = next_cap else {
                at.outcome = Outcome::Converged;
                break;
            };
            if at.state.iterations >= plan.budget.iterations {
                break;
            }
            if reached > plan.tolerated {
                at.state.penalty.raise_slope(reached, before);
            }
            at.state.penalty.cap = next_cap;
            at.state.stage += 1;
        }
        Ok(at)
    }

    /// Runs one stage: finds the minimum at these multipliers and this slope, unless iterations run out or the value is low
    /// enough before. If the value is not finite, x is unchanged.
    fn run_stage<'p>(
        &mut self,
        objective: &mut Objective<'p>,
        plan: &Plan,
        policy: &impl Policy,
        attendance: &FitHandle<'_>,
    ) {
        let start = &self.state;
        let (cap, before) = (start.penalty.cap, objective.evaluations);
        let left = plan.budget.iterations.saturating_sub(start.iterations);
        let goes_on = |objective: &mut Objective<'p>, at: &Iterate<'_>| {
            let iterations = start.iterations + at.iterations;
            let state = || FitState {
                x: at.x.to_vec(),
                iterations,
                evaluations: start.evaluations + objective.evaluations - before,
                best: policy.best(objective),
                ..start.clone()
            };
            if !attendance.goes_on(cap, iterations, at.value, &state) {
                return false;
            }
            let has_enough = policy.has_enough(objective, at, cap);
            if has_enough {
                attendance.end_search();
            }
            !has_enough
        };
        let mut stage = Lagrangian { objective, penalty: &start.penalty, goes_on };
        let (x, stopping) = (start.x.clone(), plan.stopping(start.stage, left));
        let minimum = match stage.objective.precision() {
            Precision::F64 => lbfgs::minimise::<f64>(x, stopping, &mut stage),
            Precision::F32 => lbfgs::minimise::<f32>(x, stopping, &mut stage),
        };
        self.state.iterations += minimum.iterations;
        self.state.evaluations += objective.evaluations - before;
        self.ending = minimum.ending;
        if minimum.ending != Ending::NotFinite {
            (self.state.x, self.value) = (minimum.x, minimum.value);
            self.gradient_norm = minimum.gradient_norm;
        }
    }

    /// Whether x is a minimum with at most this `violation` of the bound, after at least two stages in which multipliers
    /// converge.
    pub fn is_minimum_within(&self, violation: f64) -> bool {
        let FitState { stage, violation: found, .. } = self.state;
        stage >= 2 && self.ending == Ending::Stationary && found <= violation
    }

    /// The solution `found` on the way, with the outcome and the work of this descent.
    pub fn with(&self, found: Solution) -> Solution {
        let FitState { iterations, evaluations, .. } = self.state;
        Solution { outcome: self.outcome, iterations, evaluations, ..found }
    }
}

/// The augmented Lagrangian at fixed multipliers and slope.
struct Lagrangian<'a, 'p, F> {
    objective: &'a mut Objective<'p>,
    penalty: &'a Penalty,
    /// Called after each iteration; `false` ends the stage.
    goes_on: F,
}

impl<'p, F: FnMut(&mut Objective<'p>, &Iterate<'_>) -> bool> Smooth for Lagrangian<'_, 'p, F> {
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self.objective.evaluate(x, Some(self.penalty), gradient).value
    }

    fn goes_on(&mut self, at: &Iterate<'_>) -> bool {
        (self.goes_on)(self.objective, at)
    }

    fn preconditioner(&mut self, x: &[f64]) -> Option<Arc<Preconditioner>> {
        self.objective.preconditioner(x, self.penalty)
    }
}
