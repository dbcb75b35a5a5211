//! Vectorised loops over slices of float32: softmax and GELU with the crate's
//! vector types, sums with loops that the compiler vectorises.

mod gelu;
mod softmax;

pub(super) use gelu::{gelu, gelu_gradient};
pub(super) use softmax::{Slope, dot, softmax_gradient, softmax_terms, softmax_terms_of, sum};
