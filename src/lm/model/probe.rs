//! A model's queries and keys, head by head.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use ndarray::Array2;

use super::language_model::Model;
use crate::lm::operators::EPSILON;
use crate::lm::{HeadInputs, HeadProbe, LmError, NormalisedInputs};
use crate::pattern::Visibility;

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
            let slopes = block.slopes().map(Tensor::to_vec1::<f32>).transpose()?;
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
                    slope: slopes.as_ref().map(|slopes| slopes[head]),
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
