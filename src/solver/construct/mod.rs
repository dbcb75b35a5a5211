//! Factors in closed form: upper bounds on L*(ε) without an optimiser, and starts for searches.

mod all;
mod fourier;
mod moment_curve;
mod random_codes;
mod scale;

pub use all::constructions;
pub use fourier::fourier_features;
pub use moment_curve::moment_curve;
pub use random_codes::random_codes;
