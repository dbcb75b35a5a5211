//! Devices: the CPU or a GPU.

use super::LmError;

/// The processor on which a model is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Device {
    /// The CPU, with all threads of the pool.
    #[default]
    Cpu,
    /// The first CUDA device. Sums have no fixed order there, so runs are reproducible only
    /// up to rounding.
    Cuda,
}

impl Device {
    /// The name in manifests and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Checks whether models can run on the device.
    ///
    /// # Errors
    /// A build without the feature `cuda`, or a machine without a GPU.
    pub fn check(self) -> Result<(), LmError> {
        self.open().map(|_| ())
    }

    /// Opens the device in the tensor library.
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
