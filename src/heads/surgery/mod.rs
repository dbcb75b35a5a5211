//! Attention replacement: the loss of a trained model after the attention of its heads is replaced.
//!
//! Every head's attention P, or that of the heads of one kind, is replaced by some P̃, in all layers at once: a head's output is P̃·V with the values that the
//! residual stream as it has become gives. What that costs, in nats per token of held-out passages, says which of P the model
//! uses: fits of P at error ε say how small an error is harmless, and what is made of positions alone says what of P
//! is not about them. What is replaced, and where each P̃ is from, stands with [`Edit`].

mod cut;
mod directions;
mod divergence;
mod edit;
mod far;
mod free_fit;
mod operation;
mod tilt;
mod treatment;
mod truncate;

pub use edit::{Edit, EditedHeads};
pub use operation::{Operated, Surgery};
