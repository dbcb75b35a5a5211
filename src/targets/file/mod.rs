//! Targets read from files and written to them.

mod csv;
mod format;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_pages;
mod problem;
mod safetensors;
mod stack;
mod target_file;

pub use format::write_matrix;
pub(crate) use npy::read_npy;
#[cfg(feature = "study")]
pub(crate) use parquet::read_frame;
pub use target_file::{TargetFile, TargetRead};
