//! Token embeddings, and learned positions added to them.

use candle_core::{Result, Tensor, bail};
use rayon::prelude::*;

use super::elements::{CHUNK_ROWS, like, with_elements, with_tokens};
use super::pullback::Pullback;

/// x(b·T + t) = token(ids(b, t)) for a table (V, C) and ids (B, T), uint32; x is (B·T, C). The gradient is
/// the table's.
///
/// # Errors
/// An id of V or more.
pub(in crate::lm) fn embed(token: &Tensor, ids: &Tensor) -> Result<(Tensor, Pullback<1>)> {
    #[cfg(feature = "cuda")]
    if token.device().is_cuda() {
        return crate::lm::cuda::embed(token, ids);
    }
    let (v, c) = token.dims2()?;
    let x = with_tokens(ids, |ids| {
        if let Some(id) = ids.iter().find(|&&id| id as usize >= v) {
            bail!("token {id}, but the vocabulary has {v} symbols");
        }
        with_elements([token], |[token]| {
            let mut x = vec![0.0; ids.len() * c];
            x.par_chunks_mut(CHUNK_ROWS * c).zip(ids.par_chunks(CHUNK_ROWS)).for_each(
                |(x, ids)| {
                    for (x, &id) in x.chunks_mut(c).zip(ids) {
                        x.copy_from_slice(&token[id as usize * c..][..c]);
                    }
                },
            );
            Tensor::from_vec(x, (ids.len(), c), &candle_core::Device::Cpu)
        })
    })?;
    let (token, ids) = (token.clone(), ids.clone());
    let pullback = move |gradient: &Tensor| {
        let mut d_token = vec![0.0; token.elem_count()];
        with_tokens(&ids, |ids| {
            with_elements([gradient], |[gradient]| {
                for (g, &id) in gradient.chunks(c).zip(ids) {
                    add(&mut d_token[id as usize * c..][..c], g);
                }
                Ok(())
            })
        })?;
        Ok([like(d_token, &token)?])
    };
    Ok((x, Box::new(pullback)))
}

/// y(b·T + t) = x(b·T + t) + position(t) for x (B·T, C) and a table (≥ T, C). The gradient is the
/// table's; that of x is y's.
///
/// # Errors
/// T above the positions there are.
pub(in crate::lm) fn add_positions(
    x: &Tensor,
    position: &Tensor,
    time: usize,
) -> Result<(Tensor, Pullback<1>)> {
    let (rows, c) = x.dims2()?;
    let (positions, _) = position.dims2()?;
    if time > positions {
        bail!("a window of {time} tokens, but the model has {positions} positions");
    }
    let sequences = x.reshape((rows / time, time, c))?;
    let y = sequences.broadcast_add(&position.narrow(0, 0, time)?)?.reshape((rows, c))?;
    let pullback = move |gradient: &Tensor| {
        let seen = gradient.reshape((rows / time, time, c))?.sum(0)?;
        Ok([seen.pad_with_zeros(0, 0, positions - time)?])
    };
    Ok((y, Box::new(pullback)))
}

fn add(total: &mut [f32], part: &[f32]) {
    for (total, part) in total.iter_mut().zip(part) {
        *total += part;
    }
}
