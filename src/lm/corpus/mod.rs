//! What a model is trained on: a text, or a seeded synthetic corpus of known entropy.

mod bpe;
mod cache;
mod document;
mod encode;
mod local;
mod pieces;
#[cfg(test)]
mod record_tests;
mod split;
mod synthetic;
#[cfg(test)]
mod tests;
mod texts;
mod tokenised;
mod tokens;
mod vocabulary;
mod written;

pub use bpe::Bpe;
pub use split::Split;
pub use texts::Texts;
pub use tokenised::Corpus;
pub use tokens::Tokens;
pub use vocabulary::{Symbols, Vocabulary};
