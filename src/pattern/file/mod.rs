//! Targets read from files and written to them.

mod csv;
mod format;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
mod problem;
mod safetensors;

pub use format::write_matrix;
