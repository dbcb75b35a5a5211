//! Token embeddings, learned positions and rotary positions.

use std::sync::Arc;

use candle_core::{Result, Tensor, bail};
use rayon::prelude::*;

use super::elements::{CHUNK_ROWS, Pullback, float32, like, with_elements};

/// Embedding look-up: x(b·T + t) = token(ids(b, t)) for a table (V, C) and ids (B, T), uint32; x is (B·T, C). The backward
/// pass returns the gradient of the table.
///
/// # Errors
/// An id that is not below V.
pub(in crate::lm) fn embed(token: &Tensor, ids: &Tensor) -> Result<(Tensor, Pullback<1>)> {
    #[cfg(feature = "cuda")]
    if token.device().is_cuda() {
        return crate::lm::cuda::embed(token, ids);
    }
    let (v, c) = token.dims2()?;
    let x = with_elements([ids], |[ids]: [&[u32]; 1]| {
        if let Some(id) = ids.iter().find(|&&id| id as usize >= v) {
            bail!("token {id}, but the vocabulary has {v} symbols");
        }
        with_elements([token], |[token]| {
            let mut x = vec![0.0f32; ids.len() * c];
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
        with_elements([&ids], |[ids]: [&[u32]; 1]| {
            with_elements([gradient], |[gradient]| {
                for (g, &id) in gradient.chunks(c).zip(ids) {
                    let total = d_token[id as usize * c..][..c].iter_mut();
                    total.zip(g).for_each(|(total, g)| *total += g);
                }
                Ok(())
            })
        })?;
        Ok([like(d_token, &token)?])
    };
    Ok((x, Box::new(pullback)))
}

/// y(b·T + t) = x(b·T + t) + position(t) for x (B·T, C) and a table (≥ T, C). The backward pass returns the gradient of the
/// table; the gradient of x is that of y.
///
/// # Errors
/// T above the number of positions.
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

/// Base of the rotary frequencies.
const BASE: f64 = 10_000.0;

/// The rotary angles of every position: at position t, channels 2i and 2i + 1 of a head with d_head = D
/// are rotated by θ = t · 10000^(−2i/D) (Su et al. 2021, arXiv 2104.09864, section 3.2).
pub(in crate::lm) struct Rotation {
    positions: usize,
    d_head: usize,
    /// (cos θ, sin θ), by position and pair.
    turns: Vec<[f32; 2]>,
    #[cfg(feature = "cuda")]
    on_device: std::sync::OnceLock<Tensor>,
}

impl Rotation {
    /// Angles for `positions` positions and an even d_head.
    pub(in crate::lm) fn new(positions: usize, d_head: usize) -> Arc<Self> {
        let turn = |at: usize, pair: usize| {
            let angle = at as f64 * BASE.powf(-((2 * pair) as f64) / d_head as f64);
            [angle.cos() as f32, angle.sin() as f32]
        };
        let turns = (0..positions).flat_map(|at| (0..d_head / 2).map(move |pair| turn(at, pair)));
        Arc::new(Self {
            positions,
            d_head,
            turns: turns.collect(),
            #[cfg(feature = "cuda")]
            on_device: std::sync::OnceLock::new(),
        })
    }

    /// The angles of tokens at these positions, in this order: row i is rotated as a token at `positions[i]`.
    pub(in crate::lm) fn at(&self, positions: &[usize]) -> Arc<Self> {
        let pairs = self.d_head / 2;
        let turns = positions.iter().flat_map(|&at| &self.turns[at * pairs..][..pairs]);
        Arc::new(Self {
            positions: positions.len(),
            d_head: self.d_head,
            turns: turns.copied().collect(),
            #[cfg(feature = "cuda")]
            on_device: std::sync::OnceLock::new(),
        })
    }

    /// (cos θ, sin θ) of the first `count` positions, (count, D/2).
    pub(in crate::lm) fn turns(&self, count: usize) -> &[[f32; 2]] {
        &self.turns[..count * (self.d_head / 2)]
    }

    /// The angles, (positions, D/2, 2), in the memory of a device, where they are cached.
    #[cfg(feature = "cuda")]
    fn on(&self, device: &candle_core::Device) -> Result<Tensor> {
        if let Some(turns) = self.on_device.get() {
            return Ok(turns.clone());
        }
        let shape = (self.positions, self.d_head / 2, 2);
        let turns = Tensor::from_slice(self.turns.as_flattened(), shape, device)?;
        Ok(self.on_device.get_or_init(|| turns).clone())
    }

    /// Rotates x, (B, T, H, D), whose sequences start at position `first`. A `sign` of −1 rotates backwards.
    fn turned(&self, x: &Tensor, first: usize, sign: f32) -> Result<Tensor> {
        #[cfg(feature = "cuda")]
        if x.device().is_cuda() {
            return crate::lm::cuda::rotate(x, &self.on(x.device())?, first, sign);
        }
        let (_, time, heads, _) = x.dims4()?;
        let mut turned = with_elements([&float32(x)?], |[x]| Ok(x.to_vec()))?;
        let row_size = heads * self.d_head;
        turned.par_chunks_mut(CHUNK_ROWS * row_size).enumerate().for_each(|(chunk, rows)| {
            for (offset, row) in rows.chunks_mut(row_size).enumerate() {
                let at = first + (chunk * CHUNK_ROWS + offset) % time;
                let turns = &self.turns[at * self.d_head / 2..][..self.d_head / 2];
                for head in row.chunks_mut(self.d_head) {
                    let (pairs, _) = head.as_chunks_mut::<2>();
                    for (pair, [cos, sin]) in pairs.iter_mut().zip(turns) {
                        let [x, y] = *pair;
                        let sin = sign * sin;
                        *pair = [x * cos - y * sin, x * sin + y * cos];
                    }
                }
            }
        });
        like(turned, x)
    }
}

/// Rotates the channel pairs of queries or keys, (B, T, H, D), at positions `first` to `first` + T by the angles of
/// their positions: (x, y) → (x cos θ − y sin θ, x sin θ + y cos θ). The backward pass rotates by −θ.
///
/// # Errors
/// Positions or a d_head for which there are no angles.
pub(in crate::lm) fn rotate(
    x: &Tensor,
    rotation: &Arc<Rotation>,
    first: usize,
) -> Result<(Tensor, Pullback<1>)> {
    let (_, time, _, d_head) = x.dims4()?;
    if first + time > rotation.positions || d_head != rotation.d_head {
        bail!(
            "rotation of {} positions of {d_head} channels; there are angles for {} of {}",
            first + time,
            rotation.positions,
            rotation.d_head
        );
    }
    let turned = rotation.turned(x, first, 1.0)?;
    let rotation = rotation.clone();
    let pullback = move |gradient: &Tensor| Ok([rotation.turned(gradient, first, -1.0)?]);
    Ok((turned, Box::new(pullback)))
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn a_product_of_query_and_key_depends_on_their_distance_alone() {
        let d = 20;
        let rotation = Rotation::new(90, d);
        let repeated = |shift: f32| {
            let wave = |i: usize| (i as f32 * 0.61 + shift).sin();
            let x: Vec<f32> = (0..d).map(wave).collect::<Vec<f32>>().repeat(90);
            let x = Tensor::from_vec(x, (1, 90, 1, d), &Device::Cpu).unwrap();
            rotate(&x, &rotation, 0).unwrap().0.reshape((90, d)).unwrap().to_vec2::<f32>().unwrap()
        };
        let (q, k) = (repeated(0.0), repeated(1.0));
        let product = |i: usize, j: usize| q[i].iter().zip(&k[j]).map(|(q, k)| q * k).sum::<f32>();
        for distance in [0, 1, 30] {
            for at in [0, 7, 59] {
                let off = (product(distance, 0) - product(at + distance, at)).abs();
                assert!(off < 1e-5, "distance {distance} at {at}: differs by {off:e}");
            }
        }
        let moved = (product(0, 0) - product(30, 0)).abs();
        assert!(moved > 0.1, "distance 30 changes the product by {moved} only");
    }
}
