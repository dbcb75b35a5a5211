//! Attention replacement: the loss of a trained model after the attention of its heads is replaced.
//!
//! The attention P of every head is replaced by some P̃ in all layers at once. A head's output is
//! then P̃·V, with the values V of the edited model's residual stream. The increase of the loss, in nats per token of held-out
//! passages, shows which properties of P the model uses. Fits of P at error ε show how small an error is harmless. Attention
//! that depends on positions only shows how much of P is about positions. [`Edit`] lists the replacements and the source of
//! each P̃.

mod edit;
mod free_fit;
mod operation;
mod treatment;

pub use edit::Edit;
pub use operation::{InterventionMeasurement, Surgery};
