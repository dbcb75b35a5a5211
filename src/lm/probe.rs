//! Trained models as their heads' queries and keys, to hold their logits against those that a fit needs.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ndarray::{Array2, ArrayView1, Axis, s};

use super::LmError;
use super::corpus::{Split, Texts};
use crate::numerics::{product, softmax};
use crate::targets::{HeadKind, Visibility};

/// A trained model whose heads can be looked at, whether it was trained here or published.
pub trait Probed {
    /// The longest passage that it reads, in tokens.
    fn context(&self) -> usize;

    /// Tokens of a record, where it reads records: each passage begins where one does.
    fn record(&self) -> Option<usize> {
        None
    }

    /// The tokens that every passage begins with, before those of a text.
    fn beginning(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The passages whose heads it has, where it can compute no others: those that are looked at begin as one of them.
    fn own_passages(&self) -> Option<&[Vec<u32>]> {
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

    /// What each token of a passage stands for in the text, whose parts they are one after another; none where tokens
    /// have no written form.
    fn token_texts(&self, _passage: &[u32]) -> Option<Vec<String>> {
        None
    }

    /// Hands the heads of some layers to `each`, a layer at a time, from the first on: on each passage, of 1 to
    /// [`Self::context`] tokens, by head; no heads of a layer that it does not have. Nothing is computed after the last
    /// of `layers`, or after a break.
    ///
    /// # Errors
    /// No token, more than the context, or one that the vocabulary lacks; weights that cannot be read.
    fn probe_layers(
        &self,
        passages: &[Vec<u32>],
        layers: Range<usize>,
        each: &mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>,
    ) -> Result<(), LmError>;

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

    /// Every head on one passage, by layer and head.
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
    /// Hands the heads of each of `layers`, from the first on, to `each`, which says whether to go on. Returns
    /// whether it came to the end.
    ///
    /// # Errors
    /// As [`Probed::probe_layers`], and those of `each`.
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

/// The heads of one layer, by passage and head.
pub type HeadsOfLayer = Vec<Vec<HeadProbe>>;

/// One head's queries and keys on one sequence of T tokens, as attention gets them: its logits are
/// z = s·QKᵀ, in nats, before any softcap and without any slope over the lag.
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
    /// Q, (T, D), not yet multiplied by s.
    pub queries: Array2<f32>,
    /// K, (T, D).
    pub keys: Array2<f32>,
    /// Which of its layer's heads of keys K is, from 0: with grouped queries, several heads share one.
    pub key_head: usize,
    /// s, 1/√D in most models.
    pub scale: f64,
    /// The bound c of the attention logits c tanh(z/c), where they have one.
    pub softcap: Option<f32>,
    /// The slope m of what is added to them, −m |j − i|, where the head has one.
    pub slope: Option<f32>,
    /// The logit of a learned sink, where the head has one: an entry of softmax beside those of the tokens, the same
    /// in every row, whose share is of no token.
    pub sink: Option<f32>,
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

/// How a head's queries and keys are normalised.
#[derive(Clone, Debug)]
pub enum NormalisedInputs {
    /// Each row of each head by itself: (x − mean)/√(variance + ε) ∘ gain, or x/√(mean square + ε) ∘ gain.
    Each {
        /// The gains of queries and keys, (D) each.
        gains: [Vec<f32>; 2],
        /// ε.
        epsilon: f32,
        /// Whether the mean is taken off.
        centred: bool,
    },
    /// The rows of all heads of the layer together, so that what divides them is not of this head alone: a row of
    /// X·W_q, its gain in W_q, times a number by row, and the same of keys.
    Together {
        /// By row, those of queries and of keys, (T) each.
        scales: [Arc<Vec<f32>>; 2],
    },
}

impl HeadProbe {
    /// Z = s·QKᵀ in nats, before any softcap and without any slope, (T, T); −∞ where a row does not see a column.
    pub fn logits(&self) -> Array2<f64> {
        self.logits_of(&(0..self.queries.nrows()).collect::<Vec<_>>())
    }

    /// The attention matrix P, (T, T), row-stochastic: softmax of the logits, after any softcap and with
    /// any slope. What a learned sink takes is left out: P is how the rest is shared.
    pub fn attention(&self) -> Array2<f64> {
        self.attention_of(&(0..self.queries.nrows()).collect::<Vec<_>>())
    }

    /// Some rows of the attention matrix, (rows, T).
    ///
    /// # Panics
    /// Where there is no such row.
    pub fn attention_of(&self, rows: &[usize]) -> Array2<f64> {
        let mut p = self.exponents_of(rows);
        for p in p.rows_mut() {
            let all = 0..p.len();
            softmax(p, all);
        }
        p
    }

    /// The share of some rows that the learned sink takes, (rows); 0 where there is none.
    ///
    /// # Panics
    /// Where there is no such row.
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

    /// What softmax is of, (rows, T): the logits after any softcap and with any slope.
    fn exponents_of(&self, rows: &[usize]) -> Array2<f64> {
        let mut y = self.logits_of(rows);
        let cap = self.softcap.map(f64::from);
        for (&row, mut y) in rows.iter().zip(y.rows_mut()) {
            if let Some(cap) = cap {
                y.mapv_inplace(|z| if z.is_finite() { cap * (z / cap).tanh() } else { z });
            }
            if let Some(slope) = self.slope.map(f64::from) {
                for (column, y) in y.iter_mut().enumerate() {
                    *y -= slope * column.abs_diff(row) as f64;
                }
            }
        }
        y
    }

    /// Some rows of the logits, (rows, T).
    ///
    /// # Panics
    /// Where there is no such row.
    pub fn logits_of(&self, rows: &[usize]) -> Array2<f64> {
        let (queries, keys) = (self.queries.mapv(f64::from), self.keys.mapv(f64::from));
        let queries = queries.select(Axis(0), rows);
        let z = product(queries.view(), keys.t()) * self.scale;
        let mut seen = Array2::from_elem(z.dim(), f64::NEG_INFINITY);
        for ((&row, z), mut seen) in rows.iter().zip(z.rows()).zip(seen.rows_mut()) {
            for segment in self.kind.segments(row, z.len(), self.visibility) {
                seen.slice_mut(s![segment.clone()]).assign(&z.slice(s![segment]));
            }
        }
        seen
    }
}
