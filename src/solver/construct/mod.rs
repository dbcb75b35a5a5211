//! Factors by formula: upper bounds on L*(ε) that no optimiser had to find, and starts for those that
//! look for better.

mod all;
mod fourier;
mod moment_curve;
mod random_codes;
mod scale;

pub use all::constructions;
pub use fourier::fourier_features;
pub use moment_curve::moment_curve;
pub use random_codes::random_codes;
