//! Fits, floors and lower bounds, and the targets that they fit.

#[cfg(feature = "cli")]
#[path = "../common/mod.rs"]
mod common;
mod dense;
mod fit;
#[cfg(feature = "cli")]
mod fit_command;
mod known_answers;
mod lower_bounds;
#[cfg(feature = "cli")]
mod target_command;
mod target_families;
#[cfg(feature = "parquet")]
mod target_files;
#[cfg(feature = "lm")]
mod torch_files;
