//! Token and learned position embeddings, added.

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{CHUNK_ROWS, elements, with_elements};

/// x(b·T + t) = token(ids(b, t)) + position(t): tables of shape (V, C) and (≥ T, C) and ids of
/// shape (B, T), uint32, give (B·T, C).
///
/// # Errors
/// An id of V or more, or T above the positions there are.
pub(in crate::lm) fn embed(token: &Tensor, position: &Tensor, ids: &Tensor) -> Result<Tensor> {
    token.apply_op3(position, ids, Embedding)
}

struct Embedding;

impl CustomOp3 for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn cpu_fwd(
        &self,
        token: &CpuStorage,
        token_layout: &Layout,
        position: &CpuStorage,
        position_layout: &Layout,
        ids: &CpuStorage,
        ids_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (v, c) = token_layout.shape().dims2()?;
        let (positions, _) = position_layout.shape().dims2()?;
        let (b, t) = ids_layout.shape().dims2()?;
        let token = elements::<f32>(token, token_layout)?;
        let position = elements::<f32>(position, position_layout)?;
        let ids = elements::<u32>(ids, ids_layout)?;
        if t > positions {
            bail!("a window of {t} tokens, but the model has {positions} positions");
        }
        if let Some(id) = ids.iter().find(|&&id| id as usize >= v) {
            bail!("token {id}, but the vocabulary has {v} symbols");
        }
        let mut x = vec![0.0; b * t * c];
        x.par_chunks_mut(CHUNK_ROWS * c).enumerate().for_each(|(chunk, x)| {
            for (i, x) in x.chunks_mut(c).enumerate() {
                let row = chunk * CHUNK_ROWS + i;
                let token = &token[ids[row] as usize * c..][..c];
                let position = &position[(row % t) * c..][..c];
                for ((x, token), position) in x.iter_mut().zip(token).zip(position) {
                    *x = token + position;
                }
            }
        });
        Ok((CpuStorage::F32(x), (b * t, c).into()))
    }

    fn bwd(
        &self,
        token: &Tensor,
        position: &Tensor,
        ids: &Tensor,
        _x: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (_, c) = token.dims2()?;
        let (_, t) = ids.dims2()?;
        let mut d_token = vec![0.0; token.elem_count()];
        let mut d_position = vec![0.0; position.elem_count()];
        with_elements::<u32, _>(ids, |ids| {
            with_elements::<f32, _>(gradient, |gradient| {
                // Two tables, two threads; within a table, rows add up in the order of the text.
                rayon::join(
                    || {
                        for (g, &id) in gradient.chunks(c).zip(ids) {
                            add(&mut d_token[id as usize * c..][..c], g);
                        }
                    },
                    || {
                        for (row, g) in gradient.chunks(c).enumerate() {
                            add(&mut d_position[(row % t) * c..][..c], g);
                        }
                    },
                );
                Ok(())
            })
        })?;
        let device = token.device();
        Ok((
            Some(Tensor::from_vec(d_token, token.shape(), device)?),
            Some(Tensor::from_vec(d_position, position.shape(), device)?),
            None,
        ))
    }
}

fn add(total: &mut [f32], part: &[f32]) {
    for (total, part) in total.iter_mut().zip(part) {
        *total += part;
    }
}
