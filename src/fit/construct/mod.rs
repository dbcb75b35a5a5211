//! Factors by formula: upper bounds on L*(ε) that no optimiser had to find, and starts for those that
//! look for better.

mod fourier;
mod moment_curve;
mod random_codes;
mod scale;

pub use fourier::fourier_features;
pub use moment_curve::moment_curve;
pub use random_codes::random_codes;

use super::factors::Factors;
use super::problem::{FitError, Problem};

/// Every construction that applies to `problem`, by name, each within `cap`. Random codes draw from
/// `seed`; the others have nothing random. Empty for layouts of several heads.
///
/// # Errors
/// `Cap`; `Factors` where values overflow.
pub fn constructions(
    problem: &Problem,
    cap: f64,
    seed: u64,
) -> Result<Vec<(&'static str, Factors)>, FitError> {
    let all = [
        ("fourier-features", fourier_features(problem, cap)?),
        ("moment-curve", moment_curve(problem, cap)?),
        ("random-codes", random_codes(problem, cap, seed)?),
    ];
    Ok(all.into_iter().filter_map(|(name, factors)| Some((name, factors?))).collect())
}
