//! The five factors of a trained head's largest logit.

use super::{PredictError, TrainedHead};
use crate::solver::{
    Candidate, Floor, Needed, Outcome, SearchOptions, Solution, needed_logit_from,
    needed_logit_tied,
};

/// A search ends if its result is within this relative distance of a lower bound.
const NEAR: f64 = 5e-3;

/// What a trained head's attention needs at one ε. Factors hold queries and keys of every passage, one below the other; where
/// no logits are needed, a fit is converged and has no factors.
#[derive(Clone, Debug)]
pub struct Parts {
    /// ε, in nats.
    pub epsilon: f64,
    /// L⁰(ε; P): the smallest max |logit| of logits of any rank; 0 if P is within ε of uniform attention. `None` if no logits
    /// reach ε.
    pub floor: Option<f64>,
    /// The fit with free queries and keys: L*(ε; P, d).
    pub needed: Needed,
    /// The fit with queries and keys that are projections of the head's own inputs: Lˣ(ε; P, d).
    pub needed_from_input: Needed,
    /// The rank of the head's inputs on these tokens.
    pub input_rank: usize,
}

impl TrainedHead {
    /// Computes the max |logit| that the head's attention needs at error ε = `epsilon`.
    ///
    /// The fit of free queries and keys starts at the head's own, within its own largest logit, and at `options.starts` others.
    /// The fit of shared projections starts at the projections nearest to the free result and at the head's own weights. So
    /// floor ≤ needed ≤ needed_from_input ≤ actual up to rounding. Without other starts and passes, fits stop early
    /// ([`SearchOptions::sparing`]), within about 1 % of a thorough search.
    ///
    /// # Errors
    /// `epsilon` is not above 0.
    pub fn parts(&self, epsilon: f64, options: SearchOptions) -> Result<Parts, PredictError> {
        let Self { problem, own, tied, point, .. } = self;
        let input_rank = tied.input_rank();
        let floor = Floor::new(problem).max_abs_logit(epsilon);
        if floor == Some(0.0) {
            // Uniform attention is within ε, and weights of zero give it.
            let [needed, needed_from_input] = [Needed::NO_LOGITS; 2];
            return Ok(Parts { epsilon, floor, needed, needed_from_input, input_rank });
        }
        let near = |least: Option<f64>| least.map(|least| (1.0 + NEAR) * least);
        let is_sparing = options.starts == 0 && options.passes == 0;
        let options = SearchOptions { sparing: near(floor).filter(|_| is_sparing), ..options };
        let free = needed_logit_from(problem, epsilon, std::slice::from_ref(own), options, &())?;
        // Starts: the projections nearest to the free result, and the head's own weights.
        let nearest = free.solution().and_then(|found| tied.nearest(&found.factors));
        let starts: Vec<Vec<f64>> = nearest.into_iter().chain([point.clone()]).collect();
        let needed = free.max_abs_logit();
        let of_tied =
            SearchOptions { sparing: options.sparing.and(near(needed.or(floor))), ..options };
        let made = if is_sparing { &tied.clone().sparing() } else { tied };
        let by_inputs = needed_logit_tied(problem, made, &starts, epsilon, of_tied, &())?;
        // Factors of shared projections are valid free factors too.
        let reached = by_inputs.best.as_ref().filter(|_| by_inputs.outcome != Outcome::Infeasible);
        let better =
            |best: &&Candidate| needed.is_none_or(|needed| best.solution.max_abs_logit < needed);
        let needed = match reached.filter(better) {
            None => free,
            Some(best)
                if needed.is_some_and(|n| near(Some(best.solution.max_abs_logit)) >= Some(n)) =>
            {
                Needed { best: Some(best.clone()), ..free }
            }
            Some(best) => {
                let given = std::slice::from_ref(&best.solution.factors);
                needed_logit_from(problem, epsilon, given, options, &())?
            }
        };
        Ok(Parts { epsilon, floor, needed, needed_from_input: by_inputs, input_rank })
    }
}

impl Needed {
    /// The result for uniform attention, which weights of zero give.
    const NO_LOGITS: Self =
        Self { outcome: Outcome::Converged, best: None, iterations: 0, evaluations: 0 };

    /// The smallest max |logit| that reached ε; 0 if no logits are needed. `None` if no logit bound up to the head's own
    /// max |logit|, or up to [`LARGEST_CAP`](crate::solver::LARGEST_CAP) if that is larger, reached it.
    pub fn max_abs_logit(&self) -> Option<f64> {
        let is_reached = self.outcome != Outcome::Infeasible;
        is_reached.then(|| self.solution().map_or(0.0, |found| found.max_abs_logit))
    }

    /// The best solution found, which is above ε if the outcome is `Infeasible`.
    pub fn solution(&self) -> Option<&Solution> {
        self.best.as_ref().map(|best| &best.solution)
    }
}

#[cfg(test)]
mod tests;
