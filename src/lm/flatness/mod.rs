//! How flat the loss is around a model's weights: trace and largest eigenvalue of its Hessian H. And how well a linear classifier
//! of the hidden state does on another task.
//!
//! Products Hv are exact up to the rounding of float64. The reverse pass runs with the weights θ + ihv, and Im g(θ + ihv)/h is
//! Hv + O(h²) without a difference (complex step: Squire and Trapp 1998, SIAM Review 40(1)). With h = 2⁻¹⁰⁰ the term O(h²) is
//! far below rounding.

mod classifier;
mod complex;
mod measurement;
mod passes;
#[cfg(test)]
mod tests;

pub use measurement::{EIGENVALUE_TOLERANCE, FlatnessMeasurement};
