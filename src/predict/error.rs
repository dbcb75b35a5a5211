//! Why a trained head could not be held against what it needed.

use crate::fit::{FactorsFileError, FitError};
use crate::lm::LmError;
use crate::pattern::TargetError;

/// Why a trained head could not be held against what it needed.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// Logits that are more than queries and keys give.
    #[error(
        "layer {layer}, head {head} has a slope over the lag beside its queries and keys: its attention is no softmax \
         of QKᵀ/√d, so what these needed is not defined; take a run without"
    )]
    Slope {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
    },
    /// Rows whose columns are no contiguous range.
    #[error(
        "layer {layer}, head {head} sees a two-dimensional window, which fits do not know; name layers or a run \
         without"
    )]
    Patch {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
    },
    /// Rows that see what comes after them.
    #[error(
        "layer {layer}, head {head} sees what comes after a token: what is asked is of attention behind a causal mask; \
         take a causal model"
    )]
    NotCausal {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
    },
    /// Rows that have no far part.
    #[error(
        "a window of {window} leaves no row of {tokens} tokens a quarter of them beyond it; take longer passages, or a \
         model of smaller windows"
    )]
    NoFarPart {
        /// Tokens of a passage.
        tokens: usize,
        /// The window.
        window: usize,
    },
    /// An edit that no weights of the model come to.
    #[error(
        "the edit {edit:?} is done to what heads compute, and no weights of the model give that; take \"flat\" or \
         \"flat+slope\""
    )]
    NotOfWeights {
        /// The edit's name.
        edit: &'static str,
    },
    /// An edit of some heads that is one of all.
    #[error("the edit {edit:?} is not one of each head's attention by itself; do it to all heads")]
    OfAllHeads {
        /// The edit's name.
        edit: &'static str,
    },
    /// No passage.
    #[error("a head on no passage; give at least one")]
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
    #[error("layer {layer}, head {head} has rank {own}; name ranks above it, not {rank}")]
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
        "layer {layer}, head {head} normalises its queries and keys or turns them by their positions, which more \
         channels would do in another way; name no ranks for it"
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
