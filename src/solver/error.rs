//! Errors of fits.

use std::fmt::Display;

/// An error while a fit is set up.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// A logit bound that is not a finite number above 0.
    #[error("logit bound {0} must be a finite number above 0")]
    Cap(f64),
    /// No starts.
    #[error("starts must be at least 1")]
    NoStarts,
    /// More factors than the machine's memory can hold.
    #[error("{0}")]
    TooLarge(String),
    /// Factors that belong to another problem.
    #[error("factors have shape {found:?} (heads, n, rank); this problem needs {wanted:?}")]
    OtherFactors {
        /// The shape of the factors.
        found: (usize, usize, usize),
        /// The shape that the problem needs.
        wanted: (usize, usize, usize),
    },
    /// Any other error.
    #[error("{0}")]
    Other(String),
}

impl FitError {
    /// Inputs from which no factors can be projected.
    pub(super) fn inputs(why: impl Display) -> Self {
        Self::Other(format!("the inputs of queries and keys: {why}"))
    }
}
