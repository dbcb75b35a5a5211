//! A head's attention from queries and keys that were fitted to it.

use ndarray::{Array2, s};

use crate::heads::screen::largest_logit;
use crate::heads::{PredictError, TrainedHead};
use crate::lm::HeadProbe;
use crate::numerics::{product, softmax};
use crate::solver::{Floor, Outcome, SearchOptions, needed_logit_from};
use crate::targets::Visibility;

/// The result of a fit as attention.
pub(super) struct FreeFit {
    /// P̃, (T, T), one per passage.
    pub attention: Vec<Array2<f64>>,
    /// Max |logit| of the fitted queries and keys over all passages.
    pub max_abs_logit: f64,
    /// The outcome of the fit; `Infeasible` if ε was not reached.
    pub outcome: Outcome,
}

impl FreeFit {
    /// The attention of smallest max |logit| at any rank within ε of a head's own, passage by passage.
    ///
    /// # Errors
    /// A head whose attention has no fit.
    pub(super) fn floor(probes: &[HeadProbe], epsilon: f64) -> Result<Self, PredictError> {
        let mut all =
            Self { attention: Vec::new(), max_abs_logit: 0.0, outcome: Outcome::Converged };
        for probe in probes {
            let head = TrainedHead::new(&[probe], None)?;
            let floor = Floor::new(&head.problem);
            let found = floor.max_abs_logit(epsilon).and_then(|z| Some((z, floor.logits(z)?)));
            let (max_logit, logits) =
                found.unwrap_or_else(|| (largest_logit(probe), probe.logits()));
            all.attention.push(head.attention_of(logits));
            all.max_abs_logit = all.max_abs_logit.max(max_logit);
        }
        Ok(all)
    }
}

impl TrainedHead {
    /// Fits free queries and keys of the head's rank. Returns the result of smallest max |logit| with kl_nats ≤ ε, or of
    /// smallest kl_nats if none reaches ε. The fit starts at the head's own queries and keys. If uniform attention is within
    /// ε, the result is uniform attention.
    ///
    /// # Errors
    /// `epsilon` is not above 0.
    pub(super) fn free_fit(
        &self,
        epsilon: f64,
        search: SearchOptions,
    ) -> Result<FreeFit, PredictError> {
        let Self { problem, own, .. } = self;
        let passages = self.attention.len();
        if Floor::new(problem).max_abs_logit(epsilon) == Some(0.0) {
            let queries = Array2::zeros((self.tokens, self.rank()));
            let uniform = self.attention_by(&queries, &queries);
            let attention = vec![uniform; passages];
            return Ok(FreeFit { attention, max_abs_logit: 0.0, outcome: Outcome::Converged });
        }
        let needed = needed_logit_from(problem, epsilon, std::slice::from_ref(own), search, &())?;
        let found = needed.solution().map_or(own, |found| &found.factors);
        let attention = (0..passages).map(|at| {
            let rows = s![0, at * self.tokens..(at + 1) * self.tokens, ..];
            let [queries, keys] = [found.queries(), found.keys()].map(|m| m.slice(rows).to_owned());
            self.attention_by(&queries, &keys)
        });
        Ok(FreeFit {
            attention: attention.collect(),
            max_abs_logit: needed.solution().map_or(0.0, |found| found.max_abs_logit),
            outcome: needed.outcome,
        })
    }

    /// softmax(QKᵀ/√r) over the columns to which the head may attend in one passage, (T, T).
    fn attention_by(&self, queries: &Array2<f64>, keys: &Array2<f64>) -> Array2<f64> {
        self.attention_of(product(queries.view(), keys.t()) / (queries.ncols() as f64).sqrt())
    }

    /// The softmax of logits in one passage, (T, T).
    fn attention_of(&self, mut p: Array2<f64>) -> Array2<f64> {
        for (row, p) in p.rows_mut().into_iter().enumerate() {
            softmax(p, self.kind.columns(row, self.tokens, Visibility::Causal));
        }
        p
    }
}
