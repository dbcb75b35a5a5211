//! Layer normalisation with a gain and without a bias.

use candle_core::{DType, Result, Tensor, bail};
use rayon::prelude::*;

use super::elements::{CHUNK_ROWS, NormPullback, float32, like, with_elements};
use crate::lm::simd;

/// ε, which is added to the variance of a row; the same as in GPT-2.
pub(in crate::lm) const EPSILON: f32 = 1e-5;

/// yₙ = gain ∘ (xₙ − mean xₙ) / √(var xₙ + 10⁻⁵) for x of shape (N, C) and a gain of shape (C), rounded
/// to `dtype`.
pub(in crate::lm) fn layer_norm(
    x: &Tensor,
    gain: &Tensor,
    dtype: DType,
) -> Result<(Tensor, NormPullback)> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return crate::lm::cuda::layer_norm(x, gain, dtype);
    }
    let (_, c) = x.dims2()?;
    if gain.elem_count() != c {
        bail!("a layer norm of {c} channels has a gain of length {}", gain.elem_count());
    }
    let y = with_elements([&float32(x)?, gain], |[x, gain]| Ok(forward(x, gain)))?;
    let y = Tensor::from_vec(y, x.shape(), x.device())?.to_dtype(dtype)?;
    let (x, gain) = (x.clone(), gain.clone());
    let pullback = move |gradient: &Tensor, beside: Option<&Tensor>| {
        let dx = match beside {
            Some(beside) => with_elements([&float32(beside)?], |[beside]| Ok(beside.to_vec()))?,
            None => vec![0.0; x.elem_count()],
        };
        let all = [&float32(&x)?, &gain, &float32(gradient)?];
        let (dx, d_gain) =
            with_elements(all, |[x, gain, gradient]| Ok(backward(x, gain, gradient, dx)))?;
        Ok([like(dx, &x)?, like(d_gain, &gain)?])
    };
    Ok((y, Box::new(pullback)))
}

/// The mean of a row and 1 / √(variance + ε).
fn moments(row: &[f32]) -> (f32, f32) {
    let c = row.len() as f32;
    let mean = simd::sum(row) / c;
    let square = simd::dot(row, row) / c;
    // This formula loses digits only if |mean| is much larger than the deviation, which does not occur in a residual
    // stream. The clamp keeps a constant row finite.
    let variance = (square - mean * mean).max(0.0);
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

fn forward(x: &[f32], gain: &[f32]) -> Vec<f32> {
    let c = gain.len();
    let mut y = vec![0.0; x.len()];
    y.par_chunks_mut(CHUNK_ROWS * c).zip(x.par_chunks(CHUNK_ROWS * c)).for_each(|(y, x)| {
        for (y, x) in y.chunks_mut(c).zip(x.chunks(c)) {
            let (mean, scale) = moments(x);
            for ((y, x), gain) in y.iter_mut().zip(x).zip(gain) {
                *y = (x - mean) * scale * gain;
            }
        }
    });
    y
}

/// Gradients of x and of the gain. With x̂ the normalised row and a = g ∘ gain,
/// dx = (a − mean a − x̂ · mean(a ∘ x̂)) / deviation, added to the values in `dx`, and d gain = Σₙ g ∘ x̂.
fn backward(x: &[f32], gain: &[f32], g: &[f32], mut dx: Vec<f32>) -> (Vec<f32>, Vec<f32>) {
    let c = gain.len();
    let partial: Vec<Vec<f32>> = dx
        .par_chunks_mut(CHUNK_ROWS * c)
        .zip(x.par_chunks(CHUNK_ROWS * c).zip(g.par_chunks(CHUNK_ROWS * c)))
        .map(|(dx, (x, g))| {
            let mut d_gain = vec![0.0; c];
            let (mut normal, mut scaled) = (vec![0.0; c], vec![0.0; c]);
            for (dx, (x, g)) in dx.chunks_mut(c).zip(x.chunks(c).zip(g.chunks(c))) {
                let (mean, scale) = moments(x);
                for i in 0..c {
                    normal[i] = (x[i] - mean) * scale;
                    scaled[i] = g[i] * gain[i];
                    d_gain[i] += g[i] * normal[i];
                }
                let mean_scaled = simd::sum(&scaled) / c as f32;
                let mean_product = simd::dot(&scaled, &normal) / c as f32;
                for i in 0..c {
                    dx[i] += (scaled[i] - mean_scaled - normal[i] * mean_product) * scale;
                }
            }
            d_gain
        })
        .collect();
    let mut d_gain = vec![0.0; c];
    for part in partial {
        for (total, part) in d_gain.iter_mut().zip(part) {
            *total += part;
        }
    }
    (dx, d_gain)
}

#[cfg(test)]
mod tests {
    use candle_core::{D, Device, Var};

    use super::super::tests::largest_difference;
    use super::*;

    #[test]
    fn output_and_gradients_match_plain_tensor_operations() {
        let device = Device::Cpu;
        let (n, c) = (131, 48);
        let wave = |k: usize, shift: f32| -> Vec<f32> {
            (0..k).map(|i| ((i as f32) * 0.7 + shift).sin() * 1.5 + 0.2).collect()
        };
        let x = Var::from_vec(wave(n * c, 0.0), (n, c), &device).unwrap();
        let gain = Var::from_vec(wave(c, 1.0), c, &device).unwrap();
        let weights = Tensor::from_vec(wave(n * c, 2.0), (n, c), &device).unwrap();

        let (ours, pullback) = layer_norm(&x, &gain, DType::F32).unwrap();
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1).unwrap()).unwrap();
        let variance = centred.sqr().unwrap().mean_keepdim(D::Minus1).unwrap();
        let deviation = (variance + 1e-5).unwrap().sqrt().unwrap();
        let plain = centred.broadcast_div(&deviation).unwrap().broadcast_mul(&gain).unwrap();

        // x also bypasses the norm.
        let [dx, d_gain] = pullback(&weights, Some(&weights)).unwrap();
        let sum = (&plain + x.as_tensor()).unwrap();
        let store = (sum * &weights).unwrap().sum_all().unwrap().backward().unwrap();
        for (name, off) in [
            ("output", largest_difference(&ours, &plain)),
            ("dx", largest_difference(&dx, store.get(&x).unwrap())),
            ("d gain", largest_difference(&d_gain, store.get(&gain).unwrap()) / 10.0),
        ] {
            assert!(off < 1e-5, "{name} differs by {off:e}");
        }
    }
}
