//! Symbols: how a text becomes tokens.

use serde::{Deserialize, Serialize};

use crate::lm::{LmError, TextVocabulary};

/// The symbols that tokens stand for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vocabulary {
    /// One token a byte.
    Bytes,
    /// One token a character; the token is the character's place in this list.
    Characters(Vec<char>),
    /// Symbols without a written form, as the synthetic corpus has.
    Symbols {
        /// How many there are.
        size: usize,
    },
}

impl Vocabulary {
    /// The vocabulary of a kind that covers `text`.
    pub(super) fn of_text(kind: TextVocabulary, text: &[u8]) -> Result<Self, LmError> {
        match kind {
            TextVocabulary::Byte => Ok(Self::Bytes),
            TextVocabulary::Characters => {
                let mut characters: Vec<char> = utf8(text)?.chars().collect();
                characters.sort_unstable();
                characters.dedup();
                Ok(Self::Characters(characters))
            }
        }
    }

    /// How many symbols there are: V.
    pub fn size(&self) -> usize {
        match self {
            Self::Bytes => 256,
            Self::Characters(characters) => characters.len(),
            Self::Symbols { size } => *size,
        }
    }

    /// A text's tokens.
    ///
    /// # Errors
    /// A character that the vocabulary lacks, bytes that are not UTF-8 where it is one of
    /// characters, or symbols that have no written form.
    pub fn encode(&self, text: &[u8]) -> Result<Vec<u32>, LmError> {
        match self {
            Self::Bytes => Ok(text.iter().map(|&b| b.into()).collect()),
            Self::Symbols { .. } => Err(LmError::NoWrittenForm),
            Self::Characters(characters) => utf8(text)?
                .chars()
                .map(|character| match characters.binary_search(&character) {
                    Ok(token) => Ok(token as u32),
                    Err(_) => Err(LmError::NotInVocabulary { found: character }),
                })
                .collect(),
        }
    }
}

fn utf8(text: &[u8]) -> Result<&str, LmError> {
    std::str::from_utf8(text).map_err(|e| LmError::NotUtf8 { byte: e.valid_up_to() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_numbered_in_code_point_order() {
        let text = "héllo".as_bytes();
        let vocabulary = Vocabulary::of_text(TextVocabulary::Characters, text).unwrap();
        assert_eq!(vocabulary, Vocabulary::Characters(vec!['h', 'l', 'o', 'é']));
        assert_eq!(vocabulary.encode(text).unwrap(), [0, 3, 1, 1, 2]);
        let error = vocabulary.encode(b"z").unwrap_err().to_string();
        assert!(error.contains("'z'"), "{error}");
    }

    #[test]
    fn bytes_need_not_be_text_but_characters_must() {
        let bytes = [104, 255];
        let vocabulary = Vocabulary::of_text(TextVocabulary::Byte, &bytes).unwrap();
        assert_eq!(vocabulary.encode(&bytes).unwrap(), [104, 255]);
        let error = Vocabulary::of_text(TextVocabulary::Characters, &bytes).unwrap_err();
        assert!(error.to_string().contains("byte 1"), "{error}");
    }
}
