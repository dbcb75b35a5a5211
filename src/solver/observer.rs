//! Whoever accompanies a search: is told how it goes, keeps what it finds, may end it, and may give
//! back what an earlier search of the same problem was at.

use std::sync::atomic::{AtomicBool, Ordering};

use super::factors::Factors;
use super::frontier_point::FrontierPoint;
use super::penalty::{FIRST_SLOPE, Multipliers};
use super::problem::Problem;
use super::solution::Solution;

/// The name of one fit of a search, such as `rough-3-cap-16`. The same search of the same problem
/// makes the same fits under the same names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FitName(pub(super) String);

impl std::fmt::Display for FitName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a fit is, after an iteration.
#[derive(Clone, Copy, Debug)]
pub struct FitProgress<'a> {
    /// Which fit.
    pub fit: &'a FitName,
    /// The bound on |z|.
    pub cap: f64,
    /// L-BFGS iterations so far, all stages together.
    pub iterations: usize,
    /// Iterations at most.
    pub limit: usize,
    /// The augmented Lagrangian, nats: near the end it is close to kl_nats.
    pub value: f64,
}

/// Where a fit stands between two iterations: what it takes to go on, but for the optimiser's memory
/// of curvature, which it builds again.
#[derive(Clone, Debug, PartialEq)]
pub struct FitState {
    /// For each head its queries and its keys, (n, rank) each; with several heads, at the end log π.
    pub x: Vec<f64>,
    /// The bound on |z|.
    pub cap: f64,
    /// The penalty's slope, nats a squared logit.
    pub slope: f64,
    /// Those of the bounds that act.
    pub multipliers: Multipliers,
    /// The share by which the cap was exceeded after the stage before; ∞ in the first.
    pub violation: f64,
    /// The augmented Lagrangian's stage, counted from 0.
    pub stage: usize,
    /// L-BFGS iterations so far.
    pub iterations: usize,
    /// Evaluations so far.
    pub evaluations: usize,
    /// The best factors so far, laid out as `x`, where they are not simply the last.
    pub best: Option<Vec<f64>>,
}

impl FitState {
    /// A fit at `cap` that is about to begin at `factors`.
    pub(super) fn new(factors: &Factors, problem: &Problem, cap: f64) -> Self {
        Self::at(factors.to_vector(), cap, (problem.heads(), problem.rows()))
    }

    /// A fit at `cap` that is about to begin at `x`, of a problem of these heads and rows.
    pub(super) fn at(x: Vec<f64>, cap: f64, (heads, n): (usize, usize)) -> Self {
        Self {
            x,
            cap,
            slope: FIRST_SLOPE / cap,
            multipliers: vec![vec![Vec::new(); n]; heads],
            violation: f64::INFINITY,
            stage: 0,
            iterations: 0,
            evaluations: 0,
            best: None,
        }
    }
}

/// What an earlier search kept of a fit.
#[derive(Clone, Debug)]
pub enum Kept {
    /// What it found.
    Finished(Solution),
    /// Where it stood.
    Underway(FitState),
}

/// Accompanies a search. Fits run in parallel, so every method may be called from several threads at
/// once. `()` does nothing.
pub trait FitObserver: Sync {
    /// What is known of a fit that is about to begin, and may take `limit` iterations.
    fn recall(&self, _fit: &FitName, _limit: usize) -> Option<Kept> {
        None
    }

    /// After every iteration of every fit; false ends the search. Each fit that runs is still told
    /// once of its own iteration, and `state` gives what it takes to go on with it.
    fn goes_on(&self, _at: &FitProgress<'_>, _state: &dyn Fn() -> FitState) -> bool {
        true
    }

    /// A fit has ended of itself.
    fn finished(&self, _fit: &FitName, _solution: &Solution) {}

    /// A frontier has changed: the best points so far.
    fn improved(&self, _points: &[FrontierPoint]) {}
}

impl FitObserver for () {}

/// A search's hold on one of its fits: tells the watch of it, and ends it with the search.
pub(super) struct FitHandle<'a> {
    pub watch: &'a dyn FitObserver,
    pub name: FitName,
    /// Iterations of the fit at most.
    pub limit: usize,
    /// Whether the search is to end.
    pub ended: &'a AtomicBool,
}

impl FitHandle<'_> {
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
            self.end_search();
        }
        !self.ended.load(Ordering::Relaxed)
    }

    /// Ends every fit of the search after its iteration.
    pub fn end_search(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}
