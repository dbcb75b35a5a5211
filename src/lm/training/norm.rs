//! The Euclidean norm of gradients.

use candle_core::{Result, Tensor};
use rayon::prelude::*;

use crate::lm::operators::with_elements;
use crate::lm::simd;

/// Number of squares of gradients that are added in float32.
const RUN: usize = 1024;

/// ‖g‖ over all gradients.
///
/// # Errors
/// Only errors of the tensor library.
pub(super) fn gradient_norm(gradients: &[Tensor]) -> Result<f64> {
    Ok(squared_norm(gradients)?.sqrt())
}

/// Σ g² over all gradients: runs are summed in float32, and the runs' sums in double precision and in order.
fn squared_norm(gradients: &[Tensor]) -> Result<f64> {
    #[cfg(feature = "cuda")]
    if gradients.iter().any(|gradient| gradient.device().is_cuda()) {
        return crate::lm::cuda::squared_norm(gradients);
    }
    let of_one = |g: &[f32]| g.chunks(RUN).map(|run| f64::from(simd::dot(run, run))).sum();
    let squares = gradients
        .par_iter()
        .map(|gradient| with_elements([gradient], |[g]| Ok(of_one(g))))
        .collect::<Result<Vec<f64>>>()?;
    Ok(squares.into_iter().sum())
}
