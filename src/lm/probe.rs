//! Probes of trained models: the queries and keys of their heads, for comparison with fits.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ndarray::{Array2, ArrayView1, Axis, s};

use super::corpus::{Split, Texts};
use super::{LmError, Model};
use crate::numerics::{product, softmax};
use crate::targets::{HeadKind, Visibility};

/// A model whose heads can be probed, whether it was trained here, published or exported.
pub trait Probed {
    /// The longest passage in tokens.
    fn context(&self) -> usize;

    /// Tokens that precede the tokens of a text in every passage.
    fn beginning(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The only passages with heads, if the model cannot compute others; a probed passage must begin one of them.
    fn own_passages(&self) -> Option<&[Vec<u32>]> {
        None
    }

    /// The number of blocks.
    fn layers(&self) -> usize;

    /// The number of heads per layer.
    fn heads(&self) -> usize;

    /// At most `most` tokens from the start of the concatenated texts, or of one split of them.
    ///
    /// # Errors
    /// Texts that cannot be read or divided, or that the vocabulary cannot encode; no texts, if the model needs
    /// some.
    fn tokens(
        &self,
        texts: Option<&Texts>,
        split: Option<Split>,
        most: usize,
    ) -> Result<Vec<u32>, LmError>;

    /// The text of each token of a passage. `None` if tokens have no written form.
    fn token_texts(&self, _passage: &[u32]) -> Option<Vec<String>> {
        None
    }

    /// Calls `each` with the heads of each of `layers` in order: by passage, of 1 to
    /// [`Self::context`] tokens, and by head. A layer that the model lacks has no heads. Computation ends after the last
    /// of `layers` or after a break.
    ///
    /// # Errors
    /// A passage without tokens or longer than the context, a token that the vocabulary lacks, or weights that cannot be read.
    fn probe_layers(
        &self,
        passages: &[Vec<u32>],
        layers: Range<usize>,
        each: &mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>,
    ) -> Result<(), LmError>;

    /// Mean cross-entropy in nats of a passage's tokens after the first, with the attention that `attend` returns; see
    /// [`Model::passage_loss`](super::Model::passage_loss).
    ///
    /// # Errors
    /// As that method, and a model without an output layer.
    fn passage_loss(&self, _passage: &[u32], _attend: &mut Attend<'_>) -> Result<f64, LmError> {
        Err(LmError::no_loss())
    }

    /// Its weights as they are trained here; `None` if the model is another program's.
    fn model(&self) -> Option<&Model> {
        None
    }

    /// The heads of one layer, by passage and head.
    ///
    /// # Errors
    /// As [`Self::probe_layers`].
    fn probe_layer(&self, passages: &[Vec<u32>], layer: usize) -> Result<HeadsOfLayer, LmError> {
        let mut found = Vec::new();
        self.probe_layers(passages, layer..layer + 1, &mut |heads| {
            found = heads;
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// All heads on one passage, by layer and head.
    ///
    /// # Errors
    /// As [`Self::probe_layers`].
    fn probe(&self, passage: &[u32]) -> Result<Vec<HeadProbe>, LmError> {
        let mut found = Vec::new();
        self.probe_layers(&[passage.to_vec()], 0..self.layers(), &mut |heads| {
            found.extend(heads.into_iter().flatten());
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

impl dyn Probed + '_ {
    /// Calls `each` with the heads of each of `layers` in ascending order until it returns `false`. Returns whether
    /// all layers were processed.
    ///
    /// # Errors
    /// As [`Probed::probe_layers`], and the errors of `each`.
    pub fn each_layer<E: From<LmError>>(
        &self,
        passages: &[Vec<u32>],
        layers: &[usize],
        mut each: impl FnMut(HeadsOfLayer) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let (Some(&first), Some(&last)) = (layers.iter().min(), layers.iter().max()) else {
            return Ok(true);
        };
        let mut layer = first;
        let mut so_far = Ok(true);
        self.probe_layers(passages, first..last + 1, &mut |heads| {
            if layers.contains(&layer) {
                so_far = each(heads);
            }
            layer += 1;
            match so_far {
                Ok(true) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        })?;
        so_far
    }
}

/// Called for each head during a forward pass. It returns the attention P̃, (T, T), that replaces the
/// head's own, or `None` to keep that.
pub type Attend<'a> = dyn FnMut(&HeadProbe) -> Result<Option<Array2<f64>>, LmError> + 'a;

/// The heads of one layer, by passage and head.
pub type HeadsOfLayer = Vec<Vec<HeadProbe>>;

/// Queries and keys of one head on one sequence of T tokens, as attention receives them. Its logits are
/// z = s·QKᵀ, before any softcap and without any position bias.
#[derive(Clone, Debug)]
pub struct HeadProbe {
    /// The block, from 0.
    pub layer: usize,
    /// The head within its layer, from 0.
    pub head: usize,
    /// Mask: causal or bidirectional.
    pub visibility: Visibility,
    /// Global, or local with a window.
    pub kind: HeadKind,
    /// Q, (T, D), not yet multiplied by s.
    pub queries: Array2<f32>,
    /// K, (T, D).
    pub keys: Array2<f32>,
    /// Index of K among the layer's key heads, from 0; with grouped queries several query heads share one.
    pub key_head: usize,
    /// The scale s, 1/√D in most models.
    pub scale: f64,
    /// The softcap c of attention logits c tanh(z/c), if there is one.
    pub softcap: Option<f32>,
    /// The position bias, if there is one.
    pub bias: Option<PositionBias>,
    /// The logit of a learned attention sink, if there is one: an additional entry of the softmax, the same
    /// in every row, whose share goes to no token.
    pub sink: Option<f32>,
    /// The inputs from which queries and keys are computed.
    pub inputs: HeadInputs,
}

/// The inputs of a head's queries and keys: Q = X·W_q and K = X·W_k, then normalised and rotated by position
/// if the model does that.
#[derive(Clone, Debug)]
pub struct HeadInputs {
    /// X, (T, C): the layer's normalised input, with a column of ones if the projections have
    /// biases. The heads of a layer share it.
    pub stream: Arc<Array2<f32>>,
    /// X·W_q and X·W_k, (T, D) each, before normalisation and rotation.
    pub projected: [Array2<f32>; 2],
    /// The normalisation of both, if there is one.
    pub normalised: Option<NormalisedInputs>,
    /// (cos θ, sin θ) by position and pair of channels, (T, D/2), for rotary positions.
    pub turns: Option<Arc<Array2<[f32; 2]>>>,
}

/// A bias b(j − i) by relative position, which is added to the logits after any softcap.
#[derive(Clone, Debug)]
pub enum PositionBias {
    /// −m |j − i| with this slope m.
    Linear(f32),
    /// b of j − i from −(T − 1) to T − 1, (2T − 1) with T ≥ the tokens of a passage.
    Table(Arc<[f32]>),
}

impl PositionBias {
    /// b(j − i) for row i and column j.
    ///
    /// # Panics
    /// If the table is shorter.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        match self {
            Self::Linear(slope) => f64::from(-slope) * column.abs_diff(row) as f64,
            Self::Table(values) => f64::from(values[values.len() / 2 + column - row]),
        }
    }

    /// The slope m of a linear bias.
    pub fn slope(&self) -> Option<f64> {
        match self {
            Self::Linear(slope) => Some((*slope).into()),
            Self::Table(_) => None,
        }
    }
}

/// Queries or keys of one head on one passage: after the projection, and as attention receives them.
pub(super) struct Side {
    pub(super) projected: Array2<f32>,
    pub(super) made: Array2<f32>,
}

/// The normalisation of a head's queries and keys.
#[derive(Clone, Debug)]
pub enum NormalisedInputs {
    /// Each row of each head separately: (x − mean)/√(variance + ε) ∘ gain, or x/√(mean square + ε) ∘ gain.
    Each {
        /// The gains of queries and keys, (D) each.
        gains: [Vec<f32>; 2],
        /// ε.
        epsilon: f32,
        /// Whether the mean is subtracted.
        centred: bool,
    },
    /// The rows of all heads of the layer together, so the divisor does not depend on this head alone: a row of
    /// X·W_q, whose gain is part of W_q, times a factor per row; likewise for keys.
    Together {
        /// The factors of the rows of queries and of keys, (T) each.
        scales: [Arc<Vec<f32>>; 2],
    },
}

impl HeadProbe {
    /// Z = s·QKᵀ before any softcap and without any position bias, (T, T); −∞ for masked pairs.
    pub fn logits(&self) -> Array2<f64> {
        self.logits_of(&(0..self.queries.nrows()).collect::<Vec<_>>())
    }

    /// The attention matrix P, (T, T), row-stochastic: softmax of the logits after any softcap and with
    /// any position bias. The share of a learned sink is left out; P divides the rest.
    pub fn attention(&self) -> Array2<f64> {
        self.attention_of(&(0..self.queries.nrows()).collect::<Vec<_>>())
    }

    /// Rows `rows` of the attention matrix, (rows, T).
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn attention_of(&self, rows: &[usize]) -> Array2<f64> {
        let mut p = self.exponents_of(rows);
        for p in p.rows_mut() {
            let all = 0..p.len();
            softmax(p, all);
        }
        p
    }

    /// The share of the learned sink in each of `rows`, (rows); 0 if there is no sink.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn sink_shares_of(&self, rows: &[usize]) -> Vec<f64> {
        let Some(sink) = self.sink.map(f64::from) else { return vec![0.0; rows.len()] };
        let share = |y: ArrayView1<'_, f64>| {
            let most = y.fold(sink, |most, &y| most.max(y));
            let tokens: f64 = y.iter().map(|y| (y - most).exp()).sum();
            let sink = (sink - most).exp();
            sink / (sink + tokens)
        };
        self.exponents_of(rows).rows().into_iter().map(share).collect()
    }

    /// The inputs of the softmax, (rows, T): the logits after any softcap and with any position bias.
    fn exponents_of(&self, rows: &[usize]) -> Array2<f64> {
        let mut y = self.logits_of(rows);
        let cap = self.softcap.map(f64::from);
        for (&row, mut y) in rows.iter().zip(y.rows_mut()) {
            if let Some(cap) = cap {
                y.mapv_inplace(|z| if z.is_finite() { cap * (z / cap).tanh() } else { z });
            }
            if let Some(bias) = &self.bias {
                for (column, y) in y.iter_mut().enumerate() {
                    *y += bias.at(row, column);
                }
            }
        }
        y
    }

    /// Rows `rows` of the logits, (rows, T).
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn logits_of(&self, rows: &[usize]) -> Array2<f64> {
        let (queries, keys) = (self.queries.mapv(f64::from), self.keys.mapv(f64::from));
        let queries = queries.select(Axis(0), rows);
        let z = product(queries.view(), keys.t()) * self.scale;
        let mut seen = Array2::from_elem(z.dim(), f64::NEG_INFINITY);
        for ((&row, z), mut seen) in rows.iter().zip(z.rows()).zip(seen.rows_mut()) {
            let columns = self.kind.columns(row, z.len(), self.visibility);
            seen.slice_mut(s![columns.clone()]).assign(&z.slice(s![columns]));
        }
        seen
    }
}
