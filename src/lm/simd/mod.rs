//! Loops over slices of float32 that must run at the speed of the vector units: softmax and GELU by the
//! vectors that the whole crate shares, and sums by loops that the compiler vectorises.

mod gelu;
mod softmax;

pub(super) use gelu::{gelu, gelu_gradient};
pub(super) use softmax::{Slope, dot, softmax_gradient, softmax_terms, softmax_terms_of, sum};
