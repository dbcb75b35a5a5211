//! Token embeddings, and learned positions added to them.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{CHUNK_ROWS, elements, with_elements};

/// x(b·T + t) = token(ids(b, t)) for a table (V, C) and ids (B, T), uint32; x is (B·T, C).
///
/// # Errors
/// An id of V or more.
pub(in crate::lm) fn embed(token: &Tensor, ids: &Tensor) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if token.device().is_cuda() {
        return crate::lm::cuda::embed(token, ids);
    }
    token.apply_op2(ids, Embedding)
}

/// y(b·T + t) = x(b·T + t) + position(t) for x (B·T, C) and a table (≥ T, C).
///
/// # Errors
/// T above the positions there are.
pub(in crate::lm) fn add_positions(x: &Tensor, position: &Tensor, time: usize) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        let (rows, c) = x.dims2()?;
        let sequences = x.reshape((rows / time, time, c))?;
        return sequences.broadcast_add(&position.narrow(0, 0, time)?)?.reshape((rows, c));
    }
    x.contiguous()?.apply_op2(position, Positions { time })
}

struct Embedding;

impl CustomOp2 for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn cpu_fwd(
        &self,
        token: &CpuStorage,
        token_layout: &Layout,
        ids: &CpuStorage,
        ids_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (v, c) = token_layout.shape().dims2()?;
        let token = elements::<f32>(token, token_layout)?;
        let ids = elements::<u32>(ids, ids_layout)?;
        if let Some(id) = ids.iter().find(|&&id| id as usize >= v) {
            bail!("token {id}, but the vocabulary has {v} symbols");
        }
        let mut x = vec![0.0; ids.len() * c];
        x.par_chunks_mut(CHUNK_ROWS * c).zip(ids.par_chunks(CHUNK_ROWS)).for_each(|(x, ids)| {
            for (x, &id) in x.chunks_mut(c).zip(ids) {
                x.copy_from_slice(&token[id as usize * c..][..c]);
            }
        });
        Ok((CpuStorage::F32(x), (ids.len(), c).into()))
    }

    fn bwd(
        &self,
        token: &Tensor,
        ids: &Tensor,
        _x: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (_, c) = token.dims2()?;
        let mut d_token = vec![0.0; token.elem_count()];
        with_elements::<u32, _>(ids, |ids| {
            with_elements::<f32, _>(gradient, |gradient| {
                for (g, &id) in gradient.chunks(c).zip(ids) {
                    add(&mut d_token[id as usize * c..][..c], g);
                }
                Ok(())
            })
        })?;
        Ok((Some(Tensor::from_vec(d_token, token.shape(), token.device())?), None))
    }
}

struct Positions {
    time: usize,
}

impl CustomOp2 for Positions {
    fn name(&self) -> &'static str {
        "positions"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        position: &CpuStorage,
        position_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, c) = x_layout.shape().dims2()?;
        let (positions, _) = position_layout.shape().dims2()?;
        if self.time > positions {
            bail!("a window of {} tokens, but the model has {positions} positions", self.time);
        }
        let position = elements::<f32>(position, position_layout)?;
        let mut y = elements::<f32>(x, x_layout)?.to_vec();
        y.par_chunks_mut(CHUNK_ROWS * c).enumerate().for_each(|(chunk, rows)| {
            for (offset, y) in rows.chunks_mut(c).enumerate() {
                let at = (chunk * CHUNK_ROWS + offset) % self.time;
                add(y, &position[at * c..][..c]);
            }
        });
        Ok((CpuStorage::F32(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _x: &Tensor,
        position: &Tensor,
        _y: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (_, c) = position.dims2()?;
        let mut d_position = vec![0.0; position.elem_count()];
        with_elements::<f32, _>(gradient, |gradient| {
            for (row, g) in gradient.chunks(c).enumerate() {
                add(&mut d_position[(row % self.time) * c..][..c], g);
            }
            Ok(())
        })?;
        let d_position = Tensor::from_vec(d_position, position.shape(), position.device())?;
        Ok((Some(gradient.clone()), Some(d_position)))
    }
}

fn add(total: &mut [f32], part: &[f32]) {
    for (total, part) in total.iter_mut().zip(part) {
        *total += part;
    }
}
