//! Published models, from which queries and keys of the heads are computed.

mod attention;
mod config;
mod gguf;
mod gguf_tokenizer;
mod layers;
mod model;
mod read;
mod rotary;
mod stored;
#[cfg(test)]
mod tests;
mod transformer;
mod types;
mod weights;

pub(in crate::lm) use layers::with_ones;
pub use model::PretrainedModel;
#[cfg(all(test, feature = "study"))]
pub(crate) use tests::Published;
pub(in crate::lm) use types::{NormOver, Pairs};
