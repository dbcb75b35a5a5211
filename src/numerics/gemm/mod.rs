//! The general matrix product C ← α A B + β C of matrices of any strides, on the thread that calls it.
//!
//! Loops as in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), for matrices
//! whose smaller sides are a few hundred, as those of a small language model are:
//!
//! - A block of B is packed into the second-level cache, in panels of two vectors.
//! - Six or twelve rows of A, in the first-level cache, go by all panels of the block, one number of each row a
//!   step, broadcast, and so C is written along its rows. Where A has contiguous rows it is read as it lies;
//!   otherwise (the gradient of a weight is xᵀ G) a block of rows is packed first.
//! - A tile of C, as many rows as fill the registers with sums, stays in them over the whole depth of a panel.
//!
//! The order of additions depends on the sizes and the vector extension alone, so a product is the same on any
//! number of threads and with any BLAS.

mod by_tiles;
mod by_vector;
mod matrix;
mod pack;
mod product;
#[cfg(test)]
mod tests;
#[cfg(feature = "lm")]
mod times_vector;

pub(super) use pack::WorkSpace;
pub use product::multiply;
pub(crate) use product::{gemm, product};
#[cfg(feature = "lm")]
pub(crate) use times_vector::times_vector;
