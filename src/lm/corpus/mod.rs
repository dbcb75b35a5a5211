//! What a model is trained on: a text, or a seeded synthetic corpus of known entropy.

mod local;
mod synthetic;
mod text;

pub use synthetic::SyntheticCorpus;
pub use text::Vocabulary;

use super::{LmError, TrainDefinition};
use crate::digest::sha256;
use crate::lm::records::Split;

/// Tokens, split by position into a first part for training and a last part for validation.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// The symbols that tokens stand for.
    pub vocabulary: Vocabulary,
    /// SHA-256, in hexadecimal, of the text's bytes or of the synthetic tokens as little-endian
    /// 32-bit words.
    pub sha256: String,
    /// The generator's mean conditional entropy in nats a token, the least loss that any model
    /// can expect; none for a text, whose entropy nobody knows.
    pub entropy_nats: Option<f64>,
    tokens: Vec<u32>,
    train_tokens: usize,
}

impl Corpus {
    /// A text's tokens under the definition's vocabulary.
    ///
    /// # Errors
    /// A text that is not UTF-8 where the vocabulary is characters, one too short for the context,
    /// or a value of the definition that its key cannot take.
    pub fn from_text(definition: &TrainDefinition, text: &[u8]) -> Result<Self, LmError> {
        let vocabulary = Vocabulary::of_text(definition.vocabulary, text)?;
        let tokens = vocabulary.encode(text)?;
        Self::new(definition, vocabulary, tokens, sha256(text), None)
    }

    /// The synthetic corpus that the definition's `corpus` table describes.
    ///
    /// # Errors
    /// A corpus too short for the context, or a value that its key cannot take.
    pub fn synthetic(definition: &TrainDefinition) -> Result<Self, LmError> {
        let (tokens, entropy) = definition.corpus.generate()?;
        let words: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        let vocabulary = Vocabulary::Symbols { size: definition.corpus.vocabulary_size() };
        Self::new(definition, vocabulary, tokens, sha256(&words), Some(entropy))
    }

    fn new(
        definition: &TrainDefinition,
        vocabulary: Vocabulary,
        tokens: Vec<u32>,
        sha256: String,
        entropy_nats: Option<f64>,
    ) -> Result<Self, LmError> {
        definition.check()?;
        let train_tokens = (tokens.len() as f64 * (1.0 - definition.valid_fraction)) as usize;
        let corpus = Self { vocabulary, sha256, entropy_nats, tokens, train_tokens };
        for (split, part) in [
            (Split::Train, "the training part of the text"),
            (Split::Valid, "the validation part of the text"),
        ] {
            let (tokens, needed) = (corpus.split(split).len(), definition.context + 1);
            if tokens < needed {
                return Err(LmError::TextTooShort { part, tokens, needed });
            }
        }
        Ok(corpus)
    }

    /// The tokens of one split, in the order of the text.
    pub fn split(&self, split: Split) -> &[u32] {
        match split {
            Split::Train => &self.tokens[..self.train_tokens],
            Split::Valid => &self.tokens[self.train_tokens..],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_splits_by_position() {
        let definition =
            TrainDefinition { context: 4, valid_fraction: 0.25, ..TrainDefinition::default() };
        let text = "to be or not to be, that";
        let corpus = Corpus::from_text(&definition, text.as_bytes()).unwrap();
        assert_eq!(corpus.split(Split::Train).len(), 18);
        assert_eq!(corpus.split(Split::Valid).len(), 6);
        // `printf 'to be or not to be, that' | sha256sum`
        assert_eq!(
            corpus.sha256,
            "79ef46162abb26edef98282334febbd868ea5a25087541da5cac1c1cf6f25007"
        );
    }

    #[test]
    fn a_split_shorter_than_a_context_is_an_error_that_says_what_to_do() {
        let definition = TrainDefinition { context: 10, ..TrainDefinition::default() };
        let error = Corpus::from_text(&definition, &[b'a'; 50]).unwrap_err().to_string();
        assert!(error.contains("valid") && error.contains(" 5 tokens"), "{error}");
        assert!(error.contains("11") && error.contains("--set context="), "{error}");
    }
}
