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
pub(super) use loss::output_loss;
pub(super) use optimiser::{DeviceMoments, squared_norm};
pub(super) use rows::{
    embed, layer_norm, linear, mlp, power_iteration, rotate, scale_heads, spectrally_normalised,
};

use std::sync::OnceLock;

use candle_core::Device;

use super::LmError;

/// The first device, opened once: tensors of two handles would not go together.
///
/// # Errors
/// A machine without a driver or a device.
pub(super) fn device() -> Result<Device, LmError> {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    if let Some(device) = DEVICE.get() {
        return Ok(device.clone());
    }
    // A stream of its own, not each thread's: work asked for from any thread of a pool stays in order.
    let device = Device::new_cuda_with_stream(0)
        .map_err(|e| LmError::NoDevice { why: format!("none answers: {e}") })?;
    if let Device::Cuda(cuda) = &device {
        // SAFETY: events order the work of several streams, and there is one only.
        unsafe { cuda.disable_event_tracking() };
    }
    Ok(DEVICE.get_or_init(|| device).clone())
}
