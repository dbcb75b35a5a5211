//! Matrices divided by their spectral norm.

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, Var, bail};

use super::{elements, with_elements};
use crate::lm::simd;

/// Ŵ = (γ/σ) W with σ = ‖Wv‖ (Zhai et al. 2023, arXiv 2303.06296), for W (inputs, outputs), a gain
/// γ (1) and a unit vector v (outputs) that gets no gradient. σ is the spectral norm where v is W's
/// first right singular vector, which [`power_iteration`] follows.
///
/// # Errors
/// Shapes that do not fit, or Wv of length 0.
pub(in crate::lm) fn spectrally_normalised(
    weight: &Tensor,
    gain: &Tensor,
    vector: &Tensor,
) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if weight.device().is_cuda() {
        return crate::lm::cuda::spectrally_normalised(weight, gain, vector);
    }
    weight.apply_op3(gain, vector, Spectral)
}

/// v ← WᵀWv / ‖WᵀWv‖, in place. A matrix of zeros leaves v as it is.
pub(in crate::lm) fn power_iteration(weight: &Tensor, vector: &Var) -> Result<()> {
    #[cfg(feature = "cuda")]
    if weight.device().is_cuda() {
        return crate::lm::cuda::power_iteration(weight, vector);
    }
    let (_, outputs) = weight.dims2()?;
    let next = with_elements::<f32, _>(weight, |weight| {
        with_elements::<f32, _>(vector, |v| {
            let mut next = vec![0.0; outputs];
            for (row, u) in weight.chunks(outputs).zip(image(weight, v)) {
                next.iter_mut().zip(row).for_each(|(next, w)| *next += u * w);
            }
            Ok(next)
        })
    })?;
    let length = simd::dot(&next, &next).sqrt();
    if length == 0.0 {
        return Ok(());
    }
    let next: Vec<f32> = next.into_iter().map(|x| x / length).collect();
    vector.set(&Tensor::from_vec(next, outputs, vector.device())?)
}

/// Wv.
fn image(weight: &[f32], v: &[f32]) -> Vec<f32> {
    weight.chunks(v.len()).map(|row| simd::dot(row, v)).collect()
}

struct Spectral;

impl CustomOp3 for Spectral {
    fn name(&self) -> &'static str {
        "spectral-norm"
    }

    fn cpu_fwd(
        &self,
        weight: &CpuStorage,
        weight_layout: &Layout,
        gain: &CpuStorage,
        gain_layout: &Layout,
        vector: &CpuStorage,
        vector_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, outputs) = weight_layout.shape().dims2()?;
        let (weight, v) =
            (elements::<f32>(weight, weight_layout)?, elements::<f32>(vector, vector_layout)?);
        let gain = elements::<f32>(gain, gain_layout)?;
        if v.len() != outputs || gain.len() != 1 {
            bail!("{outputs} outputs, a vector of {} and {} gains", v.len(), gain.len());
        }
        let u = image(weight, v);
        let sigma = simd::dot(&u, &u).sqrt();
        if sigma == 0.0 {
            bail!("a matrix of spectral norm 0 cannot be divided by it");
        }
        let scale = gain[0] / sigma;
        let scaled = weight.iter().map(|w| w * scale).collect();
        Ok((CpuStorage::F32(scaled), weight_layout.shape().clone()))
    }

    /// With u = Wv and G the gradient of Ŵ: dγ = ⟨G, W⟩/σ and
    /// dW = (γ/σ)(G − (⟨G, W⟩/σ²) u vᵀ), since dσ/dW = u vᵀ/σ.
    fn bwd(
        &self,
        weight: &Tensor,
        gain: &Tensor,
        vector: &Tensor,
        _scaled: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let gamma = gain.to_vec1::<f32>()?[0];
        let (d_weight, d_gamma) = with_elements::<f32, _>(weight, |weight| {
            with_elements::<f32, _>(vector, |v| {
                with_elements::<f32, _>(gradient, |g| {
                    let u = image(weight, v);
                    let square = simd::dot(&u, &u);
                    let sigma = square.sqrt();
                    let product = simd::dot(g, weight);
                    let mut d_weight = g.to_vec();
                    for (row, u) in d_weight.chunks_mut(v.len()).zip(u) {
                        let along = u * product / square;
                        for (d, v) in row.iter_mut().zip(v) {
                            *d = gamma / sigma * (*d - along * v);
                        }
                    }
                    Ok((d_weight, product / sigma))
                })
            })
        })?;
        Ok((
            Some(Tensor::from_vec(d_weight, weight.shape(), weight.device())?),
            Some(Tensor::from_vec(vec![d_gamma], 1, weight.device())?),
            None,
        ))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    fn wave(count: usize, shift: f32) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * i as f32 * 0.37 + shift).sin()).collect()
    }

    #[test]
    fn power_iteration_finds_the_spectral_norm() {
        use ndarray_linalg::SVD;

        let (inputs, outputs) = (30, 17);
        let data = wave(inputs * outputs, 0.3);
        let weight = Tensor::from_slice(&data, (inputs, outputs), &Device::Cpu).unwrap();
        let vector = Var::from_vec(vec![(1.0 / 17.0f32).sqrt(); 17], 17, &Device::Cpu).unwrap();
        for _ in 0..200 {
            power_iteration(&weight, &vector).unwrap();
        }
        let found = image(&data, &vector.to_vec1::<f32>().unwrap());
        let found = simd::dot(&found, &found).sqrt();
        let matrix = ndarray::Array2::from_shape_vec((inputs, outputs), data).unwrap();
        let (_, singular_values, _) = matrix.svd(false, false).unwrap();
        let off = (found / singular_values[0] - 1.0).abs();
        assert!(off < 1e-5, "{found} against {}", singular_values[0]);
    }

    #[test]
    fn gradients_match_plain_tensor_operations() {
        let shape = (13, 9);
        let weight = Var::from_vec(wave(13 * 9, 0.0), shape, &Device::Cpu).unwrap();
        let gain = Var::from_vec(vec![1.7f32], 1, &Device::Cpu).unwrap();
        let vector = Tensor::from_vec(wave(9, 1.0), (9, 1), &Device::Cpu).unwrap();
        let target = Tensor::from_vec(wave(13 * 9, 2.0), shape, &Device::Cpu).unwrap();
        let ours = spectrally_normalised(&weight, &gain, &vector.flatten_all().unwrap()).unwrap();
        let sigma = weight.matmul(&vector).unwrap().sqr().unwrap().sum_all().unwrap().sqrt();
        let scale = gain.broadcast_div(&sigma.unwrap()).unwrap();
        let plain = weight.broadcast_mul(&scale).unwrap();
        let results = |y: &Tensor| {
            let store = (y * &target).unwrap().sum_all().unwrap().backward().unwrap();
            [y.clone(), store.get(&weight).unwrap().clone(), store.get(&gain).unwrap().clone()]
        };
        for (ours, plain) in results(&ours).iter().zip(&results(&plain)) {
            let off = (ours - plain).unwrap().abs().unwrap().flatten_all().unwrap();
            let off = off.max(0).unwrap().to_scalar::<f32>().unwrap();
            assert!(off < 1e-5, "differs by {off:e}");
        }
    }
}
