//! A trained model's queries and keys, to hold its logits against those that a fit needs.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use ndarray::{Array2, Axis, s};

use super::{LmError, Model};
use crate::lm::operators::EPSILON;
use crate::numerics::product;
use crate::pattern::{HeadKind, Visibility};

/// One head's queries and keys on one sequence of T tokens, as attention gets them: its logits are
/// QKᵀ/√D, in nats, before any softcap.
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
    /// Z = QKᵀ/√D in nats, before any softcap, (T, T); −∞ where a row does not see a column.
    pub fn logits(&self) -> Array2<f64> {
        self.logits_of(&(0..self.queries.nrows()).collect::<Vec<_>>())
    }

    /// The attention matrix P, (T, T), row-stochastic: softmax of the logits, after any softcap.
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
        for mut p in p.rows_mut() {
            if let Some(cap) = cap {
                p.mapv_inplace(|z| if z.is_finite() { cap * (z / cap).tanh() } else { z });
            }
            let greatest = p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            p.mapv_inplace(|z| (z - greatest).exp());
            let sum = p.sum();
            p.mapv_inplace(|p| p / sum);
        }
        p
    }

    fn logits_of(&self, rows: &[usize]) -> Array2<f64> {
        let (queries, keys) = (self.queries.mapv(f64::from), self.keys.mapv(f64::from));
        let queries = queries.select(Axis(0), rows);
        let mut z = product(queries.view(), keys.t()) / (queries.ncols() as f64).sqrt();
        for (&row, mut z) in rows.iter().zip(z.rows_mut()) {
            let seen = self.kind.columns(row, z.len(), self.visibility);
            z.slice_mut(s![..seen.start]).fill(f64::NEG_INFINITY);
            z.slice_mut(s![seen.end..]).fill(f64::NEG_INFINITY);
        }
        z
    }
}

impl Model {
    /// The queries and keys of every head, by layer and head, on one sequence of at most a context.
    ///
    /// # Errors
    /// More tokens than the context, or one that the vocabulary lacks.
    pub fn probe(&self, tokens: &[u32]) -> Result<Vec<HeadProbe>, LmError> {
        let sizes = (1, tokens.len());
        let mut x = self.decoder.embed(&Tensor::from_slice(tokens, sizes, &Device::Cpu)?, 0)?.0;
        let mut probes = Vec::new();
        for (layer, block) in self.decoder.blocks.iter().enumerate() {
            let ([q, k, _], _) = block.heads_of(&x, sizes, 0)?;
            let [stream, projected_q, projected_k] = block.projected(&x)?;
            let (_, channels) = stream.dims2()?;
            let stream = Arc::new(elements(&stream, (tokens.len(), channels))?);
            let by_head = |x: Tensor| x.reshape(q.shape());
            let projected = [by_head(projected_q)?, by_head(projected_k)?];
            let normalised =
                block.gains()?.map(|gains| NormalisedInputs { gains, epsilon: EPSILON });
            let (_, _, _, d) = q.dims4()?;
            let turns = block.rotation().map(|rotation| {
                let turns = rotation.turns(tokens.len()).to_vec();
                Array2::from_shape_vec((tokens.len(), d / 2), turns)
                    .map_err(candle_core::Error::wrap)
            });
            let turns = turns.transpose()?.map(Arc::new);
            for (head, &kind) in block.heads.kinds.iter().enumerate() {
                let (queries, keys) = (one_head(&q, head)?, one_head(&k, head)?);
                let inputs = HeadInputs {
                    stream: stream.clone(),
                    projected: [one_head(&projected[0], head)?, one_head(&projected[1], head)?],
                    normalised: normalised.clone(),
                    turns: turns.clone(),
                };
                probes.push(HeadProbe {
                    layer,
                    head,
                    visibility: Visibility::Causal,
                    kind,
                    queries,
                    keys,
                    softcap: block.heads.softcap,
                    inputs,
                });
            }
            x = block.forward(&x, sizes)?.x;
        }
        Ok(probes)
    }
}

/// Head `head` of a (1, T, H, D) tensor.
fn one_head(x: &Tensor, head: usize) -> Result<Array2<f32>, LmError> {
    let (_, t, _, d) = x.dims4()?;
    elements(&x.narrow(2, head, 1)?, (t, d))
}

fn elements(x: &Tensor, shape: (usize, usize)) -> Result<Array2<f32>, LmError> {
    let data = x.flatten_all()?.to_dtype(DType::F32)?.to_vec1::<f32>()?;
    Ok(Array2::from_shape_vec(shape, data).map_err(candle_core::Error::wrap)?)
}
