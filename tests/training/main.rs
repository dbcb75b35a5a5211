//! Training of language models, from definitions to resumed runs.

#![cfg(feature = "lm")]

#[cfg(feature = "cli")]
#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "cli")]
mod cuda_kernels;
#[cfg(all(feature = "cli", feature = "mpi", unix))]
mod mpi;
mod replay;
#[cfg(feature = "cli")]
mod resume;
#[cfg(feature = "cli")]
mod train;
