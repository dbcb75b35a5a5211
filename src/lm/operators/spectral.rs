//! Division of matrices by their spectral norm.

use candle_core::{Result, Tensor, Var, bail};

use super::elements::{Pullback, like, with_elements};
use crate::lm::simd;

/// Ŵ = (γ/σ) W with σ = ‖Wv‖ (Zhai et al. 2023, arXiv 2303.06296), for W (inputs, outputs), a gain
/// γ (1) and a unit vector v (outputs). σ is the spectral norm if v is W's first right singular vector,
/// which [`power_iteration`] approximates.
///
/// The backward pass returns the gradients of W and γ. With u = Wv and G the gradient of Ŵ: dγ = ⟨G, W⟩/σ and
/// dW = (γ/σ)(G − (⟨G, W⟩/σ²) u vᵀ), since dσ/dW = u vᵀ/σ.
///
/// # Errors
/// Shapes that do not match or, on a CPU, a vector Wv of zeros.
pub(in crate::lm) fn spectrally_normalised(
    weight: &Tensor,
    gain: &Tensor,
    vector: &Tensor,
) -> Result<(Tensor, Pullback<2>)> {
    #[cfg(feature = "cuda")]
    if weight.device().is_cuda() {
        return crate::lm::cuda::spectrally_normalised(weight, gain, vector);
    }
    let outputs = weight.dim(1)?;
    if vector.elem_count() != outputs || gain.elem_count() != 1 {
        let (vector, gains) = (vector.elem_count(), gain.elem_count());
        bail!("{outputs} outputs, a vector of {vector} and {gains} gains");
    }
    let gamma = gain.to_vec1::<f32>()?[0];
    let u = with_elements([weight, vector], |[weight, v]| Ok(image(weight, v)))?;
    let sigma = simd::dot(&u, &u).sqrt();
    if sigma == 0.0 {
        bail!("a matrix of spectral norm 0 cannot be divided by it");
    }
    let scaled = with_elements([weight], |[weight]: [&[f32]; 1]| {
        Ok(weight.iter().map(|w| w * (gamma / sigma)).collect())
    })?;
    let scaled = like(scaled, weight)?;
    let [weight, gain, vector] = [weight, gain, vector].map(Tensor::clone);
    let pullback = move |gradient: &Tensor| {
        let (d_weight, d_gamma) = with_elements([&weight, &vector, gradient], |[weight, v, g]| {
            let product = simd::dot(g, weight);
            let mut d_weight = g.to_vec();
            for (row, u) in d_weight.chunks_mut(v.len()).zip(&u) {
                let along = u * product / (sigma * sigma);
                for (d, v) in row.iter_mut().zip(v) {
                    *d = gamma / sigma * (*d - along * v);
                }
            }
            Ok((d_weight, product / sigma))
        })?;
        Ok([like(d_weight, &weight)?, like(vec![d_gamma], &gain)?])
    };
    Ok((scaled, Box::new(pullback)))
}

/// v ← WᵀWv / ‖WᵀWv‖, in place. With a matrix of zeros v is unchanged.
pub(in crate::lm) fn power_iteration(weight: &Tensor, vector: &Var) -> Result<()> {
    #[cfg(feature = "cuda")]
    if weight.device().is_cuda() {
        return crate::lm::cuda::power_iteration(weight, vector);
    }
    let (_, outputs) = weight.dims2()?;
    let next = with_elements([weight, vector], |[weight, v]| {
        let mut next = vec![0.0; outputs];
        for (row, u) in weight.chunks(outputs).zip(image(weight, v)) {
            next.iter_mut().zip(row).for_each(|(next, w)| *next += u * w);
        }
        Ok(next)
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

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use ndarray_linalg::SVD;

    use super::*;

    #[test]
    fn power_iteration_finds_the_spectral_norm() {
        let (inputs, outputs) = (30, 17);
        let wave = |i: usize| (i as f32 * i as f32 * 0.37 + 0.3).sin();
        let data: Vec<f32> = (0..inputs * outputs).map(wave).collect();
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
}
