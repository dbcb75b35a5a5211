//! Activations with their derivatives, in plain tensor operations.

use candle_core::{D, Result, Tensor};

/// The softmax of each row.
pub(in crate::lm) fn softmax(scores: &Tensor) -> Result<Tensor> {
    let powers = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
    powers.broadcast_div(&powers.sum_keepdim(D::Minus1)?)
}

/// p ∘ (g − Σ p g), for the gradient g of p = softmax(z).
pub(in crate::lm) fn slope_of_softmax(shares: &Tensor, gradient: &Tensor) -> Result<Tensor> {
    let weighted = (shares * gradient)?;
    let sums = weighted.sum_keepdim(D::Minus1)?;
    weighted - shares.broadcast_mul(&sums)?
}

/// 1 / (1 + e⁻ˣ).
pub(in crate::lm) fn sigmoid(x: &Tensor) -> Result<Tensor> {
    (x.neg()?.exp()? + 1.0)?.recip()
}

/// s (1 − s), the derivative at a value s of the sigmoid function.
pub(in crate::lm) fn slope_of_sigmoid(value: &Tensor) -> Result<Tensor> {
    value - value.sqr()?
}
