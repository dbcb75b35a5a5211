//! Vectors of float32 and float64: AVX-512, AVX2 with FMA, or arrays for any machine, chosen at run
//! time, or by `RANK_STUDY_INSTRUCTIONS`.
//!
//! A program that lets its users set that variable calls [`check_instructions`] first; [`Machine::here`] says what is
//! computed with.

pub(crate) mod blas;
mod buffer;
mod extension;
mod gemm;
mod leading;
mod machine;
mod number;
mod pool;
mod portable;
mod process;
pub(crate) mod products;
mod real;
pub(crate) mod rows;
mod simd;
#[cfg(feature = "lm")]
mod softmax;
mod stripe;
mod tile;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use buffer::Buffer;
pub(crate) use extension::Extension;
pub use extension::{InstructionsError, check_instructions, instructions_there};
#[doc(hidden)]
pub use gemm::multiply;
#[cfg(feature = "lm")]
pub(crate) use gemm::times_vector;
pub(crate) use gemm::{gemm, product};
pub(crate) use leading::leading;
pub use machine::Machine;
pub(crate) use number::Number;
pub(crate) use pool::Pool;
pub use process::prepare_process;
pub(crate) use real::Real;
pub(crate) use simd::{Kernel, Simd};
#[cfg(feature = "lm")]
pub(crate) use softmax::softmax;
pub(crate) use stripe::{ColumnSums, Stripe, equal_shares, panels_of};
