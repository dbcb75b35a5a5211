//! Devices: the CPU or a GPU.

use super::LmError;

/// The processor that a model is computed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// All cores that the thread pool has.
    #[default]
    Cpu,
    /// The first CUDA device. There sums are not added in a fixed order, so a run repeats another only
    /// up to rounding.
    Cuda,
}

impl Device {
    /// The name in a manifest and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    /// Whether models can be computed there.
    ///
    /// # Errors
    /// A build without the feature `cuda`, or a machine without a device.
    pub fn check(self) -> Result<(), LmError> {
        self.open().map(|_| ())
    }

    /// The tensor library's handle.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(in crate::lm) fn open(self) -> Result<candle_core::Device, LmError> {
        match self {
            Self::Cpu => Ok(candle_core::Device::Cpu),
            #[cfg(feature = "cuda")]
            Self::Cuda => super::cuda::device(),
            #[cfg(not(feature = "cuda"))]
            Self::Cuda => Err(LmError::NoDevice {
                why: "this build has no GPU support; build one with `cargo build --release --features cuda`"
                    .to_owned(),
            }),
        }
    }
}
