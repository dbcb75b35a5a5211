//! Several starts for one problem: the non-convex part of a fit.
//!
//! Every start is first fitted roughly; only the best few are refined. Starts run in parallel and are compared in a fixed
//! order, so the result does not depend on the number of threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use super::construct::constructions;
use super::error::FitError;
use super::factors::Factors;
use super::feasible::{feasible, within_cap};
use super::lagrangian::{Descent, Plan, Policy, SolverBudget};
use super::lbfgs::Iterate;
use super::objective::Objective;
use super::observer::{FitHandle, FitObserver, FitState, Kept};
use super::problem::{Precision, Problem};
use super::solution::{Candidate, Outcome, Solution};
use super::start::{self, Division};
use crate::system::check_memory;

/// The extent and the effort of a search for the best factors. Its keys as they are serialised are part of what identifies
/// measured rows, which has the seed elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SearchOptions {
    /// Number of independent starts: spectral ones, constructions, and then random ones.
    pub starts: usize,
    /// The random seed of the search.
    #[serde(skip)]
    pub seed: u64,
    /// Number of roughly fitted starts that are refined at each logit bound.
    pub polished: usize,
    /// The most passes over the logit bounds; each fits at every bound from the results of its neighbours.
    pub passes: usize,
    /// The budget of the rough fits.
    pub rough: SolverBudget,
    /// The budget of the refining fits.
    pub fine: SolverBudget,
    /// The arithmetic of objective and gradient. The reported values of the factors are computed in float64 in either case.
    #[serde(rename = "dtype")]
    pub precision: Precision,
    /// The search of a frontier ends as soon as some fit reaches this kl_nats within its logit bound.
    #[serde(rename = "stop_at")]
    pub enough: Option<f64>,
    /// If set, searches of L*(ε) from given factors stop early: they end when logits no larger than this value reach ε, or when
    /// further stages gain little. The preconditioner is reused between stages, and factors are fitted finely from the first
    /// iteration on. Points of shared projections are fitted one after another, until one reaches ε with smaller logits than
    /// all starts have.
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

/// The default number of starts, and the most for a small problem.
const STARTS: (usize, usize) = (12, 48);
/// Limit on allowed pairs times head dimension of all starts together, above the default number.
const PAIRS_OF_STARTS: usize = 3_000_000;

impl SearchOptions {
    /// The default options, except for the number of starts (none: [`Self::starts_for`]), the most iterations of a fit and
    /// the seed.
    pub fn with_effort(
        problem: &Problem,
        starts: Option<usize>,
        iterations: Option<usize>,
        seed: u64,
    ) -> Self {
        let standard = Self::default();
        let most = iterations.unwrap_or(standard.fine.iterations);
        let rough = standard.rough.iterations.min(most);
        Self {
            starts: starts.unwrap_or_else(|| Self::starts_for(problem)),
            seed,
            rough: SolverBudget { iterations: rough, ..standard.rough },
            fine: SolverBudget { iterations: most, ..standard.fine },
            ..standard
        }
    }

    /// Number of independent starts that is worth its time: 12, or up to 48 if the problem is small. At low rank many
    /// stationary points differ by a per cent, and a rough fit is cheap.
    pub fn starts_for(problem: &Problem) -> usize {
        let seen = |row| (0..problem.heads()).map(|h| problem.seen(h, row).len()).sum::<usize>();
        let pairs: usize = (0..problem.rows()).map(seen).sum();
        (PAIRS_OF_STARTS / (pairs * problem.rank()).max(1)).clamp(STARTS.0, STARTS.1)
    }

    /// Refuses a search of `caps` logit bounds, or of one tolerance, that needs more memory than is available. A search stores
    /// the factors of every start at each bound. Each running fit needs at least its point, gradient, direction and next point.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn check_room(&self, problem: &Problem, caps: usize) -> Result<(), FitError> {
        let starts = self.starts;
        let threads = rayon::current_num_threads();
        let at_once = if problem.n() >= ONE_AT_A_TIME { 1 } else { starts.min(threads) };
        let factors = starts as f64 * caps as f64 + 4.0 * at_once as f64;
        check_memory(factors * problem.bytes_of_factors())
            .map_err(|room| FitError::TooLarge(format!(
                "{starts} starts for each of {caps} goals need at least {room}; lower the starts, goals, rank or \
                 threads"
            )))
    }

    /// The L-BFGS iterations of a search of `caps` logit bounds, or of one tolerance if `caps` is 0, if every fit uses its
    /// whole budget.
    pub fn most_iterations(&self, caps: usize) -> usize {
        let goals = caps.max(1);
        let rough = self.starts.saturating_mul(goals).saturating_mul(self.rough.iterations);
        let others = match caps {
            // Fits to another bound on both sides, and back.
            0 => self.passes.saturating_mul(4),
            _ => (2 * (caps - 1)).saturating_mul(self.passes.saturating_add(1)),
        };
        let fine = self.polished.min(self.starts).saturating_mul(goals).saturating_add(others);
        rough.saturating_add(fine.saturating_mul(self.fine.iterations))
    }
}

/// A problem with the options of its search and its observer.
pub(super) struct Search<'p> {
    pub problem: &'p Problem,
    pub options: SearchOptions,
    pub watch: &'p dyn FitObserver,
    /// Set when the search must end: by the observer, or because enough is reached.
    ended: AtomicBool,
    /// The constructions for the first logit bound.
    constructed: OnceLock<Vec<Factors>>,
}

/// From this sequence length on, one fit uses every core, so fits run one at a time and need the memory of one.
const ONE_AT_A_TIME: usize = 4096;

impl<'p> Search<'p> {
    /// Creates a search for `caps` logit bounds, or for one tolerance.
    ///
    /// # Errors
    /// `TooLarge`.
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

    /// Whether the search was ended early.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub fn objective(&self) -> Objective<'p> {
        Objective::new(self.problem, self.options.precision).sparing(self.options.sparing.is_some())
    }

    pub fn attendance(&self, name: String, effort: SolverBudget) -> FitHandle<'_> {
        FitHandle { watch: self.watch, name, limit: effort.iterations, ended: &self.ended }
    }

    /// Applies `work` to each item and returns the results in order.
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

    /// Fits every start roughly along the ascending `caps`, each from the result at the bound before. Results are ordered by
    /// bound, then by start. If the search ends early, the later bounds have fewer.
    pub fn rough_paths(&self, caps: &[f64]) -> Result<Vec<Vec<Candidate>>, FitError> {
        let starts: Vec<usize> = (0..self.options.starts).collect();
        let paths = self.each(&starts, |&start| self.rough_path(start, caps))?;
        let at = |place: usize| paths.iter().filter_map(|path| path.get(place)).cloned().collect();
        Ok((0..caps.len()).map(at).collect())
    }

    /// The factors at which start number `start` begins. First come the spectral approximations, one for each division of the
    /// target among several heads, then the constructions that apply to the target; the others are random. All are random if
    /// rows are sampled, or if n is too large for O(n²) memory or O(n³) time.
    pub fn start(&self, start: usize, cap: f64) -> Result<Factors, FitError> {
        let seed = self.options.seed.wrapping_mul(1_000_003).wrapping_add(start as u64);
        let sampled = self.problem.rows() < self.problem.n();
        if self.problem.n() > start::LARGEST_SPECTRAL || sampled {
            return start::random(self.problem, cap, seed);
        }
        let divisions: &[Division] = match self.problem.heads() {
            1 => &[Division::ByLag],
            _ => &[Division::ByLag, Division::ByColumn],
        };
        if let Some(&division) = divisions.get(start) {
            return start::spectral(self.problem, cap, seed, division);
        }
        match self.constructed(cap)?.get(start - divisions.len()) {
            Some(factors) => Ok(factors.clone()),
            None => start::random(self.problem, cap, seed),
        }
    }

    /// The constructions at the logit bound with which every start begins.
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
        // The first start gives the first bound a point even if the search ends at once.
        if start > 0 && self.has_ended() {
            return Ok(path);
        }
        let mut objective = self.objective();
        for &cap in caps {
            let name = format!("rough-{start}-cap-{cap}");
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

    /// The best of fine fits from each candidate and of the candidates that already lie within the bound `cap`. Returns `None`
    /// without candidates. `pass` names the fits.
    pub fn polish(
        &self,
        pass: &str,
        candidates: &[Candidate],
        cap: f64,
    ) -> Result<Option<Candidate>, FitError> {
        let numbered: Vec<(usize, &Candidate)> = candidates.iter().enumerate().collect();
        let fitted = self.each(&numbered, |(number, candidate)| {
            let name = format!("{pass}-{number}-cap-{cap}");
            let mut objective = self.objective();
            let from = |objective: &mut Objective<'_>| {
                Ok(within_cap(objective, candidate.solution.factors.clone(), cap).0)
            };
            let solution = self.fit(&mut objective, name, cap, self.options.fine, from)?;
            Ok(Candidate { start: candidate.start, solution })
        })?;
        let feasible = candidates.iter().filter(|c| c.solution.max_abs_logit <= cap).cloned();
        Ok(fitted.into_iter().chain(feasible).reduce(Candidate::better))
    }

    /// Runs one fit from `start`, or from the state in which an earlier search left it.
    pub fn fit(
        &self,
        objective: &mut Objective<'p>,
        name: String,
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

    /// Returns the solution of this fit from an earlier search, or runs `run` from the state in which that search left it.
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

/// Iterations between two checks whether a fit has reached enough.
const LOOK: usize = 20;

/// Keeps the logit bound fixed.
pub(super) struct FixedCap {
    pub effort: SolverBudget,
    /// kl_nats within the bound that ends the search.
    pub enough: Option<f64>,
}

impl FixedCap {
    /// Fits at the logit bound of `from`, starting at its state.
    pub fn fit(
        mut self,
        objective: &mut Objective<'_>,
        from: FitState,
        attendance: &FitHandle<'_>,
    ) -> Result<Solution, FitError> {
        let end = Descent::run(objective, from, &mut self, attendance)?;
        let FitState { x, penalty, .. } = &end.state;
        Ok(end.with(feasible(objective, x, penalty.cap, end.gradient_norm)?))
    }
}

impl Policy for FixedCap {
    fn plan(&self) -> Plan {
        Plan {
            budget: self.effort,
            stage_iterations: self.effort.iterations / 4,
            early: 10.0,
            enough: f64::NEG_INFINITY,
            tolerated: f64::NEG_INFINITY,
        }
    }

    fn has_enough(&self, objective: &mut Objective<'_>, at: &Iterate<'_>, cap: f64) -> bool {
        let Some(enough) = self.enough.filter(|_| at.iterations.is_multiple_of(LOOK)) else {
            return false;
        };
        let Ok(factors) = objective.factors(at.x) else { return false };
        let share = (cap / objective.measure(at.x).max_abs_logit).min(1.0);
        objective.measure_factors(&factors.scaled(share)).kl_nats <= enough
    }

    fn next_cap(&mut self, _: &mut Objective<'_>, at: &Descent) -> Result<Option<f64>, FitError> {
        Ok((!at.is_minimum_within(self.effort.violation)).then_some(at.state.penalty.cap))
    }
}
