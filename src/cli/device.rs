//! The flags that say where and in which arithmetic a model is computed.

use clap::ValueEnum;
use rank_study::lm::{Device, Dtype};

/// A processor: all cores, or the first NVIDIA GPU.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum DeviceName {
    #[default]
    Cpu,
    Cuda,
}

/// The arithmetic of a model's products, as the command line names it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DtypeName {
    F32,
    Bf16,
}

impl From<DtypeName> for Dtype {
    fn from(name: DtypeName) -> Self {
        match name {
            DtypeName::F32 => Self::Float32,
            DtypeName::Bf16 => Self::Bfloat16,
        }
    }
}

impl From<DeviceName> for Device {
    fn from(name: DeviceName) -> Self {
        match name {
            DeviceName::Cpu => Self::Cpu,
            DeviceName::Cuda => Self::Cuda,
        }
    }
}
