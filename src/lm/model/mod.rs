//! The language model: a GPT-2-style decoder without biases.
//!
//! Shapes: B sequences of T tokens, V symbols, C = d_model channels, H heads of D = C/H channels.
//! Activations are (B·T, C) matrices throughout.

mod active_tokens;
mod attention_override;
mod block;
mod decoder;
mod gated_memory;
mod gradients;
mod language_model;
mod projection;
mod qk_clip;
mod recursion;
mod rounding;
mod self_attention;
mod session;
#[cfg(test)]
pub(super) mod tests;
mod weights;

pub(super) use attention_override::attended;
pub use decoder::Forward;
pub(super) use gradients::BatchGradients;
pub use language_model::Model;
pub use rounding::Matrices;
pub use session::Session;
pub(super) use weights::Weight;
pub use weights::{ModelShape, RecursionShape};
