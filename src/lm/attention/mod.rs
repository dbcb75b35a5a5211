//! Multi-head attention on the CPU as one operator, behind a causal mask, with global and local heads. The forward
//! pass also records statistics of the logits.
//!
//! Work is split into blocks of rows, each computed against only the columns that its rows attend to. A local head costs
//! O(T·w) time and a global head half of T²; memory is O(block · T). No T × T array is allocated in either pass.
//! The forward pass keeps one log-sum-exp per row, from which the backward pass recomputes the probabilities (Dao et al.
//! 2022, arXiv 2205.14135). Unlike there, a block spans all columns of its rows, so no running rescaling is needed.
//! The matrix products are those of the solver: keys and values are packed once, and probabilities are used in place.

mod backward;
mod evaluator;
mod forward;
mod heads;
mod lags;
mod operator;
mod packed;
#[cfg(test)]
mod reference;
mod statistics;
mod tasks;
#[cfg(test)]
mod tests;

pub use evaluator::{AttentionEvaluator, AttentionPass};
pub(super) use heads::{Attended, AttentionGradients, Heads};
pub(super) use operator::attention;
pub use statistics::HeadStatistics;
