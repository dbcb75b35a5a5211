//! Observers of searches: they receive progress, store results, may end a search, and may return the state of an earlier search
//! of the same problem.

use std::sync::atomic::{AtomicBool, Ordering};

use super::factors::Factors;
use super::penalty::{FIRST_SLOPE, Penalty};
use super::problem::Problem;
use super::solution::{FrontierPoint, Solution};

/// The progress of a fit after an iteration.
#[derive(Clone, Copy, Debug)]
pub struct FitProgress<'a> {
    /// The name of the fit, such as `rough-3-cap-16`. The same search of the same problem runs the same fits under the same
    /// names.
    pub fit: &'a str,
    /// The bound on |z|.
    pub cap: f64,
    /// L-BFGS iterations so far, all stages together.
    pub iterations: usize,
    /// The most iterations.
    pub limit: usize,
    /// The augmented Lagrangian, in nats; near the end it is close to kl_nats.
    pub value: f64,
}

/// The state of a fit between two iterations: everything that is needed to resume it, except the optimiser's memory of
/// curvature, which it builds again.
#[derive(Clone, Debug, PartialEq)]
pub struct FitState {
    /// For each head its queries and its keys, (n, rank) each; with several heads, at the end log π.
    pub x: Vec<f64>,
    /// The bound on |z|.
    pub penalty: Penalty,
    /// The share by which the bound was exceeded after the stage before; ∞ in the first.
    pub violation: f64,
    /// The augmented Lagrangian's stage, counted from 0.
    pub stage: usize,
    /// L-BFGS iterations so far.
    pub iterations: usize,
    /// Evaluations so far.
    pub evaluations: usize,
    /// The best factors so far, in the layout of `x`; `None` if they are those of `x`.
    pub best: Option<Vec<f64>>,
}

impl FitState {
    /// A fit of `problem` at the logit bound `cap` that starts at `factors`.
    pub(super) fn new(factors: &Factors, problem: &Problem, cap: f64) -> Self {
        Self::at(factors.to_vector(), problem, cap)
    }

    /// A fit of `problem` at the logit bound `cap` that starts at `x`.
    pub(super) fn at(x: Vec<f64>, problem: &Problem, cap: f64) -> Self {
        Self {
            x,
            penalty: Penalty::new(problem, cap, FIRST_SLOPE / cap),
            violation: f64::INFINITY,
            stage: 0,
            iterations: 0,
            evaluations: 0,
            best: None,
        }
    }
}

/// The stored result of a fit in an earlier search.
#[derive(Clone, Debug)]
pub enum Kept {
    /// The solution of a finished fit.
    Finished(Solution),
    /// The state of an unfinished fit.
    Underway(FitState),
}

/// Observes a search. Fits run in parallel, so every method may be called from several threads at once. `()` does nothing.
pub trait FitObserver: Sync {
    /// Returns the stored result of a fit that is about to start with at most `limit` iterations, if any.
    fn recall(&self, _fit: &str, _limit: usize) -> Option<Kept> {
        None
    }

    /// Called after every iteration of every fit; `false` ends the search. Each running fit then calls it once more, after its
    /// own iteration. `state` returns the state from which the fit can be resumed.
    fn goes_on(&self, _at: &FitProgress<'_>, _state: &dyn Fn() -> FitState) -> bool {
        true
    }

    /// Called when a fit has finished by itself.
    fn finished(&self, _fit: &str, _solution: &Solution) {}

    /// Called when a frontier has changed, with the best points so far.
    fn improved(&self, _points: &[FrontierPoint]) {}
}

impl FitObserver for () {}

/// The connection of a search to one of its fits: reports to the observer, and ends the fit with the search.
pub(super) struct FitHandle<'a> {
    pub watch: &'a dyn FitObserver,
    pub name: String,
    /// The most iterations of the fit.
    pub limit: usize,
    /// Whether the search must end.
    pub ended: &'a AtomicBool,
}

impl FitHandle<'_> {
    /// Reports an iteration; returns whether the fit should continue.
    pub fn goes_on(
        &self,
        cap: f64,
        iterations: usize,
        value: f64,
        state: &dyn Fn() -> FitState,
    ) -> bool {
        let at = FitProgress { fit: &self.name, cap, iterations, limit: self.limit, value };
        if !self.watch.goes_on(&at, state) {
            self.end_search();
        }
        !self.ended.load(Ordering::Relaxed)
    }

    /// Ends every fit of the search after its current iteration.
    pub fn end_search(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}
