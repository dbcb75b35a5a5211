//! Trained models as their heads' queries and keys, to hold their logits against those that a fit needs.

use std::sync::Arc;

use ndarray::{Array2, Axis, s};

use super::LmError;
use super::corpus::{Split, Texts};
use crate::numerics::{product, softmax};
use crate::pattern::{HeadKind, Visibility};

/// A trained model whose heads can be looked at, whether it was trained here or published.
pub trait Probed {
    /// The longest passage that it reads, in tokens.
    fn context(&self) -> usize;

    /// Tokens of a record, where it reads records: each passage begins where one does.
    fn record(&self) -> Option<usize> {
        None
    }

    /// How many blocks it has.
    fn layers(&self) -> usize;

    /// Heads of one layer.
    fn heads(&self) -> usize;

    /// The first tokens, `most` at most, of texts or of one split of them; documents follow one another.
    ///
    /// # Errors
    /// Texts that cannot be read or divided, or that the vocabulary cannot write; no texts for a model that needs
    /// some.
    fn tokens(
        &self,
        texts: Option<&Texts>,
        split: Option<Split>,
        most: usize,
    ) -> Result<Vec<u32>, LmError>;

    /// The queries and keys of every head, by layer and head, on one passage of 1 to [`Self::context`] tokens.
    ///
    /// # Errors
    /// No token, more than the context, or one that the vocabulary lacks.
    fn probe(&self, passage: &[u32]) -> Result<Vec<HeadProbe>, LmError>;
}

/// One head's queries and keys on one sequence of T tokens, as attention gets them: its logits are
/// QKᵀ/√D, in nats, before any softcap and without any slope over the lag.
#[derive(Clone, Debug)]
pub struct HeadProbe {
    /// The decoder block, from 0.
    pub layer: usize,
    /// The head within its layer, from 0.
    pub head: usize,
    /// Whether a row sees what comes after it.
    pub visibility: Visibility,
    /// What the head sees of that.
    pub kind: HeadKind,
    /// Q, (T, D), not yet divided by √D.
    pub queries: Array2<f32>,
    /// K, (T, D).
    pub keys: Array2<f32>,
    /// The bound c of the attention logits c tanh(z/c), where they have one.
    pub softcap: Option<f32>,
    /// The slope m of what is added to them, −m |j − i|, where the head has one.
    pub slope: Option<f32>,
    /// What the queries and keys are made of.
    pub inputs: HeadInputs,
}

/// What a head's queries and keys are made of: Q = X·W_q and K = X·W_k, normalised and turned by their positions
/// where the model does that.
#[derive(Clone, Debug)]
pub struct HeadInputs {
    /// X, (T, C): the layer's own normalised input, with a column of ones where the projections have
    /// biases. The heads of a layer share it.
    pub stream: Arc<Array2<f32>>,
    /// X·W_q and X·W_k, (T, D) each, before they are normalised and turned.
    pub projected: [Array2<f32>; 2],
    /// How both are normalised, where they are.
    pub normalised: Option<NormalisedInputs>,
    /// (cos θ, sin θ) by position and pair of channels, (T, D/2), where they are turned.
    pub turns: Option<Arc<Array2<[f32; 2]>>>,
}

/// Queries and keys as (x − mean)/√(variance + ε) ∘ gain of each row.
#[derive(Clone, Debug)]
pub struct NormalisedInputs {
    /// The gains of queries and keys, (D) each.
    pub gains: [Vec<f32>; 2],
    /// ε.
    pub epsilon: f32,
}

impl HeadProbe {
    /// Z = QKᵀ/√D in nats, before any softcap and without any slope, (T, T); −∞ where a row does not see a column.
    pub fn logits(&self) -> Array2<f64> {
        self.logits_of(&(0..self.queries.nrows()).collect::<Vec<_>>())
    }

    /// The attention matrix P, (T, T), row-stochastic: softmax of the logits, after any softcap and with
    /// any slope.
    pub fn attention(&self) -> Array2<f64> {
        self.attention_of(&(0..self.queries.nrows()).collect::<Vec<_>>())
    }

    /// Some rows of the attention matrix, (rows, T).
    ///
    /// # Panics
    /// Where there is no such row.
    pub fn attention_of(&self, rows: &[usize]) -> Array2<f64> {
        let mut p = self.logits_of(rows);
        let cap = self.softcap.map(f64::from);
        for (&row, mut p) in rows.iter().zip(p.rows_mut()) {
            if let Some(cap) = cap {
                p.mapv_inplace(|z| if z.is_finite() { cap * (z / cap).tanh() } else { z });
            }
            if let Some(slope) = self.slope.map(f64::from) {
                for (column, y) in p.iter_mut().enumerate() {
                    *y -= slope * column.abs_diff(row) as f64;
                }
            }
            let all = 0..p.len();
            softmax(p, all);
        }
        p
    }

    /// Some rows of the logits, (rows, T).
    ///
    /// # Panics
    /// Where there is no such row.
    pub fn logits_of(&self, rows: &[usize]) -> Array2<f64> {
        let (queries, keys) = (self.queries.mapv(f64::from), self.keys.mapv(f64::from));
        let queries = queries.select(Axis(0), rows);
        let z = product(queries.view(), keys.t()) / (queries.ncols() as f64).sqrt();
        let mut seen = Array2::from_elem(z.dim(), f64::NEG_INFINITY);
        for ((&row, z), mut seen) in rows.iter().zip(z.rows()).zip(seen.rows_mut()) {
            for segment in self.kind.segments(row, z.len(), self.visibility) {
                seen.slice_mut(s![segment.clone()]).assign(&z.slice(s![segment]));
            }
        }
        seen
    }
}
