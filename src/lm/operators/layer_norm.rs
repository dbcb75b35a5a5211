//! Layer normalisation with a gain and no bias.

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{CHUNK_ROWS, elements, with_elements};
use crate::lm::simd;

/// Added to a row's variance, as GPT-2 does.
const EPSILON: f32 = 1e-5;

/// yₙ = gain ∘ (xₙ − mean xₙ) / √(var xₙ + 10⁻⁵) for x of shape (N, C) and a gain of shape (C), rounded
/// to `dtype`.
pub(in crate::lm) fn layer_norm(x: &Tensor, gain: &Tensor, dtype: DType) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return crate::lm::cuda::layer_norm(x, gain, dtype);
    }
    x.to_dtype(DType::F32)?.contiguous()?.apply_op2(gain, LayerNorm)?.to_dtype(dtype)
}

struct LayerNorm;

/// A row's mean and 1 / √(variance + ε).
fn moments(row: &[f32]) -> (f32, f32) {
    let c = row.len() as f32;
    let mean = simd::sum(row) / c;
    let square = simd::dot(row, row) / c;
    // The two-term form loses digits only where |mean| is far above the deviation; a residual
    // stream is not of that kind, and the clamp keeps a constant row finite.
    let variance = (square - mean * mean).max(0.0);
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

impl CustomOp2 for LayerNorm {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        gain: &CpuStorage,
        gain_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, c) = x_layout.shape().dims2()?;
        let (x, gain) = (elements::<f32>(x, x_layout)?, elements::<f32>(gain, gain_layout)?);
        if gain.len() != c {
            bail!("a layer norm of {c} channels has a gain of length {}", gain.len());
        }
        let mut y = vec![0.0; x.len()];
        y.par_chunks_mut(CHUNK_ROWS * c).zip(x.par_chunks(CHUNK_ROWS * c)).for_each(|(y, x)| {
            for (y, x) in y.chunks_mut(c).zip(x.chunks(c)) {
                let (mean, scale) = moments(x);
                for ((y, x), gain) in y.iter_mut().zip(x).zip(gain) {
                    *y = (x - mean) * scale * gain;
                }
            }
        });
        Ok((CpuStorage::F32(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        gain: &Tensor,
        _y: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (_, c) = x.dims2()?;
        let (dx, d_gain) = with_elements::<f32, _>(x, |x| {
            with_elements::<f32, _>(gain, |gain| {
                with_elements::<f32, _>(gradient, |g| Ok(backward(x, gain, g)))
            })
        })?;
        Ok((
            Some(Tensor::from_vec(dx, x.shape(), x.device())?),
            Some(Tensor::from_vec(d_gain, c, x.device())?),
        ))
    }
}

/// The gradients of x and of the gain. With x̂ the normalised row and a = g ∘ gain,
/// dx = (a − mean a − x̂ · mean(a ∘ x̂)) / deviation, and d gain = Σₙ g ∘ x̂.
fn backward(x: &[f32], gain: &[f32], g: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let c = gain.len();
    let mut dx = vec![0.0; x.len()];
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
                    dx[i] = (scaled[i] - mean_scaled - normal[i] * mean_product) * scale;
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

        let ours = layer_norm(&x, &gain, DType::F32).unwrap();
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1).unwrap()).unwrap();
        let variance = centred.sqr().unwrap().mean_keepdim(D::Minus1).unwrap();
        let deviation = (variance + 1e-5).unwrap().sqrt().unwrap();
        let plain = centred.broadcast_div(&deviation).unwrap().broadcast_mul(&gain).unwrap();

        let gradients = |y: &Tensor| {
            let store = (y * &weights).unwrap().sum_all().unwrap().backward().unwrap();
            (store.get(&x).unwrap().clone(), store.get(&gain).unwrap().clone())
        };
        let difference = |a: &Tensor, b: &Tensor| {
            let d = (a - b).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
            d.to_scalar::<f32>().unwrap()
        };
        let ((dx, d_gain), (dx_plain, d_gain_plain)) = (gradients(&ours), gradients(&plain));
        for (name, off) in [
            ("output", difference(&ours, &plain)),
            ("dx", difference(&dx, &dx_plain)),
            ("d gain", difference(&d_gain, &d_gain_plain) / 10.0),
        ] {
            assert!(off < 1e-5, "{name} differs by {off:e}");
        }
    }
}
