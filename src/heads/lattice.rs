//! The constraint grid: the logits that a head's attention needs as two constraints are relaxed step by step, the inputs of
//! its queries and keys, and their rank.
//!
//! A grid point is a set of inputs and a rank. It lies above another if it allows everything that the other does.
//! needed(ε; inputs, rank) is the smallest max |logit| that reaches the head's attention within ε there. A solution at one
//! point is also one at every point above it and for every larger ε. It is used as a start there, and kept if the search finds
//! nothing better. So needed never rises along a path up the grid, or as ε grows.

use std::time::Instant;

use ndarray::{Axis, s};

use super::parts::Found;
use super::{InputSet, PredictError, RankLimit, TrainedHead};
use crate::solver::{
    Factors, FitError, Floor, Outcome, Problem, SearchOptions, SharedProjection,
    lower_bound_at_any_rank, needed_logit_at_any_rank_from, needed_logit_from, needed_logit_tied,
};

/// The corners of a head's lattice that are requested.
#[derive(Clone, Copy, Debug)]
pub struct Corners<'a> {
    /// The errors ε, in nats.
    pub epsilons: &'a [f64],
    /// The sets of inputs.
    pub inputs: &'a [InputSet],
    /// Ranks in addition to the head's own and [`RankLimit::Any`], which are always included.
    pub ranks: &'a [usize],
    /// The search options of the fits.
    pub search: SearchOptions,
}

/// The result at a corner at one ε.
#[derive(Clone, Debug)]
pub struct Corner {
    /// ε, in nats.
    pub epsilon: f64,
    /// The inputs of queries and keys.
    pub inputs: InputSet,
    /// The bound on their rank.
    pub rank: RankLimit,
    /// The result of the fit. For free logits of any rank it is the floor, which is exact and has no factors.
    pub found: Found,
    /// Only at any rank: a proven lower bound on the max |logit| with these inputs. It is the floor L⁰(ε), or for the head's
    /// own inputs the bound of the dual problem if that is larger.
    pub lower_bound: Option<f64>,
    /// Seconds of the fit of this corner.
    pub wall_time_s: f64,
}

impl TrainedHead {
    /// Computes every corner, ordered by ε from small to large, by inputs in the order of [`InputSet::ALL`], and by rank. If
    /// queries and keys are normalised or rotated (RoPE), other inputs and ranks are undefined. Then only free corners and the
    /// corner of the head's own inputs and rank exist.
    ///
    /// `goes_on` is called before each fit; the result is `None` if it returns `false`.
    ///
    /// # Errors
    /// An ε is not above 0.
    pub fn lattice(
        &self,
        asked: &Corners<'_>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Corner>>, PredictError> {
        let mut epsilons = asked.epsilons.to_vec();
        epsilons.sort_by(|a, b| b.total_cmp(a));
        epsilons.dedup();
        let ascent = Ascent::new(self, asked)?;
        let mut by_epsilon: Vec<Vec<Corner>> = Vec::new();
        // From large to small ε: a lower bound at a larger ε holds at a smaller one.
        for &epsilon in &epsilons {
            match ascent.at(epsilon, by_epsilon.last().map(Vec::as_slice), goes_on)? {
                Some(corners) => by_epsilon.push(corners),
                None => return Ok(None),
            }
        }
        // From small to large ε: a solution at ε is a solution at every larger one.
        for at in (1..by_epsilon.len()).rev() {
            let (loose, strict) = by_epsilon.split_at_mut(at);
            for (loose, strict) in loose[at - 1].iter_mut().zip(&strict[0]) {
                loose.found = loose.found.clone().or_better(&strict.found);
            }
        }
        by_epsilon.reverse();
        Ok(Some(by_epsilon.into_iter().flatten().collect()))
    }
}

/// A corner of a head's lattice with the corners below it.
struct Place {
    inputs: InputSet,
    rank: RankLimit,
    /// Indices of the places directly below this one.
    below: Vec<usize>,
}

/// A head's lattice in the order of the fits, from the lowest corners up.
struct Ascent<'h> {
    head: &'h TrainedHead,
    search: SearchOptions,
    /// Each place comes after all places below it.
    places: Vec<Place>,
    /// The shared projection of each set of inputs except free ones, at the head's own rank.
    tied: Vec<(InputSet, SharedProjection)>,
    /// The head's own factors with the mean of the keys subtracted, which softmax cancels: the mean over all passages together,
    /// and the mean of each passage.
    centred: [Factors; 2],
}

impl<'h> Ascent<'h> {
    fn new(head: &'h TrainedHead, asked: &Corners<'_>) -> Result<Self, PredictError> {
        let own = RankLimit::Of(head.rank());
        let mut ranks: Vec<RankLimit> =
            asked.ranks.iter().map(|&rank| RankLimit::Of(rank)).collect();
        ranks.extend([own, RankLimit::Any]);
        ranks.sort_unstable();
        ranks.dedup();
        let is_defined = |inputs: InputSet, rank: RankLimit| {
            head.tied.is_bilinear()
                || inputs == InputSet::Free
                || (inputs, rank) == (InputSet::Own, own)
        };
        let sets: Vec<InputSet> =
            InputSet::ALL.into_iter().filter(|set| asked.inputs.contains(set)).collect();
        let mut places: Vec<Place> = Vec::new();
        for &inputs in &sets {
            for &rank in ranks.iter().filter(|&&rank| is_defined(inputs, rank)) {
                let below = directly_below(&places, inputs, rank);
                places.push(Place { inputs, rank, below });
            }
        }
        let passages = head.attention.len();
        let mut tied = Vec::new();
        for &inputs in sets.iter().filter(|&&set| set != InputSet::Free) {
            match inputs {
                InputSet::Own => tied.push((inputs, head.tied.clone())),
                _ if head.tied.is_bilinear() => {
                    let columns = inputs.columns(head.tokens, passages);
                    tied.push((inputs, head.tied.beside(columns.view())?));
                }
                _ => {}
            }
        }
        let centred = [centred(&head.own, 1)?, centred(&head.own, passages)?];
        Ok(Self { head, search: asked.search, places, tied, centred })
    }

    /// Computes every corner at one ε; `looser` holds the corners at the next larger ε. Returns `None` if `goes_on` returns
    /// `false`.
    fn at(
        &self,
        epsilon: f64,
        looser: Option<&[Corner]>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Vec<Corner>>, PredictError> {
        let Some(floor) = Floor::new(&self.head.problem).max_abs_logit(epsilon) else {
            return Err(FitError::Tolerance(epsilon).into());
        };
        let before = |at: usize| looser.map(|corners| &corners[at]);
        // Free factors come first: the fits of shared projections start at the projections nearest to them.
        let mut free: Vec<(RankLimit, Found, f64)> = Vec::new();
        for (at, place) in self.places.iter().enumerate() {
            let (InputSet::Free, RankLimit::Of(rank)) = (place.inputs, place.rank) else {
                continue;
            };
            if !goes_on() {
                return Ok(None);
            }
            let started = Instant::now();
            let narrower = free.last().map(|(_, found, _)| found);
            let found = match floor {
                0.0 => Found::NO_LOGITS,
                _ => self.free(rank, epsilon, before(at).map(|c| &c.found), narrower)?,
            };
            free.push((place.rank, found, started.elapsed().as_secs_f64()));
        }
        let mut corners: Vec<Corner> = Vec::new();
        for (at, &Place { inputs, rank, ref below }) in self.places.iter().enumerate() {
            if !goes_on() {
                return Ok(None);
            }
            let started = Instant::now();
            let below: Vec<&Found> = below.iter().map(|&at| &corners[at].found).collect();
            let of_rank = free.iter().find(|(other, ..)| *other == rank);
            let found = match (inputs, rank) {
                _ if floor == 0.0 => Found::NO_LOGITS,
                (InputSet::Free, RankLimit::Any) => {
                    Found { max_abs_logit: Some(floor), ..Found::NO_LOGITS }
                }
                (InputSet::Free, RankLimit::Of(_)) => {
                    let (_, found, _) = of_rank.expect("free factors of every rank were fitted");
                    self.free_from_below(epsilon, found.clone(), &below)?
                }
                (inputs, rank) => {
                    let before = before(at).map(|corner| &corner.found);
                    let free = of_rank.map(|(_, free, _)| free);
                    self.tied((inputs, rank), epsilon, [before, least(&below), free])?
                }
            };
            let found = below.into_iter().fold(found, Found::or_better);
            let lower_bound = match (inputs, rank) {
                (_, RankLimit::Of(_)) => None,
                (InputSet::Own, _) if floor > 0.0 => Some(self.proven(epsilon, &found)?.max(floor)),
                _ => Some(floor),
            };
            // A lower bound at a larger ε holds here as well.
            let looser_bound = before(at).and_then(|corner| corner.lower_bound);
            let earlier_s = of_rank.filter(|_| inputs == InputSet::Free).map_or(0.0, |(.., s)| *s);
            corners.push(Corner {
                epsilon,
                inputs,
                rank,
                found,
                lower_bound: lower_bound.map(|bound| bound.max(looser_bound.unwrap_or(0.0))),
                wall_time_s: earlier_s + started.elapsed().as_secs_f64(),
            });
        }
        Ok(Some(corners))
    }

    /// Fits free factors of a rank. Starts are the head's own factors or the nearest ones of this rank, the result at a larger
    /// ε, and the result of the next smaller rank.
    fn free(
        &self,
        rank: usize,
        epsilon: f64,
        before: Option<&Found>,
        narrower: Option<&Found>,
    ) -> Result<Found, PredictError> {
        let passages = self.head.attention.len();
        let is_below_own = rank < self.head.rank();
        let narrower = narrower.filter(|found| found.max_abs_logit.is_some());
        if let Some(before) = before.filter(|b| is_below_own && b.is_infeasible())
            && narrower.is_none()
        {
            return Ok(before.again());
        }
        let mut given = Vec::new();
        match before.filter(|before| is_below_own && before.max_abs_logit.is_some()) {
            // The result may come from a corner below, of a smaller rank.
            Some(Found { factors: Some(factors), .. }) => {
                given.push(factors.at_rank(rank, passages)?)
            }
            Some(_) => {}
            None if is_below_own => given.push(self.centred[1].at_rank(rank, passages)?),
            None => given.push(self.head.own.at_rank(rank, passages)?),
        }
        if let Some(factors) = narrower.and_then(|found| found.factors.as_ref()) {
            given.push(factors.at_rank(rank, passages)?);
        }
        let problem = self.problem(rank)?;
        Ok(Found::of(needed_logit_from(&problem, epsilon, &given, self.search, &())?))
    }

    /// Fits free factors again from the best corner below, if that has smaller logits.
    fn free_from_below(
        &self,
        epsilon: f64,
        found: Found,
        below: &[&Found],
    ) -> Result<Found, PredictError> {
        let is_better = |below: &&Found| match (below.max_abs_logit, found.max_abs_logit) {
            (Some(below), Some(found)) => below < found,
            (below, found) => below.is_some() && found.is_none(),
        };
        let Some(given) = least(below).filter(is_better).and_then(|below| below.factors.clone())
        else {
            return Ok(found);
        };
        let problem = self.problem(given.rank())?;
        let again = Found::of(needed_logit_from(&problem, epsilon, &[given], self.search, &())?);
        Ok(again.with_work_of(&found).or_better(&found))
    }

    /// Fits a shared projection. Starts are the head's own weights or the nearest ones of a smaller rank, the result at a
    /// larger ε, the best corner below, and the projection nearest to the free factors.
    fn tied(
        &self,
        (inputs, rank): (InputSet, RankLimit),
        epsilon: f64,
        [before, below, free]: [Option<&Found>; 3],
    ) -> Result<Found, PredictError> {
        let head = self.head;
        let (_, tied) = self.tied.iter().find(|(set, _)| *set == inputs).expect("a set asked for");
        let options = self.search;
        let RankLimit::Of(rank) = rank else {
            // The problem is convex, so one start is enough.
            let start = [below, before].into_iter().flatten().find_map(|f| f.factors.clone());
            let start = match start {
                Some(found) if found.rank() < head.rank() => found.at_rank(head.rank(), 1)?,
                Some(found) => found,
                None => head.own.clone(),
            };
            let needed = needed_logit_at_any_rank_from(
                &head.problem,
                tied,
                &[start],
                epsilon,
                options,
                &(),
            )?;
            return Ok(Found::of(needed.expect("only bilinear heads have corners of any rank")));
        };
        let is_below_own = rank < head.rank();
        if let Some(before) = before.filter(|b| is_below_own && b.is_infeasible())
            && below.is_none()
        {
            return Ok(before.again());
        }
        let is_own = rank == head.rank() && inputs == InputSet::Own;
        let tied = match is_own {
            true => tied.clone(),
            false => tied.of_rank(rank)?,
        };
        let mut given: Vec<Factors> = Vec::new();
        let before = before.filter(|before| before.max_abs_logit.is_some());
        match before.filter(|_| is_below_own) {
            Some(_) => {}
            None if is_below_own => given.push(self.centred[0].at_rank(rank, 1)?),
            None if is_own => {}
            None => given.push(head.own.at_rank(rank, 1)?),
        }
        for found in [before, below, free].into_iter().flatten() {
            if let Some(factors) = &found.factors {
                given.push(factors.at_rank(rank, 1)?);
            }
        }
        let mut starts: Vec<Vec<f64>> = if is_own { vec![head.point.clone()] } else { Vec::new() };
        starts.extend(given.iter().filter_map(|factors| tied.nearest(factors)));
        let problem = self.problem(rank)?;
        let rough = SearchOptions { fine: options.rough, ..options };
        let rough = needed_logit_tied(&problem, &tied, &starts, epsilon, rough, &())?;
        let best = rough.best.as_ref();
        let Some(from) = best.and_then(|best| tied.nearest(&best.solution.factors)) else {
            let needed = needed_logit_tied(&problem, &tied, &starts, epsilon, options, &())?;
            return Ok(Found::of(needed).with_work_of(&Found::of(rough)));
        };
        let rough = Found::of(rough);
        let fine = needed_logit_tied(&problem, &tied, &[from], epsilon, options, &())?;
        Ok(Found::of(fine).with_work_of(&rough).or_better(&rough))
    }

    /// A proven lower bound for the head's own inputs at any rank.
    fn proven(&self, epsilon: f64, found: &Found) -> Result<f64, PredictError> {
        let TrainedHead { problem, tied, .. } = self.head;
        let Some(factors) = &found.factors else { return Ok(0.0) };
        let bound = lower_bound_at_any_rank(problem, tied, factors, epsilon, self.search)?;
        Ok(bound.unwrap_or(0.0))
    }

    fn problem(&self, rank: usize) -> Result<Problem, PredictError> {
        let problem = &self.head.problem;
        Ok(Problem::new(problem.target().clone(), problem.layout().clone(), rank)?)
    }
}

/// Indices of the `places` within a corner that are not within another such place.
fn directly_below(places: &[Place], inputs: InputSet, rank: RankLimit) -> Vec<usize> {
    let is_within = |one: &Place, inputs: InputSet, rank: RankLimit| {
        one.inputs.is_within(inputs) && one.rank <= rank
    };
    let within: Vec<usize> =
        (0..places.len()).filter(|&at| is_within(&places[at], inputs, rank)).collect();
    let is_direct = |&one: &usize| {
        let over = |&&other: &&usize| {
            let Place { inputs, rank, .. } = places[other];
            other != one && is_within(&places[one], inputs, rank)
        };
        !within.iter().any(|other| over(&other))
    };
    within.iter().copied().filter(is_direct).collect()
}

/// The solution of smallest max |logit|, if any.
fn least<'f>(all: &[&'f Found]) -> Option<&'f Found> {
    let reached = all.iter().copied().filter_map(|found| Some((found.max_abs_logit?, found)));
    reached.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, found)| found)
}

/// Subtracts the mean of the keys over each of `blocks` equal blocks of rows; this shifts every row's logits within a block.
fn centred(own: &Factors, blocks: usize) -> Result<Factors, PredictError> {
    let mut keys = own.keys().clone();
    let rows = own.n() / blocks;
    for block in 0..blocks {
        let mut keys = keys.slice_mut(s![0, block * rows..(block + 1) * rows, ..]);
        let mean = keys.mean_axis(Axis(0)).expect("a passage has tokens");
        keys -= &mean;
    }
    Factors::new(own.queries().clone(), keys, own.weights().clone())
        .map_err(|e| FitError::from(e).into())
}

impl Found {
    /// The better of two solutions, with the work of the first.
    fn or_better(self, other: &Self) -> Self {
        let better = match (self.max_abs_logit, other.max_abs_logit) {
            (Some(own), Some(other)) => other < own,
            (own, other) => own.is_none() && other.is_some(),
        };
        let Self { iterations, evaluations, .. } = self;
        if better { Self { iterations, evaluations, ..other.clone() } } else { self }
    }

    fn with_work_of(mut self, other: &Self) -> Self {
        self.iterations += other.iterations;
        self.evaluations += other.evaluations;
        self
    }

    fn is_infeasible(&self) -> bool {
        self.outcome == Outcome::Infeasible
    }

    /// A copy without the work.
    fn again(&self) -> Self {
        Self { iterations: 0, evaluations: 0, ..self.clone() }
    }
}

#[cfg(test)]
mod tests;
