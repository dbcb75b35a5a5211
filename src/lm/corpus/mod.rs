//! Training data: a text, or a seeded synthetic corpus of known entropy.

mod bpe;
mod document;
mod hashed;
mod synthetic;
#[cfg(test)]
mod tests;
mod texts;
mod tokenised;
mod tokens;
mod vocabulary;

pub use bpe::Bpe;
pub use texts::{Split, Texts};
pub use tokenised::Corpus;
pub use vocabulary::{Symbols, Vocabulary};
