//! Every construction that applies to a problem.

use super::fourier::fourier_features;
use super::moment_curve::moment_curve;
use super::random_codes::random_codes;
use crate::solver::factors::Factors;
use crate::solver::problem::{FitError, Problem};

/// All constructions that apply to `problem`, with their names, each within the logit bound `cap`. Random codes draw from
/// `seed`; the others are deterministic. Empty for layouts of several heads.
///
/// # Errors
/// `Cap`; `Factors` if values overflow.
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
