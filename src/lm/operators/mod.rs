//! Operators of the language model, each with its own backward pass, on the CPU.
//!
//! An operator returns its output and a [`Pullback`], which maps the gradient of the output to those of the
//! inputs. The tensor library's backward passes have disadvantages. Its reverse pass adds every gradient to an array of
//! zeros, and its fast layer norm silently drops gradients. Its embedding backward is slow at a small d_model, and its
//! GELU keeps a dozen intermediate tensors. Reductions over rows use chunks of a fixed size, added in order,
//! so results do not depend on the number of threads.
//!
//! Inputs may be bfloat16; the arithmetic is float32. An output is rounded to the dtype of the first input
//! unless stated otherwise, a gradient to the dtype of its input.

mod activations;
mod elements;
mod embedding;
mod layer_norm;
mod linear;
mod output_loss;
mod spectral;
#[cfg(test)]
mod tests;

pub(super) use activations::{sigmoid, slope_of_sigmoid, slope_of_softmax, softmax};
#[cfg(feature = "cuda")]
pub(super) use elements::{LinearPullback, Pullback};
pub(super) use elements::{
    NormPullback, Objective, OutputLoss, elements, float32, like, matrix, plus, with_elements,
};
pub(super) use embedding::{Rotation, add_positions, embed, rotate};
pub(super) use layer_norm::{EPSILON, layer_norm};
pub(super) use linear::{add_linear, add_mlp, linear};
pub(super) use output_loss::{output_loss, tied_logits};
pub(super) use spectral::{power_iteration, spectrally_normalised};
#[cfg(test)]
pub(super) use tests::largest_difference;
