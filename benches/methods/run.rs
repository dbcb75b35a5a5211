//! One method running from one start, with a clock.

use std::time::Duration;

use anyhow::Result;
use cpu_time::ProcessTime;
use rank_study::solver::{Evaluator, InitialHessian};

use crate::problems::Stage;

/// Minimum relative decrease from the last recorded value for a new value to be recorded.
const RESOLUTION: f64 = 1e-5;

/// The objective at a point, and a record of the values that a method reaches.
pub struct Run<'p> {
    pub evaluator: Evaluator<'p>,
    pub stage: &'p Stage,
    /// Products with a Hessian that were not evaluations of the objective.
    pub products: usize,
    clock: Clock,
}

/// The smallest value so far, with its time and cost. The clock measures processor time: on one thread this equals wall
/// time on an idle machine, and other processes do not affect it.
struct Clock {
    started: ProcessTime,
    budget: Duration,
    marks: Vec<Mark>,
    best: f64,
    gradient_norm: f64,
}

/// A value that is lower than all before it.
#[derive(Clone, Copy)]
pub struct Mark {
    pub seconds: f64,
    /// Evaluations of value and gradient up to this point.
    pub evaluations: usize,
    value: f64,
}

/// Result of a run.
pub struct Trace {
    marks: Vec<Mark>,
    /// Smallest value reached within the budget, in nats.
    pub value: f64,
    /// Largest entry of the gradient at the last point within the budget.
    pub gradient_norm: f64,
    /// Evaluations of value and gradient.
    pub evaluations: usize,
    /// Products with a Hessian that were not evaluations.
    pub products: usize,
    /// Seconds until the run stopped, at most one step above the budget.
    pub seconds: f64,
}

impl<'p> Run<'p> {
    /// Starts the clock; the start counts as the first evaluation.
    ///
    /// # Errors
    /// The errors of [`Stage::evaluator`].
    pub fn begin(stage: &'p Stage, budget: Duration) -> Result<Self> {
        let evaluator = stage.evaluator()?;
        let clock = Clock {
            started: ProcessTime::now(),
            budget,
            marks: Vec::with_capacity(1 << 12),
            best: f64::INFINITY,
            gradient_norm: f64::INFINITY,
        };
        let mut run = Self { evaluator, stage, products: 0, clock };
        let value = run.evaluator.evaluate();
        run.reached(value);
        Ok(run)
    }

    /// Elapsed time as a share of the budget.
    pub fn elapsed(&self) -> f64 {
        self.clock.started.elapsed().as_secs_f64() / self.clock.budget.as_secs_f64()
    }

    /// Records the value at the evaluator's point; returns `false` if the budget is used up.
    pub fn reached(&mut self, value: f64) -> bool {
        let norm = norm_max(self.evaluator.gradient());
        self.clock.note(self.evaluator.evaluations(), value, norm)
    }

    /// Runs the library's L-BFGS until the budget is used up or no step descends.
    pub fn descend(&mut self, initial: InitialHessian) {
        let Self { evaluator, clock, .. } = self;
        evaluator.descend(initial, |evaluations, value, gradient| {
            match clock.note(evaluations, value, norm_max(gradient)) {
                true => std::ops::ControlFlow::Continue(()),
                false => std::ops::ControlFlow::Break(()),
            }
        });
    }

    /// Stops the clock and returns the result.
    pub fn end(self) -> Trace {
        Trace {
            value: self.clock.best,
            gradient_norm: self.clock.gradient_norm,
            evaluations: self.evaluator.evaluations(),
            products: self.products,
            seconds: self.clock.started.elapsed().as_secs_f64(),
            marks: self.clock.marks,
        }
    }
}

impl Clock {
    fn note(&mut self, evaluations: usize, value: f64, gradient_norm: f64) -> bool {
        let elapsed = self.started.elapsed();
        if elapsed > self.budget {
            return false;
        }
        self.gradient_norm = gradient_norm;
        self.best = self.best.min(value);
        if self.marks.last().is_none_or(|last| value < last.value * (1.0 - RESOLUTION)) {
            self.marks.push(Mark { seconds: elapsed.as_secs_f64(), evaluations, value });
        }
        true
    }
}

impl Trace {
    /// The first record whose value is at most `share` above `best`, if there is one.
    pub fn within(&self, best: f64, share: f64) -> Option<Mark> {
        let bar = best * (1.0 + share);
        self.marks.iter().find(|mark| mark.value <= bar).copied()
    }
}

/// The largest magnitude of an entry.
pub fn norm_max(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |most, v| most.max(v.abs()))
}

/// The inner product.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    ndarray::ArrayView1::from(a).dot(&ndarray::ArrayView1::from(b))
}

/// x + step·direction.
pub fn along(x: &[f64], step: f64, direction: &[f64]) -> Vec<f64> {
    x.iter().zip(direction).map(|(x, v)| x + step * v).collect()
}
