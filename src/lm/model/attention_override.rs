//! The forward pass head by head, in which a caller may replace the attention of any head.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use ndarray::{Array2, s};

use super::language_model::Model;
use crate::lm::attention::attention;
use crate::lm::operators::{EPSILON, Objective, output_loss};
use crate::lm::{Attend, HeadInputs, HeadProbe, LmError, NormalisedInputs, PositionBias};
use crate::numerics::product;
use crate::targets::Visibility;

impl Model {
    /// Queries and keys of every head, by layer and head, on one sequence of at most one context.
    ///
    /// # Errors
    /// More tokens than the context, or one that the vocabulary lacks.
    pub fn probe(&self, tokens: &[u32]) -> Result<Vec<HeadProbe>, LmError> {
        let mut probes = Vec::new();
        self.stream_after(tokens, &mut |probe| {
            probes.push(probe.clone());
            Ok(None)
        })?;
        Ok(probes)
    }

    /// Mean cross-entropy in nats of a passage's tokens after the first, with the attention that `attend` returns.
    /// It is called layer by layer and head by head with the queries and keys computed from the residual stream
    /// that earlier replacements have changed. The output of a replaced head is P̃·V with the values of that stream. Entries
    /// of P̃ outside the head's mask are ignored; rows are used as they are and need not sum to one.
    ///
    /// ```
    /// use rank_study::lm::{Model, ModelShape, TrainDefinition};
    ///
    /// let definition =
    ///     TrainDefinition { layers: 1, d_model: 8, heads: 2, context: 12, ..TrainDefinition::default() };
    /// let model = Model::new(ModelShape::new(&definition, 5), 0.5, 0)?;
    /// let passage = [0, 3, 1, 4, 2, 2, 0, 1];
    /// let own = model.passage_loss(&passage, &mut |_| Ok(None))?;
    /// let again = model.passage_loss(&passage, &mut |probe| Ok(Some(probe.attention())))?;
    /// assert!((own - again).abs() < 1e-5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A passage of fewer than two tokens, more tokens than the
    /// context, a token that the vocabulary lacks, a P̃ of another shape, and the errors of `attend`.
    pub fn passage_loss(&self, passage: &[u32], attend: &mut Attend<'_>) -> Result<f64, LmError> {
        let Some(next @ [_, ..]) = passage.get(1..) else {
            return Err(LmError::too_few("the passage", passage.len(), 2, "tokens"));
        };
        let x = self.stream_after(passage, attend)?;
        let (hidden, _) = self.decoder.after_blocks(&x.narrow(0, 0, next.len())?)?;
        let targets = Tensor::from_slice(next, next.len(), &Device::Cpu)?;
        let embedding = self.decoder.output_embedding()?;
        let loss = output_loss(&hidden, &embedding, &targets, Objective::CROSS_ENTROPY, false)?;
        Ok(loss.cross_entropy.to_dtype(DType::F64)?.to_scalar()?)
    }

    /// The residual stream after the last block, (T, C).
    fn stream_after(&self, tokens: &[u32], attend: &mut Attend<'_>) -> Result<Tensor, LmError> {
        let (sizes, t) = ((1, tokens.len()), tokens.len());
        let mut x = self.decoder.embed(&Tensor::from_slice(tokens, sizes, &Device::Cpu)?, 0)?.0;
        for (layer, stage) in self.decoder.stages.iter().enumerate() {
            let block = stage.block()?;
            let heads = block.attention()?;
            let ([q, k, v], _) = heads.heads_of(&x, sizes, heads.turns(0))?;
            let (_, _, _, d) = q.dims4()?;
            let [stream, projected_q, projected_k] = heads.projected(&x)?;
            let (_, channels) = stream.dims2()?;
            let stream = Arc::new(elements(&stream, (t, channels))?);
            let by_head = |x: Tensor| x.reshape(q.shape());
            let projected = [by_head(projected_q)?, by_head(projected_k)?];
            let normalised = heads.gains()?.map(|gains| NormalisedInputs::Each {
                gains,
                epsilon: EPSILON,
                centred: true,
            });
            let turns = heads.rotation.as_ref().map(|rotation| {
                let turns = rotation.turns(t).to_vec();
                Array2::from_shape_vec((t, d / 2), turns).map_err(candle_core::Error::wrap)
            });
            let turns = turns.transpose()?.map(Arc::new);
            let slopes = heads.slopes().map(Tensor::to_vec1::<f32>).transpose()?;
            // (T, H·D): the heads' own outputs, and the outputs with replaced heads.
            let own = attention(&q, &k, &v, heads.slopes(), &heads.heads)?;
            let mut outputs = own.output.reshape((t, ()))?;
            let mut replaced = None;
            for (head, &kind) in heads.heads.kinds.iter().enumerate() {
                let inputs = HeadInputs {
                    stream: stream.clone(),
                    projected: [one_head(&projected[0], head)?, one_head(&projected[1], head)?],
                    normalised: normalised.clone(),
                    turns: turns.clone(),
                };
                let probe = HeadProbe {
                    layer,
                    head,
                    visibility: Visibility::Causal,
                    kind,
                    queries: one_head(&q, head)?,
                    keys: one_head(&k, head)?,
                    key_head: head,
                    scale: 1.0 / (d as f64).sqrt(),
                    softcap: heads.heads.softcap,
                    bias: slopes.as_ref().map(|slopes| PositionBias::Linear(slopes[head])),
                    sink: None,
                    inputs,
                };
                let Some(attention) = attend(&probe)? else { continue };
                if replaced.is_none() {
                    replaced = Some(elements(&outputs, outputs.dims2()?)?);
                }
                let values = one_head(&v, head)?.mapv(f64::from);
                let output = attended(attention, &values, &probe)?;
                let columns = s![.., head * d..(head + 1) * d];
                replaced.iter_mut().for_each(|all| all.slice_mut(columns).assign(&output));
            }
            if let Some(all) = replaced {
                let (shape, dtype) = (outputs.shape().clone(), outputs.dtype());
                let data = all.into_raw_vec_and_offset().0;
                outputs = Tensor::from_vec(data, shape, &Device::Cpu)?.to_dtype(dtype)?;
            }
            let (mixed, _) = heads.add_output(&x, &outputs)?;
            x = block.add_mlp(&mixed)?.0;
        }
        Ok(x)
    }
}

/// P̃·V over the pairs that the head's mask allows, (T, D).
pub(in crate::lm) fn attended(
    attention: Array2<f64>,
    values: &Array2<f64>,
    probe: &HeadProbe,
) -> Result<Array2<f32>, LmError> {
    let t = values.nrows();
    if attention.dim() != (t, t) {
        let found = attention.dim();
        return Err(candle_core::Error::msg(format!("attention {found:?} for {t} tokens")).into());
    }
    let mut seen = Array2::zeros((t, t));
    for row in 0..t {
        let here = s![row, probe.kind.columns(row, t, probe.visibility)];
        seen.slice_mut(here).assign(&attention.slice(here));
    }
    Ok(product(seen.view(), values.view()).mapv(|v| v as f32))
}

/// Head `head` of a (1, T, H, D) tensor as a matrix, (T, D).
fn one_head(x: &Tensor, head: usize) -> Result<Array2<f32>, LmError> {
    let (_, t, _, d) = x.dims4()?;
    elements(&x.narrow(2, head, 1)?, (t, d))
}

fn elements(x: &Tensor, shape: (usize, usize)) -> Result<Array2<f32>, LmError> {
    let data = x.flatten_all()?.to_dtype(DType::F32)?.to_vec1::<f32>()?;
    Ok(Array2::from_shape_vec(shape, data).map_err(candle_core::Error::wrap)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lm::model::tests::{with_attention, without_attention};

    const PASSAGE: [u32; 23] =
        [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6];

    /// Replacing a head's attention by the same attention leaves the loss of training unchanged. The last token of a passage
    /// has no target.
    #[test]
    fn a_head_s_own_attention_in_its_place_changes_nothing() {
        for model in with_attention() {
            // Weights so large that attention is far from uniform.
            for weight in &model.weights {
                weight.variable.set(&(weight.variable.as_tensor() * 8.0).unwrap()).unwrap();
            }
            let t = PASSAGE.len() - 1;
            let ids = Tensor::from_slice(&PASSAGE[..t], (1, t), &Device::Cpu).unwrap();
            let next = Tensor::from_slice(&PASSAGE[1..], t, &Device::Cpu).unwrap();
            let trained = model.predict(&ids).unwrap().loss_of(&next).unwrap();
            let off = |attention: &dyn Fn(&HeadProbe) -> Option<Array2<f64>>| {
                let attend = &mut |probe: &HeadProbe| Ok(attention(probe));
                (model.passage_loss(&PASSAGE, attend).unwrap() - trained).abs()
            };
            let uniform = |probe: &HeadProbe| {
                let mut zero = probe.clone();
                zero.queries.fill(0.0);
                zero.bias = None;
                Some(zero.attention())
            };
            let (none, own) = (off(&|_| None), off(&|probe| Some(probe.attention())));
            assert!(none < 1e-5 && own < 1e-5, "{:?}: off by {none:e}, {own:e}", model.shape());
            assert!(off(&uniform) > 1e-3, "{:?}: uniform attention is alike", model.shape());
        }
    }

    #[test]
    fn passages_without_a_next_token_and_attention_of_another_shape_are_refused() {
        let model = &with_attention()[0];
        for passage in [&[][..], &[1]] {
            let error = model.passage_loss(passage, &mut |_| Ok(None)).unwrap_err();
            assert!(error.to_string().contains("of the 2 tokens"), "{error}");
        }
        let wrong = model.passage_loss(&[1, 2], &mut |_| Ok(Some(Array2::zeros((3, 2)))));
        assert!(wrong.unwrap_err().to_string().contains("(3, 2)"));
        assert!(without_attention().probe(&PASSAGE).unwrap_err().to_string().contains("gam"));
    }
}
