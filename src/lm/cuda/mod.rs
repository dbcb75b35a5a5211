//! The language model's operators on an NVIDIA GPU: custom kernels where the tensor library has none
//! or drops gradients, cuBLAS products of the tensor library otherwise.
//!
//! Each function does the same as the CPU function of its name; activations may be float32 or bfloat16.

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
    embed, layer_norm, linear, mlp, power_iteration, rotate, spectrally_normalised,
};
