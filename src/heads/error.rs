//! Why a trained head could not be held against what it needed.

use crate::lm::LmError;
use crate::solver::{FactorsFileError, FitError};
use crate::targets::TargetError;

/// Why a trained head could not be held against what it needed.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// Logits that are more than queries and keys give.
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
    /// Rows whose columns are no contiguous range.
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
    /// Rows that see what comes after them.
    #[error(
        "layer {layer}, head {head} is not causal, which this measurement needs; take a causal model"
    )]
    NotCausal {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
    },
    /// Rows that have no far part.
    #[error(
        "no row of {tokens} tokens has a quarter of its columns beyond a window of {window}; use longer \
         passages, or a model with smaller windows"
    )]
    NoFarPart {
        /// Tokens of a passage.
        tokens: usize,
        /// The window.
        window: usize,
    },
    /// An edit that no weights of the model come to.
    #[error(
        "the edit {edit:?} changes what heads compute, so no weights reproduce it; use \"flat\" or \
         \"flat+slope\""
    )]
    NotOfWeights {
        /// The edit's name.
        edit: &'static str,
    },
    /// An edit of some heads that is one of all.
    #[error("the edit {edit:?} does not treat heads one by one; apply it to all heads")]
    OfAllHeads {
        /// The edit's name.
        edit: &'static str,
    },
    /// No passage.
    #[error("no passage given; give at least one")]
    NoPassage,
    /// Queries or keys of NaN, which a run that diverged ends with.
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
        /// The rank asked for.
        rank: usize,
        /// The head dimension d.
        own: usize,
    },
    /// Queries and keys that more channels would make in another way.
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
    /// Attention that is no target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A fit that could not be set up.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A model or a text that cannot be read.
    #[error(transparent)]
    Model(#[from] LmError),
    /// Factors that cannot be kept.
    #[error(transparent)]
    Factors(#[from] FactorsFileError),
}
