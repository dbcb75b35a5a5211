//! The device itself.

use std::sync::OnceLock;

use candle_core::Device;

use crate::lm::LmError;

/// The first device, opened once: tensors of two handles would not go together.
///
/// # Errors
/// A machine without a driver or a device.
pub(in crate::lm) fn device() -> Result<Device, LmError> {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    if let Some(device) = DEVICE.get() {
        return Ok(device.clone());
    }
    // A stream of its own, not each thread's: work asked for from any thread of a pool stays in order.
    let device = Device::new_cuda_with_stream(0)
        .map_err(|e| LmError::NoDevice { why: format!("no GPU found: {e}") })?;
    if let Device::Cuda(cuda) = &device {
        // SAFETY: events order the work of several streams, and there is one only.
        unsafe { cuda.disable_event_tracking() };
    }
    Ok(DEVICE.get_or_init(|| device).clone())
}
