//! What the tests of operators compare and compare with.

use candle_core::{Device, Tensor, Var};

/// The largest absolute difference of two tensors.
pub(in crate::lm) fn largest_difference(a: &Tensor, b: &Tensor) -> f32 {
    let off = (a - b).unwrap().abs().unwrap().flatten_all().unwrap();
    off.max(0).unwrap().to_scalar().unwrap()
}

/// A matrix of sine values.
pub(super) fn wave(shape: (usize, usize), shift: f32) -> Var {
    let data: Vec<f32> = (0..shape.0 * shape.1).map(|i| (i as f32 * 0.37 + shift).sin()).collect();
    Var::from_vec(data, shape, &Device::Cpu).unwrap()
}
