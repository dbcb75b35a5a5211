//! The general matrix product C ← α A B + β C of matrices of any strides, on the calling thread.
//!
//! The loops follow Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), for matrices
//! whose smaller sides are a few hundred, as in a small language model:
//!
//! - A block of B is packed into the second-level cache, in panels of two vectors.
//! - Six or twelve rows of A, in the first-level cache, are multiplied with all panels of the block. In each step one number
//!   of each row is broadcast, so C is written along its rows. If A has contiguous rows it is read in place;
//!   otherwise (the gradient of a weight is xᵀ G) a block of rows is packed first.
//! - A tile of C, with as many rows as fill the registers with sums, stays in registers over the whole depth of a panel.
//!
//! The order of additions depends only on the sizes and the vector extension. So a product is the same for any
//! number of threads and any BLAS.

mod by_tiles;
mod by_vector;
mod matrix;
mod pack;
mod product;
#[cfg(test)]
mod tests;

#[cfg(feature = "lm")]
pub(crate) use by_vector::times_vector;
pub(super) use pack::WorkSpace;
pub use product::multiply;
pub(crate) use product::{gemm, product};
