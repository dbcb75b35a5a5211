//! One method at work from one start, with a clock.

use std::time::Duration;

use anyhow::Result;
use cpu_time::ProcessTime;
use rank_study::solver::{Evaluator, InitialHessian};

use crate::problems::Stage;

/// What a new value must gain on the last one noted, as a share, to be noted too.
const RESOLUTION: f64 = 1e-5;

/// The objective at a point, and a note of what a method reaches with it.
pub struct Run<'p> {
    pub evaluator: Evaluator<'p>,
    pub stage: &'p Stage,
    /// Products with a Hessian that were no evaluation of the objective.
    pub products: usize,
    clock: Clock,
}

/// The least value so far, and when and at what cost it got there. The processor's time: on one thread
/// that is the wall's on an idle machine, and it does not count what others take.
struct Clock {
    started: ProcessTime,
    budget: Duration,
    marks: Vec<Mark>,
    best: f64,
    gradient_norm: f64,
}

/// A value lower than all before it.
#[derive(Clone, Copy)]
pub struct Mark {
    pub seconds: f64,
    /// Evaluations of value and gradient until then.
    pub evaluations: usize,
    value: f64,
}

/// What a run came to.
pub struct Trace {
    marks: Vec<Mark>,
    /// The least value reached in time, in nats.
    pub value: f64,
    /// The largest entry of the gradient at the last point reached in time.
    pub gradient_norm: f64,
    /// Evaluations of value and gradient.
    pub evaluations: usize,
    /// Products with a Hessian beside them.
    pub products: usize,
    /// Seconds until it stopped; no more than a step above the budget.
    pub seconds: f64,
}

impl<'p> Run<'p> {
    /// Starts the clock; the start itself is the first evaluation.
    ///
    /// # Errors
    /// Those of the stage.
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

    /// Seconds gone, as a share of the time that there is.
    pub fn elapsed(&self) -> f64 {
        self.clock.started.elapsed().as_secs_f64() / self.clock.budget.as_secs_f64()
    }

    /// Notes that the evaluator's point was reached; false where the time is over.
    pub fn reached(&mut self, value: f64) -> bool {
        let norm = norm_max(self.evaluator.gradient());
        self.clock.note(self.evaluator.evaluations(), value, norm)
    }

    /// The library's own L-BFGS until the time is over or nothing descends any more.
    pub fn descend(&mut self, initial: InitialHessian) {
        let Self { evaluator, clock, .. } = self;
        evaluator.descend(initial, |evaluations, value, gradient| {
            match clock.note(evaluations, value, norm_max(gradient)) {
                true => std::ops::ControlFlow::Continue(()),
                false => std::ops::ControlFlow::Break(()),
            }
        });
    }

    /// Stops the clock.
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
    /// When the value was first at most `share` above `best`, if ever.
    pub fn within(&self, best: f64, share: f64) -> Option<Mark> {
        let bar = best * (1.0 + share);
        self.marks.iter().find(|mark| mark.value <= bar).copied()
    }
}

/// The largest entry.
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
