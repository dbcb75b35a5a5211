//! Runs edits and measures the model's loss with the heads' attention replaced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ndarray::Array2;

use super::edit::Edit;
use super::free_fit::FreeFit;
use super::treatment::{Treatment, Unaltered};
use crate::heads::screen::largest_logit;
use crate::heads::{PredictError, TrainedHead};
use crate::lm::{HeadProbe, LmError, Matrices, Model, Probed};
use crate::record::{record, to_milliseconds};
use crate::solver::{Outcome, SearchOptions};

/// The edits of a model and how to run them.
pub struct Surgery<'a> {
    /// The model.
    pub model: &'a dyn Probed,
    /// The edits, in this order; [`Edit::Own`] always runs first.
    pub edits: &'a [Edit],
    /// The number of groups of passages, from the first, on which fits are made.
    pub fit_groups: usize,
    /// The search options of the fits.
    pub search: SearchOptions,
}

record! {
    /// The result of replacing the attention of a trained model, on one group of passages.
    pub struct InterventionMeasurement {
        /// the function that replaces attention, or the change of weights; `own` for none
        edit: String,
        /// ε of a fit
        #[unit = "nats"]
        #[range = Positive]
        epsilon: Option<f64>,
        /// the rank of a fit
        #[range = Counted]
        rank: Option<usize>,
        /// columns kept (`top-k`, `window`), or bits of weights (`rounded`, `rounded-qk`)
        size: Option<usize>,
        /// the group of passages
        group: usize,
        /// the number of passages in the group
        #[range = Counted]
        passages: usize,
        /// the tokens per passage
        #[range = Counted]
        n: usize,
        /// mean cross-entropy of the tokens after the first
        #[unit = "nats"]
        loss_nats: f64,
        /// that loss less the loss of the row `own`
        #[unit = "nats"]
        delta_loss_nats: f64,
        /// max |z| of QKᵀ/√d over all heads of the unchanged model
        #[unit = "nats"]
        max_abs_logit_before: f64,
        /// the same after the edit; empty if the edit uses no queries and keys
        #[unit = "nats"]
        max_abs_logit_after: Option<f64>,
        /// the same after the edit, for the head that was the largest before
        #[unit = "nats"]
        max_abs_logit_of_largest: Option<f64>,
        /// KL of the replacement from the attention, mean over rows and heads; empty if columns are missing
        #[unit = "nats"]
        kl_nats: Option<f64>,
        /// ½ Σ|P − P̃|, mean over rows and heads
        total_variation: f64,
        /// with a fit: the number of heads that reached ε
        reached: Option<usize>,
        /// with a fit: the outcome of the worst head
        outcome: Option<Outcome>,
        /// the time of the edit, without the time to learn it
        #[unit = "s"]
        wall_time_s: f64,
    }
}

impl InterventionMeasurement {
    /// The edit; `None` if the row's numbers do not match an edit of its name.
    pub fn edit(&self) -> Option<Edit> {
        let fit = match (self.epsilon, self.rank) {
            (None, None) => None,
            (epsilon, rank) => Some((epsilon?, rank?)),
        };
        Edit::from_parts(&self.edit, fit, self.size)
    }
}

impl Surgery<'_> {
    /// Estimates the edits' parameters on the passages `learned_on` and passes the result of each edit on each group to
    /// `found`. Returns `false` if `stop` was set before the end.
    ///
    /// # Errors
    /// The model cannot read a passage, an edit is not defined for the model or its heads, or `found` returns an error.
    pub fn run(
        &self,
        learned_on: &[Vec<u32>],
        groups: &[Vec<Vec<u32>>],
        stop: &AtomicBool,
        mut found: impl FnMut(InterventionMeasurement) -> Result<(), PredictError>,
    ) -> Result<bool, PredictError> {
        let learned = Unaltered::of(self.model, learned_on)?;
        let mut treatments = Vec::new();
        for &edit in [Edit::Own].iter().chain(self.edits) {
            treatments.push((edit, Treatment::of(edit, &learned), self.rounded(edit)?));
        }
        drop(learned);
        for (group, passages) in groups.iter().enumerate() {
            let before = Before::of(self.model, passages)?;
            let mut own_loss_nats = 0.0;
            for (edit, treatment, rounded) in &treatments {
                if matches!(edit, Edit::Fit { .. }) && group >= self.fit_groups {
                    continue;
                }
                if stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                let started = Instant::now();
                let fits = match edit.fit() {
                    Some((epsilon, rank)) => Some(before.fitted(epsilon, rank, self.search)?),
                    None => None,
                };
                let seen =
                    self.on(rounded.as_ref(), passages, treatment, fits.as_deref(), &before)?;
                if *edit == Edit::Own {
                    own_loss_nats = seen.loss_nats;
                }
                let of_fits = fits.as_ref().map(|fits| fits.iter().map(|fit| fit.max_abs_logit));
                let logits = match of_fits {
                    Some(of_fits) => Some(of_fits.collect()),
                    None => edit.has_logits().then_some(seen.max_abs_logits),
                };
                let outcomes = fits.as_ref().map(|fits| fits.iter().map(|fit| fit.outcome));
                let reached = |outcome: &Outcome| *outcome != Outcome::Infeasible;
                found(InterventionMeasurement {
                    edit: edit.name().to_owned(),
                    epsilon: edit.fit().map(|(epsilon, _)| epsilon),
                    rank: edit.fit().map(|(_, rank)| rank),
                    size: edit.size(),
                    group,
                    passages: passages.len(),
                    n: passages.first().map_or(0, Vec::len),
                    loss_nats: seen.loss_nats,
                    delta_loss_nats: seen.loss_nats - own_loss_nats,
                    max_abs_logit_before: greatest(&before.max_abs_logits),
                    max_abs_logit_after: logits.as_deref().map(greatest),
                    max_abs_logit_of_largest: logits
                        .map(|logits: Vec<f64>| logits[before.largest()]),
                    kl_nats: (!edit.cuts()).then_some(seen.divergence.kl_nats),
                    total_variation: seen.divergence.total_variation,
                    reached: outcomes.clone().map(|all| all.filter(reached).count()),
                    outcome: outcomes.and_then(|all| all.reduce(worse)),
                    wall_time_s: to_milliseconds(started.elapsed().as_secs_f64()),
                })?;
            }
        }
        Ok(true)
    }

    /// The model with rounded matrices, if that is the edit.
    fn rounded(&self, edit: Edit) -> Result<Option<Model>, PredictError> {
        let (bits, matrices) = match edit {
            Edit::Rounded { bits } => (bits, Matrices::All),
            Edit::RoundedQueriesAndKeys { bits } => (bits, Matrices::QueriesAndKeys),
            _ => return Ok(None),
        };
        let model = self.model.model().ok_or_else(LmError::no_weights)?;
        Ok(Some(model.rounded(bits, matrices)?))
    }

    /// Runs the passages of a group with a treatment.
    fn on(
        &self,
        rounded: Option<&Model>,
        passages: &[Vec<u32>],
        treatment: &Treatment,
        fits: Option<&[FreeFit]>,
        before: &Before,
    ) -> Result<Seen, PredictError> {
        let count = before.max_abs_logits.len();
        let mut seen = Seen { max_abs_logits: vec![0.0; count], ..Seen::default() };
        let share = 1.0 / (passages.len() * count) as f64;
        for (at, passage) in passages.iter().enumerate() {
            let mut head = 0;
            let mut attend = |probe: &HeadProbe| {
                let (replaced, changed) = treatment.of_head(head, probe);
                let logits = largest_logit(changed.as_ref().unwrap_or(probe));
                seen.max_abs_logits[head] = seen.max_abs_logits[head].max(logits);
                let of_fit = fits.map(|fits| fits[head].attention[at].clone());
                let other = of_fit.or(replaced);
                let own = &before.attention[head][at];
                let divergence = match &other {
                    Some(other) => Divergence::between(own, other),
                    None => Divergence::between(own, &probe.attention()),
                };
                seen.divergence.kl_nats += share * divergence.kl_nats;
                seen.divergence.total_variation += share * divergence.total_variation;
                head += 1;
                Ok(other)
            };
            let loss = match rounded {
                Some(model) => model.passage_loss(passage, &mut attend),
                None => self.model.passage_loss(passage, &mut attend),
            }?;
            seen.loss_nats += loss / passages.len() as f64;
        }
        Ok(seen)
    }
}

/// Measurements of a treated model on a group of passages.
#[derive(Default)]
struct Seen {
    loss_nats: f64,
    /// Max |z| of QKᵀ/√d, one per head.
    max_abs_logits: Vec<f64>,
    divergence: Divergence,
}

/// The unaltered model on a group of passages.
struct Before {
    unaltered: Unaltered,
    /// P, per head and passage.
    attention: Vec<Vec<Array2<f64>>>,
    /// Max |z| of each head.
    max_abs_logits: Vec<f64>,
}

impl Before {
    fn of(model: &dyn Probed, passages: &[Vec<u32>]) -> Result<Self, PredictError> {
        let unaltered = Unaltered::of(model, passages)?;
        let probes = || unaltered.probes.iter();
        let attention =
            probes().map(|of_head| of_head.iter().map(HeadProbe::attention).collect()).collect();
        let largest =
            |of_head: &Vec<HeadProbe>| of_head.iter().map(largest_logit).fold(0.0, f64::max);
        let max_abs_logits = probes().map(largest).collect();
        Ok(Self { unaltered, attention, max_abs_logits })
    }

    /// The head with the largest logit.
    fn largest(&self) -> usize {
        let logits = &self.max_abs_logits;
        (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap_or(0)
    }

    /// Fits of every head to all passages together.
    fn fitted(
        &self,
        epsilon: f64,
        rank: usize,
        search: SearchOptions,
    ) -> Result<Vec<FreeFit>, PredictError> {
        let fit = |of_head: &Vec<HeadProbe>| match rank < of_head[0].queries.nrows() {
            true => TrainedHead::new(&of_head.iter().collect::<Vec<_>>(), None)?
                .free_fit(epsilon, search),
            false => FreeFit::floor(of_head, epsilon),
        };
        self.unaltered.probes.iter().map(fit).collect()
    }
}

/// The worse of two outcomes.
fn worse(one: Outcome, other: Outcome) -> Outcome {
    let order = |outcome: Outcome| match outcome {
        Outcome::Converged => 0,
        Outcome::Infeasible => 2,
        _ => 1,
    };
    if order(other) > order(one) { other } else { one }
}

fn greatest(logits: &[f64]) -> f64 {
    logits.iter().copied().fold(0.0, f64::max)
}

/// Two distances of attention P̃ from P, (T, T) each, as means over rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Divergence {
    /// KL(Pᵢ ‖ P̃ᵢ), in nats. Entries of P̃ below the smallest positive normal float64 count as that number.
    pub kl_nats: f64,
    /// Total variation, ½ Σ|Pᵢⱼ − P̃ᵢⱼ|.
    pub total_variation: f64,
}

impl Divergence {
    pub fn between(own: &Array2<f64>, other: &Array2<f64>) -> Self {
        let rows = own.nrows() as f64;
        let (mut kl, mut variation) = (0.0, 0.0);
        for (&p, &q) in own.iter().zip(other) {
            if p > 0.0 {
                kl += p * (p / q.max(f64::MIN_POSITIVE)).ln();
            }
            variation += 0.5 * (p - q).abs();
        }
        Self { kl_nats: (kl / rows).max(0.0), total_variation: variation / rows }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn distances_are_those_worked_out_by_hand() {
        let p = array![[1.0, 0.0], [0.5, 0.5]];
        let q = array![[1.0, 0.0], [0.25, 0.75]];
        let found = Divergence::between(&p, &q);
        // ½·(½ ln 2 + ½ ln ⅔) and ½·¼.
        let kl = 0.5 * (0.5 * 2f64.ln() + 0.5 * (2.0f64 / 3.0).ln());
        assert!((found.kl_nats - kl).abs() < 1e-15, "{found:?}");
        assert_eq!(found.total_variation, 0.125);
        assert_eq!(Divergence::between(&p, &p), Divergence::default());
    }
}
