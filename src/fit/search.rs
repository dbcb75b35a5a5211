//! Several starts for one problem: the non-convex part of a fit.
//!
//! Every start is first fitted roughly; only the best few are polished. Starts run in parallel and
//! are compared in a fixed order, so the result does not depend on the number of threads.

use rayon::prelude::*;

use super::capped::{self, Effort, Solution};
use super::factors::Factors;
use super::objective::Objective;
use super::problem::{FitError, Problem};
use super::start::{self, Division};

/// How widely and how hard to look for the best factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchOptions {
    /// Independent starts; the first is spectral (with several heads, the first two), the others
    /// random.
    pub starts: usize,
    /// The seed of all of them.
    pub seed: u64,
    /// How many of the roughly fitted starts are polished at each cap.
    pub polished: usize,
    /// The effort of the rough fits.
    pub rough: Effort,
    /// The effort of the polishing fits.
    pub fine: Effort,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            starts: 12,
            seed: 0,
            polished: 3,
            rough: Effort { iterations: 1500, relative_decrease: 2e-4, ..Effort::default() },
            fine: Effort { iterations: 8000, relative_decrease: 5e-7, ..Effort::default() },
        }
    }
}

/// A solution, and the start that it came from.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Which start, counted from 0.
    pub start: usize,
    /// What it reached.
    pub solution: Solution,
}

impl Candidate {
    /// The better of two: the lower kl_nats, and of equals the first.
    pub(super) fn better(self, other: Self) -> Self {
        if other.solution.kl_nats < self.solution.kl_nats { other } else { self }
    }
}

/// A problem with the options of its search.
pub(super) struct Search<'p> {
    pub problem: &'p Problem,
    pub options: SearchOptions,
}

impl<'p> Search<'p> {
    pub fn new(problem: &'p Problem, options: SearchOptions) -> Result<Self, FitError> {
        if options.starts == 0 {
            return Err(FitError::NoStarts);
        }
        Ok(Self { problem, options })
    }

    /// Every start fitted roughly along the ascending `caps`, each cap from the one before it;
    /// by cap, then by start.
    pub fn rough_paths(&self, caps: &[f64]) -> Result<Vec<Vec<Candidate>>, FitError> {
        let paths: Vec<Vec<Candidate>> = (0..self.options.starts)
            .into_par_iter()
            .map(|start| self.rough_path(start, caps))
            .collect::<Result<_, _>>()?;
        Ok((0..caps.len())
            .map(|place| paths.iter().map(|path| path[place].clone()).collect())
            .collect())
    }

    /// Where start `start` begins: the first at the spectral approximation, the second, where there
    /// are several heads to divide the target among, at another division; the others at random. All
    /// at random where n is too large for a whole decomposition.
    pub fn start(&self, start: usize, cap: f64) -> Result<Factors, FitError> {
        let seed = self.options.seed.wrapping_mul(1_000_003).wrapping_add(start as u64);
        let division = match start {
            _ if self.problem.n() > start::LARGEST_SPECTRAL => None,
            0 => Some(Division::ByLag),
            1 if self.problem.heads() > 1 => Some(Division::ByColumn),
            _ => None,
        };
        Ok(match division {
            Some(division) => start::spectral(self.problem, cap, seed, division)?,
            None => start::random(self.problem, cap, seed)?,
        })
    }

    fn rough_path(&self, start: usize, caps: &[f64]) -> Result<Vec<Candidate>, FitError> {
        let mut objective = Objective::new(self.problem, super::objective::Precision::F64);
        let mut factors = self.start(start, caps[0])?;
        let mut path = Vec::with_capacity(caps.len());
        for &cap in caps {
            let solution = capped::fit(&mut objective, &factors, cap, self.options.rough)?;
            factors = solution.factors.clone();
            path.push(Candidate { start, solution });
        }
        Ok(path)
    }

    /// The best of fine fits from each candidate and of the candidates themselves, where they
    /// already lie within the cap. None where there is no candidate.
    pub fn polish(
        &self,
        candidates: &[Candidate],
        cap: f64,
    ) -> Result<Option<Candidate>, FitError> {
        let fitted: Vec<Candidate> = candidates
            .par_iter()
            .map(|candidate| {
                let mut objective = Objective::new(self.problem, super::objective::Precision::F64);
                let start: Factors =
                    capped::within_cap(&mut objective, candidate.solution.factors.clone(), cap);
                let solution = capped::fit(&mut objective, &start, cap, self.options.fine)?;
                Ok(Candidate { start: candidate.start, solution })
            })
            .collect::<Result<_, FitError>>()?;
        let feasible = candidates.iter().filter(|c| c.solution.max_abs_logit <= cap).cloned();
        Ok(fitted.into_iter().chain(feasible).reduce(Candidate::better))
    }
}

/// The `count` candidates of least kl_nats, best first.
pub(super) fn best_of(candidates: &[Candidate], count: usize) -> Vec<Candidate> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sorted.sort_by(|a, b| a.solution.kl_nats.total_cmp(&b.solution.kl_nats));
    sorted.into_iter().take(count).cloned().collect()
}
