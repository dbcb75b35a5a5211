//! Errors of measurements and fits of trained heads.

use crate::lm::LmError;
use crate::solver::FitError;
use crate::system::FileError;
use crate::targets::TargetError;

/// An error of a measurement or a fit of trained heads.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// A head that cannot be measured or fitted.
    #[error("layer {layer}, head {head} {why}")]
    Head {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
        /// What is wrong, and what to do.
        why: &'static str,
    },
    /// No passage.
    #[error("no passage given; give at least one")]
    NoPassage,
    /// Attention that is not a valid target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A fit that could not be set up.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A model or a text that cannot be read.
    #[error(transparent)]
    Model(#[from] LmError),
    /// Factors that cannot be written.
    #[error(transparent)]
    Factors(#[from] FileError),
}
