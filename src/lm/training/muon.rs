//! Muon: momentum, orthogonalised by Newton–Schulz iterations, for matrices between activations.

use candle_core::{Result, Tensor, Var};

use super::step::gradient_norm;
use crate::lm::model::Weight;
use crate::lm::operators::linear;

/// Decay of the momentum, μ.
const MOMENTUM: f64 = 0.95;
/// Coefficients of the quintic iteration, chosen for speed: singular values end between about 0.7 and 1.2.
const QUINTIC: [f64; 3] = [3.4445, -4.7750, 2.0315];
const ITERATIONS: usize = 5;
/// The root mean square of AdamW's steps over the learning rate, in practice.
const RMS: f64 = 0.2;

/// Whether Muon moves a weight: the matrices of blocks, but no embedding and no gain.
pub(super) fn moves(weight: &Weight) -> bool {
    weight.variable.rank() == 2 && weight.name.starts_with("layers.")
}

/// One step of a matrix W of m × n numbers with gradient G and momentum B, at learning rate η:
///
/// B ← μB + (1 − μ)G, W ← `keep` · W − 0.2 η √max(m, n) · [orthogonalised](orthogonalised)(μB + (1 − μ)G),
///
/// which is Muon with Nesterov momentum (Jordan et al. 2024, kellerjordan.github.io/posts/muon), scaled as by Liu et
/// al. 2025 (arXiv 2502.16982, equation 4) and as by `torch.optim.Muon` with `match_rms_adamw`.
///
/// # Errors
/// Only errors of the tensor library.
pub(super) fn step(
    weight: &Var,
    momentum: &mut Tensor,
    gradient: &Tensor,
    keep: f64,
    learning_rate: f64,
) -> Result<()> {
    let fresh = (gradient * (1.0 - MOMENTUM))?;
    *momentum = ((&*momentum * MOMENTUM)? + &fresh)?;
    let ahead = orthogonalised(&((&*momentum * MOMENTUM)? + fresh)?)?;
    let (rows, columns) = weight.dims2()?;
    let scale = learning_rate * RMS * (rows.max(columns) as f64).sqrt();
    weight.set(&((weight.as_tensor() * keep)? - (ahead * scale)?)?)
}

/// About U Vᵀ for a matrix U Σ Vᵀ: X ← aX + (bA + cA²)X with A = XXᵀ, five times, from X over its Frobenius norm.
fn orthogonalised(x: &Tensor) -> Result<Tensor> {
    let [a, b, c] = QUINTIC;
    let (rows, columns) = x.dims2()?;
    let transposed = |x: &Tensor| x.t()?.contiguous();
    let length = gradient_norm(std::slice::from_ref(x))? + 1e-7;
    let mut x = (x / length)?;
    if rows > columns {
        x = transposed(&x)?;
    }
    for _ in 0..ITERATIONS {
        let gram = product(&x, &transposed(&x)?)?;
        let inner = ((&gram * b)? + (product(&gram, &gram)? * c)?)?;
        x = ((&x * a)? + product(&inner, &x)?)?;
    }
    if rows > columns { transposed(&x) } else { Ok(x) }
}

/// A B, the same for any number of threads.
fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    Ok(linear(a, &[b])?.0.remove(0))
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};
    use ndarray::Array2;
    use ndarray_linalg::SVD;

    use super::*;

    #[test]
    fn singular_values_end_near_one_and_singular_vectors_stay() {
        for (rows, columns) in [(12, 12), (8, 20), (20, 8)] {
            let wave = |i: usize| (i as f32 * i as f32 * 0.37).sin();
            let data: Vec<f32> = (0..rows * columns).map(wave).collect();
            let x = Tensor::from_slice(&data, (rows, columns), &Device::Cpu).unwrap();
            let found = orthogonalised(&x).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            let array = |data: Vec<f32>| Array2::from_shape_vec((rows, columns), data).unwrap();
            let (u, _, vt) = array(data).svd(true, true).unwrap();
            let inside = u.unwrap().t().dot(&array(found)).dot(&vt.unwrap().t());
            for ((i, j), value) in inside.indexed_iter() {
                let is_right = if i == j { (0.6..1.3).contains(value) } else { value.abs() < 1e-3 };
                assert!(is_right, "{rows} × {columns}: {value} at {i}, {j}");
            }
        }
    }

    #[test]
    fn a_step_has_the_size_of_one_of_adamw() {
        let zeros = Tensor::zeros((30, 50), candle_core::DType::F32, &Device::Cpu).unwrap();
        let weight = Var::from_tensor(&zeros).unwrap();
        let gradient = Tensor::rand(-1f32, 1.0, (30, 50), &Device::Cpu).unwrap();
        step(&weight, &mut zeros.clone(), &gradient, 1.0, 0.01).unwrap();
        let squares = weight.sqr().unwrap().mean_all().unwrap().to_scalar::<f32>().unwrap();
        let size = squares.sqrt() / 0.01;
        assert!((0.15..0.25).contains(&size), "{size}");
    }
}
