//! The language model's operators on an NVIDIA GPU: our own kernels where the tensor library has none
//! or cuts gradients, its cuBLAS products for the rest.
//!
//! Each function does what the one of its name on the CPU does; activations may be float32 or bfloat16.

mod attention;
mod launch;
mod loss;
mod optimiser;
mod rows;
#[cfg(test)]
mod tests;

pub(super) use attention::attention;
pub(super) use launch::device;
pub(super) use loss::output_loss;
pub(super) use optimiser::{DeviceMoments, squared_norm};
pub(super) use rows::{
    embed, layer_norm, linear, mlp, power_iteration, rotate, scale_heads, spectrally_normalised,
};
