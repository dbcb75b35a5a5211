//! Several starts for one problem: the non-convex part of a fit.
//!
//! Every start is first fitted roughly; only the best few are polished. Starts run in parallel and
//! are compared in a fixed order, so the result does not depend on the number of threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::budget::SolverBudget;
use super::construct::constructions;
use super::factors::Factors;
use super::feasible::within_cap;
use super::fixed_cap::FixedCap;
use super::objective::Objective;
use super::observer::{FitHandle, FitName, FitObserver, FitState, Kept};
use super::outcome::Outcome;
use super::precision::Precision;
use super::problem::{FitError, Problem};
use super::solution::{Candidate, Solution};
use super::start::{self, Division};
use crate::system::check_memory;

/// How widely and how hard to look for the best factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchOptions {
    /// Independent starts: spectral ones, constructions, and for the rest random ones.
    pub starts: usize,
    /// The seed of all of them.
    pub seed: u64,
    /// How many of the roughly fitted starts are polished at each cap.
    pub polished: usize,
    /// Passes over the caps at most, each fitting at every cap from what its neighbours found.
    pub passes: usize,
    /// The effort of the rough fits.
    pub rough: SolverBudget,
    /// The effort of the polishing fits.
    pub fine: SolverBudget,
    /// The arithmetic of objective and gradient; what is reported of the factors found is computed in
    /// float64 in either case.
    pub precision: Precision,
    /// The search of a frontier ends as soon as some fit has this kl_nats within its cap.
    pub enough: Option<f64>,
    /// In nats, where it is there: searches of L*(ε) from given factors spend less, and end where logits no larger than these
    /// reach ε, or where more stages gain little. Curvature is kept from stage to stage, factors are descended finely from the
    /// first iteration on, and points of inputs one after another, until one reaches ε with less than the others have.
    pub sparing: Option<f64>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            starts: STARTS.0,
            seed: 0,
            polished: 3,
            passes: 3,
            rough: SolverBudget {
                iterations: 1500,
                relative_decrease: 2e-4,
                ..SolverBudget::default()
            },
            fine: SolverBudget {
                iterations: 7000,
                relative_decrease: 5e-7,
                ..SolverBudget::default()
            },
            precision: Precision::F64,
            enough: None,
            sparing: None,
        }
    }
}

/// The standard number of starts, and the most that a small problem takes.
const STARTS: (usize, usize) = (12, 48);
/// Visible pairs times head dimension that all starts together may have, above the standard number.
const PAIRS_OF_STARTS: usize = 3_000_000;

impl SearchOptions {
    /// The independent starts that are worth their time: 12, and where one costs little more of them,
    /// up to 48. At low rank many stationary points differ by a per cent, and a rough fit is cheap.
    pub fn starts_for(problem: &Problem) -> usize {
        let seen = |row| (0..problem.heads()).map(|h| problem.seen(h, row).len()).sum::<usize>();
        let pairs: usize = (0..problem.rows()).map(seen).sum();
        (PAIRS_OF_STARTS / (pairs * problem.rank()).max(1)).clamp(STARTS.0, STARTS.1)
    }

    /// Refuses a search of `caps` caps, or of one tolerance, that takes more memory than can be had. Kept are the factors of
    /// every start at each cap, and, of each fit at a time, at least its point, gradient, direction and next point.
    ///
    /// # Errors
    /// `SearchTooLarge`.
    pub fn check_room(&self, problem: &Problem, caps: usize) -> Result<(), FitError> {
        let starts = self.starts;
        let threads = rayon::current_num_threads();
        let at_once = if problem.n() >= ONE_AT_A_TIME { 1 } else { starts.min(threads) };
        let factors = starts as f64 * caps as f64 + 4.0 * at_once as f64;
        check_memory(factors * problem.bytes_of_factors())
            .map_err(|room| FitError::SearchTooLarge { starts, caps, room })
    }

    /// The L-BFGS iterations of a search of `caps` caps, or of one tolerance where there are none, if
    /// every fit of it took as many as it may.
    pub fn most_iterations(&self, caps: usize) -> usize {
        let goals = caps.max(1);
        let rough = self.starts.saturating_mul(goals).saturating_mul(self.rough.iterations);
        let others = match caps {
            // To another cap on both sides, and back.
            0 => self.passes.saturating_mul(4),
            _ => (2 * (caps - 1)).saturating_mul(self.passes.saturating_add(1)),
        };
        let fine = self.polished.min(self.starts).saturating_mul(goals).saturating_add(others);
        rough.saturating_add(fine.saturating_mul(self.fine.iterations))
    }
}

/// A problem with the options of its search, and whoever watches it.
pub(super) struct Search<'p> {
    pub problem: &'p Problem,
    pub options: SearchOptions,
    pub watch: &'p dyn FitObserver,
    /// Set when the search is to end: on the watch's word, or with enough reached.
    ended: AtomicBool,
    /// What can be constructed for the first cap.
    constructed: OnceLock<Vec<Factors>>,
}

/// Sequence lengths from here on have fits that use every core by themselves; one at a time, they
/// take the memory of one.
const ONE_AT_A_TIME: usize = 4096;

impl<'p> Search<'p> {
    /// A search for so many caps, or for one tolerance.
    ///
    /// # Errors
    /// `SearchTooLarge`.
    pub fn new(
        problem: &'p Problem,
        options: SearchOptions,
        caps: usize,
        watch: &'p dyn FitObserver,
    ) -> Result<Self, FitError> {
        options.check_room(problem, caps)?;
        Ok(Self {
            problem,
            options,
            watch,
            ended: AtomicBool::new(false),
            constructed: OnceLock::new(),
        })
    }

    /// Whether it was ended early.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub fn objective(&self) -> Objective<'p> {
        Objective::new(self.problem, self.options.precision).sparing(self.options.sparing.is_some())
    }

    pub fn attendance(&self, name: FitName, effort: SolverBudget) -> FitHandle<'_> {
        FitHandle { watch: self.watch, name, limit: effort.iterations, ended: &self.ended }
    }

    /// What `work` makes of each of `all`, in their order.
    pub fn each<T: Send + Sync, R: Send>(
        &self,
        all: &[T],
        work: impl Fn(&T) -> Result<R, FitError> + Send + Sync,
    ) -> Result<Vec<R>, FitError> {
        if self.problem.n() >= ONE_AT_A_TIME {
            all.iter().map(work).collect()
        } else {
            all.par_iter().map(work).collect()
        }
    }

    /// Every start fitted roughly along the ascending `caps`, each cap from the one before it;
    /// by cap, then by start. Where the search ends early the later caps have fewer.
    pub fn rough_paths(&self, caps: &[f64]) -> Result<Vec<Vec<Candidate>>, FitError> {
        let starts: Vec<usize> = (0..self.options.starts).collect();
        let paths = self.each(&starts, |&start| self.rough_path(start, caps))?;
        let at = |place: usize| paths.iter().filter_map(|path| path.get(place)).cloned().collect();
        Ok((0..caps.len()).map(at).collect())
    }

    /// Where start `start` begins. First come the spectral approximations, one for each division of
    /// the target among several heads, then the constructions that the target allows; the others are
    /// random. All are, where n is too large for what takes O(n²) memory or O(n³) time.
    pub fn start(&self, start: usize, cap: f64) -> Result<Factors, FitError> {
        let seed = self.options.seed.wrapping_mul(1_000_003).wrapping_add(start as u64);
        let sampled = self.problem.rows() < self.problem.n();
        if self.problem.n() > start::LARGEST_SPECTRAL || sampled {
            return Ok(start::random(self.problem, cap, seed)?);
        }
        let divisions: &[Division] = match self.problem.heads() {
            1 => &[Division::ByLag],
            _ => &[Division::ByLag, Division::ByColumn],
        };
        if let Some(&division) = divisions.get(start) {
            return Ok(start::spectral(self.problem, cap, seed, division)?);
        }
        match self.constructed(cap)?.get(start - divisions.len()) {
            Some(factors) => Ok(factors.clone()),
            None => Ok(start::random(self.problem, cap, seed)?),
        }
    }

    /// The constructions at the cap that every start begins with.
    fn constructed(&self, cap: f64) -> Result<&[Factors], FitError> {
        if let Some(constructed) = self.constructed.get() {
            return Ok(constructed);
        }
        let found = constructions(self.problem, cap, self.options.seed)?;
        let factors = found.into_iter().map(|(_, factors)| factors).collect();
        Ok(self.constructed.get_or_init(|| factors))
    }

    fn rough_path(&self, start: usize, caps: &[f64]) -> Result<Vec<Candidate>, FitError> {
        let mut path: Vec<Candidate> = Vec::with_capacity(caps.len());
        // The first start gives the first cap a point even where the search ends at once.
        if start > 0 && self.has_ended() {
            return Ok(path);
        }
        let mut objective = self.objective();
        for &cap in caps {
            let name = FitName(format!("rough-{start}-cap-{cap}"));
            let solution = self.fit(&mut objective, name, cap, self.options.rough, |_| {
                path.last().map_or_else(
                    || self.start(start, cap),
                    |before| Ok(before.solution.factors.clone()),
                )
            })?;
            path.push(Candidate { start, solution });
            if self.has_ended() {
                break;
            }
        }
        Ok(path)
    }

    /// The best of fine fits from each candidate and of the candidates themselves, where they
    /// already lie within the cap. None where there is no candidate. `pass` names the fits.
    pub fn polish(
        &self,
        pass: &str,
        candidates: &[Candidate],
        cap: f64,
    ) -> Result<Option<Candidate>, FitError> {
        let numbered: Vec<(usize, &Candidate)> = candidates.iter().enumerate().collect();
        let fitted = self.each(&numbered, |(number, candidate)| {
            let name = FitName(format!("{pass}-{number}-cap-{cap}"));
            let mut objective = self.objective();
            let from = |objective: &mut Objective<'_>| {
                Ok(within_cap(objective, candidate.solution.factors.clone(), cap))
            };
            let solution = self.fit(&mut objective, name, cap, self.options.fine, from)?;
            Ok(Candidate { start: candidate.start, solution })
        })?;
        let feasible = candidates.iter().filter(|c| c.solution.max_abs_logit <= cap).cloned();
        Ok(fitted.into_iter().chain(feasible).reduce(Candidate::better))
    }

    /// One fit from `start`, or from where an earlier search left it.
    pub fn fit(
        &self,
        objective: &mut Objective<'p>,
        name: FitName,
        cap: f64,
        effort: SolverBudget,
        start: impl FnOnce(&mut Objective<'p>) -> Result<Factors, FitError>,
    ) -> Result<Solution, FitError> {
        let attendance = self.attendance(name, effort);
        self.kept_or(&attendance, |underway| {
            let from = match underway {
                Some(state) => state,
                None => FitState::new(&start(objective)?, objective.problem(), cap),
            };
            FixedCap { effort, enough: self.options.enough }.fit(objective, from, &attendance)
        })
    }

    /// What an earlier search found by this fit, or what `run` finds from where that left it.
    pub fn kept_or(
        &self,
        attendance: &FitHandle,
        run: impl FnOnce(Option<FitState>) -> Result<Solution, FitError>,
    ) -> Result<Solution, FitError> {
        let solution = match self.watch.recall(&attendance.name, attendance.limit) {
            Some(Kept::Finished(solution)) => return Ok(solution),
            Some(Kept::Underway(state)) => run(Some(state))?,
            None => run(None)?,
        };
        if solution.outcome != Outcome::Stopped {
            self.watch.finished(&attendance.name, &solution);
        }
        Ok(solution)
    }
}
