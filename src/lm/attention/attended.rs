//! What attention gives.

use candle_core::Tensor;

use crate::lm::operators::Pullback;

/// What attention gives.
pub(in crate::lm) struct Attended {
    /// (B, T, H, D), in the dtype of the queries.
    pub(in crate::lm) output: Tensor,
    /// Each head's statistics over the whole batch, (H, 3) of float32, for
    /// [`HeadStatistics::of_layers`](super::HeadStatistics::of_layers): its largest and smallest logit before the softcap, since those are what
    /// grows, and its entropy after it.
    pub(in crate::lm) statistics: Tensor,
    /// To the gradients of queries, keys and values.
    pub(in crate::lm) pullback: Pullback<3>,
}
