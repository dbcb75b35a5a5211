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
    /// A head whose rows attend to columns that are not one contiguous range.
    #[error(
        "layer {layer}, head {head} has a two-dimensional window, which fits do not support; choose other \
         layers or another run"
    )]
    Patch {
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
    /// Passages too short for rows with a far part.
    #[error(
        "no row of {tokens} tokens has a quarter of its columns beyond a window of {window}; use longer \
         passages, or a model with smaller windows"
    )]
    NoFarPart {
        /// Number of tokens of a passage.
        tokens: usize,
        /// The window, in tokens.
        window: usize,
    },
    /// An edit that cannot be expressed as a change of the model's weights.
    #[error(
        "the edit {edit:?} changes what heads compute, so no weights reproduce it; use \"flat\" or \
         \"flat+slope\""
    )]
    NotOfWeights {
        /// The edit's name.
        edit: &'static str,
    },
    /// An edit of all heads together that was requested for some heads.
    #[error("the edit {edit:?} does not treat heads one by one; apply it to all heads")]
    OfAllHeads {
        /// The edit's name.
        edit: &'static str,
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
    /// A rank not above the head's own.
    #[error(
        "rank {rank} is not above the rank of layer {layer}, head {head} ({own}); name larger ranks"
    )]
    Rank {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
        /// The requested rank.
        rank: usize,
        /// The head dimension d.
        own: usize,
    },
    /// A larger rank for a head whose queries and keys are normalised or rotated, where it is undefined.
    #[error(
        "layer {layer}, head {head} normalises or rotates its queries and keys, so a larger rank is \
         undefined; name no ranks for it"
    )]
    NoOtherRank {
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
