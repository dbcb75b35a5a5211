//! A trained model's queries and keys, to hold its logits against those that a fit needs.

use candle_core::{Device, Tensor};
use ndarray::Array2;

use super::{LmError, Model};
use crate::target::HeadKind;

/// One head's queries and keys on one sequence of T tokens, as attention gets them: its logits are
/// QKᵀ/√D, in nats, before any softcap.
#[derive(Clone, Debug)]
pub struct HeadProbe {
    /// The decoder block, from 0.
    pub layer: usize,
    /// The head within its layer, from 0.
    pub head: usize,
    /// What the head sees.
    pub kind: HeadKind,
    /// Q, (T, D), not yet divided by √D.
    pub queries: Array2<f32>,
    /// K, (T, D).
    pub keys: Array2<f32>,
}

impl Model {
    /// The queries and keys of every head, by layer and head, on one sequence of at most a context.
    ///
    /// # Errors
    /// More tokens than the context, or one that the vocabulary lacks.
    pub fn probe(&self, tokens: &[u32]) -> Result<Vec<HeadProbe>, LmError> {
        let sizes = (1, tokens.len());
        let mut x = self.frozen.embed(&Tensor::from_slice(tokens, sizes, &Device::Cpu)?)?;
        let mut probes = Vec::new();
        for (layer, block) in self.frozen.blocks.iter().enumerate() {
            let [q, k, _] = block.heads_of(&x, sizes)?;
            for (head, &kind) in block.heads.kinds.iter().enumerate() {
                let (queries, keys) = (one_head(&q, head)?, one_head(&k, head)?);
                probes.push(HeadProbe { layer, head, kind, queries, keys });
            }
            (x, _) = block.forward(&x, sizes)?;
        }
        Ok(probes)
    }
}

/// Head `head` of a (1, T, H, D) tensor.
fn one_head(x: &Tensor, head: usize) -> Result<Array2<f32>, LmError> {
    let (_, t, _, d) = x.dims4()?;
    let data = x.narrow(2, head, 1)?.flatten_all()?.to_vec1::<f32>()?;
    Ok(Array2::from_shape_vec((t, d), data).map_err(candle_core::Error::wrap)?)
}
