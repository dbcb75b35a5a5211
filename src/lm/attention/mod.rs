//! Multi-head attention on the CPU as one operator, causal or bidirectional, with each head global or
//! local and its logits measured on the way.
//!
//! The work goes in blocks: some rows against only the columns that they see, so a local head
//! costs O(T·w) and a global one half of T², in time, and O(block · T) in memory: no T × T array is
//! ever built, neither forward nor backward. The forward pass keeps one log-sum-exp a row, from which
//! the backward pass rebuilds the probabilities (Dao et al. 2022, arXiv 2205.14135; unlike theirs, a
//! block here spans all columns of its rows, so no running rescaling is needed). The products are
//! those of the fit: keys and values are packed once, and probabilities are multiplied where they lie.
//! A head whose window is two-dimensional is computed over the contiguous one around it; the softmax is over
//! what it sees, and everything else is zero in the products after it.

mod backward;
mod evaluator;
mod forward;
mod heads;
mod lags;
mod mask;
mod operator;
mod packed;
#[cfg(test)]
mod reference;
mod statistics;
mod tasks;
#[cfg(test)]
mod tests;

pub use evaluator::{AttentionEvaluator, AttentionPass};
pub(super) use heads::{Attended, AttentionGradients, Dimensions, Heads};
pub(super) use operator::attention;
pub use statistics::HeadStatistics;
