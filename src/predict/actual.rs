//! What a trained head's logits and attention are.

use ndarray::{Array2, Array3, s};
use ndarray_linalg::QR;

use super::{PredictError, TrainedHead};
use crate::fit::Measured;
use crate::numerics::blas::on_one_thread;
use crate::pattern::{Spectrum, TargetError, Visibility};

/// The lags whose mass is told: that on the last 1, 4, 16 and 64 tokens, a token itself among them.
pub const LAGS: [usize; 4] = [1, 4, 16, 64];

/// The largest passage whose attention's singular values are computed: they take O(n³).
const LARGEST_DECOMPOSED: usize = 2048;

/// A trained head's logits and attention on its passages, over the rows that are held.
#[derive(Clone, Debug, PartialEq)]
pub struct Actual {
    /// max |z| over visible pairs of every passage, z = q·k/√d.
    pub max_abs_logit: f64,
    /// max over rows of (max − min) of the visible logits.
    pub logit_spread: f64,
    /// Mean over rows of −Σ p ln p, nats.
    pub entropy_nats: f64,
    /// [`Spectrum::effective_rank`] of QKᵀ, mean over passages: at most d.
    pub effective_rank_logits: f64,
    /// The same of the attention; none where passages are too long, or not all of their rows are held.
    pub effective_rank_attention: Option<f64>,
    /// The mass on the last of [`LAGS`] tokens, or without a causal mask on those nearer than that, mean over
    /// rows.
    pub mass_within: [f64; 4],
}

impl TrainedHead {
    /// Measures the head as it is.
    ///
    /// # Errors
    /// `Decomposition` where LAPACK fails.
    pub fn actual(&self) -> Result<Actual, PredictError> {
        let Measured { max_abs_logit, logit_spread, .. } = Measured::of(&self.problem, &self.own)?;
        let passages = self.attention.len() as f64;
        let whole = self.rows.len() == self.tokens && self.tokens <= LARGEST_DECOMPOSED;
        let effective_rank_attention = match whole {
            false => None,
            true => {
                let ranks =
                    self.attention.iter().map(|p| Ok(Spectrum::of_matrix(p)?.effective_rank));
                Some(ranks.sum::<Result<f64, TargetError>>()? / passages)
            }
        };
        let ranks = (0..self.attention.len()).map(|at| self.logits_effective_rank(at));
        Ok(Actual {
            max_abs_logit,
            logit_spread,
            entropy_nats: 0.0 - self.problem.target().mean_log_likelihood_of_itself(),
            effective_rank_logits: ranks.sum::<Result<f64, TargetError>>()? / passages,
            effective_rank_attention,
            mass_within: self.mass_within(),
        })
    }

    fn logits_effective_rank(&self, passage: usize) -> Result<f64, TargetError> {
        let of_passage = |count: usize| passage * count..(passage + 1) * count;
        let part = |m: &Array3<f64>, count: usize| m.slice(s![0, of_passage(count), ..]).to_owned();
        let queries = part(self.own.queries(), self.rows.len());
        Ok(spectrum_of_product(&queries, &part(self.own.keys(), self.tokens))?.effective_rank)
    }

    fn mass_within(&self) -> [f64; 4] {
        let mut mass = [0.0; 4];
        for p in &self.attention {
            for (&row, p) in self.rows.iter().zip(p.rows()) {
                for (mass, lag) in mass.iter_mut().zip(LAGS) {
                    let last = match self.problem.target().visibility() {
                        Visibility::Causal => row + 1,
                        Visibility::Bidirectional => (row + lag).min(p.len()),
                    };
                    *mass += p.slice(s![(row + 1).saturating_sub(lag)..last]).sum();
                }
            }
        }
        mass.map(|mass| mass / self.problem.rows() as f64)
    }
}

/// The singular values of QKᵀ, which are those of the small R_q·R_kᵀ.
pub(super) fn spectrum_of_product(
    queries: &Array2<f64>,
    keys: &Array2<f64>,
) -> Result<Spectrum, TargetError> {
    let triangle = |m: &Array2<f64>| -> Result<Array2<f64>, TargetError> {
        let (_, r) =
            on_one_thread(|| m.qr()).map_err(|e| TargetError::Decomposition(e.to_string()))?;
        Ok(r)
    };
    Spectrum::of_matrix(&triangle(queries)?.dot(&triangle(keys)?.t()))
}
