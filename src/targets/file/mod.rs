//! Targets read from files and written to them.

mod csv;
mod mistakes;
mod npy;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod safetensors;
mod stack;
mod target_file;
#[cfg(feature = "lm")]
mod torch;

#[cfg(feature = "lm")]
pub(crate) use self::safetensors::short_floats;
pub(crate) use npy::read_npy;
#[cfg(feature = "study")]
pub(crate) use parquet::read_frame;
pub use stack::StackIndex;
pub use target_file::{TargetFile, TargetRead, write_matrix};
