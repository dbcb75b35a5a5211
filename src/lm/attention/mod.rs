//! Multi-head attention on the CPU as one operator, causal or bidirectional, with global and local heads. The forward
//! pass also records statistics of the logits.
//!
//! Work is split into blocks of rows, each computed against only the columns that its rows attend to. A local head costs
//! O(T·w) time and a causal global head half of T²; memory is O(block · T). No T × T array is allocated in either pass.
//! The forward pass keeps one log-sum-exp per row, from which the backward pass recomputes the probabilities (Dao et al.
//! 2022, arXiv 2205.14135). Unlike there, a block spans all columns of its rows, so no running rescaling is needed.
//! The matrix products are those of the solver: keys and values are packed once, and probabilities are used in place.
//! A head with a two-dimensional window is computed over the contiguous window around it. Its softmax covers only the
//! columns that the head attends to; all other entries are zero in the products that follow.

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
