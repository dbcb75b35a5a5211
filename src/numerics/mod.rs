//! Vectors of float32 and float64 and products of matrices: AVX-512, AVX2 with FMA, or portable arrays, chosen at run
//! time or by `RANK_STUDY_INSTRUCTIONS`.
//!
//! Programs that let users set this variable call [`check_instructions`] first. [`Machine::here`] describes the
//! hardware and libraries in use.

pub(crate) mod blas;
mod buffer;
mod extension;
mod gemm;
mod leading;
mod machine;
mod number;
mod portable;
pub(crate) mod products;
mod real;
pub(crate) mod rows;
mod simd;
#[cfg(feature = "lm")]
mod softmax;
mod stripe;
mod tile;
mod vectors;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(feature = "cli")]
pub(crate) use blas::share_one_heap;
pub use blas::{prepare_process, single_threaded_blas};
pub(crate) use buffer::{Buffer, Pool};
pub(crate) use extension::Extension;
pub use extension::{check_instructions, instructions_there};
#[doc(hidden)]
pub use gemm::multiply;
#[cfg(feature = "lm")]
pub(crate) use gemm::times_vector;
pub(crate) use gemm::{gemm, product};
pub(crate) use leading::leading;
pub use machine::Machine;
pub(crate) use number::Number;
pub(crate) use real::Real;
pub(crate) use simd::{Kernel, Simd};
#[cfg(feature = "lm")]
pub(crate) use softmax::softmax;
pub(crate) use stripe::{ColumnSums, Stripe, equal_shares, panels_of};
pub(crate) use vectors::{add_and_dot, dot};
