//! What operators give beside their values: the ways back, and gradients where they begin.

use candle_core::{Result, Tensor};

/// From the gradient of an operator's value to those of its N inputs. It holds what the backward pass needs,
/// until it is called or dropped.
pub(in crate::lm) type Pullback<const N: usize> = Box<dyn FnOnce(&Tensor) -> Result<[Tensor; N]>>;

/// From the gradient of a norm's value to those of what is normalised and of the gain. Where the first
/// also goes around the norm, the gradient that it has from there is added to its own.
pub(in crate::lm) type NormPullback =
    Box<dyn FnOnce(&Tensor, Option<&Tensor>) -> Result<[Tensor; 2]>>;

/// From the gradients of products with one x to that of x and those of the weights.
pub(in crate::lm) type LinearPullback =
    Box<dyn FnOnce(&[&Tensor]) -> Result<(Tensor, Vec<Tensor>)>>;

/// The output layer's loss. On a device of its own the numbers may not be there yet.
pub(in crate::lm) struct OutputLoss {
    /// The cross-entropy, a scalar, in nats.
    pub(in crate::lm) cross_entropy: Tensor,
    /// The objective's gradients with respect to the hidden state and the embedding, where they were
    /// wanted.
    pub(in crate::lm) gradients: Option<[Tensor; 2]>,
}
