//! Errors of measurements and fits of trained heads.

use crate::lm::LmError;
use crate::solver::{FactorsFileError, FitError};
use crate::targets::TargetError;

/// An error of a measurement or a fit of trained heads.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// A head whose logits have a linear position bias in addition to QKᵀ/√d.
    #[error(
        "layer {layer}, head {head} has a linear position bias, so its attention is not the softmax of \
         QKᵀ/√d and its needed logit is undefined; take a run without one"
    )]
    Slope {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
    },
    /// A head without a causal mask.
    #[error(
        "layer {layer}, head {head} is not causal, which this measurement needs; take a causal model"
    )]
    NotCausal {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
    },
    /// No passage.
    #[error("no passage given; give at least one")]
    NoPassage,
    /// Queries or keys that are NaN or infinite, as at the end of a run that diverged.
    #[error("layer {layer}, head {head} has logits that are NaN or infinite; take an earlier step")]
    NotFinite {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
    },
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
    Factors(#[from] FactorsFileError),
}
