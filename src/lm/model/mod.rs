//! The language model: a GPT-2-style decoder without biases.
//!
//! Shapes: B sequences of T tokens, V symbols, C = d_model channels, H heads of D = C/H channels.
//! Activations are (B·T, C) matrices throughout.

mod attending;
mod block;
mod decoder;
mod edited;
mod forward;
mod gradients;
mod language_model;
mod lesson;
mod parameters;
#[cfg(test)]
mod pytorch_tests;
mod qk_clip;
mod session;
mod shape;
mod teacher;
#[cfg(test)]
pub(super) mod tests;
mod weights;

pub use attending::Attend;
pub use forward::Forward;
pub(super) use gradients::BatchGradients;
pub use language_model::Model;
pub use session::Session;
pub use shape::ModelShape;
pub use teacher::Teacher;
pub(super) use weights::Weight;
