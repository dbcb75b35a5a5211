//! Symbols: how a text becomes tokens.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::bpe::Bpe;
use crate::lm::LmError;

/// What tokens stand for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Symbols {
    /// One token a byte.
    Bytes,
    /// One token a character; the token is the character's place in this list.
    Characters(Vec<char>),
    /// Byte pairs.
    BytePairs(Bpe),
    /// Symbols without a written form, as the synthetic corpus has.
    Unwritten {
        /// How many there are.
        size: usize,
    },
}

/// The symbols of a model, and whether the last one is the end of a document.
///
/// That end follows every document of a corpus whose documents come from a folder, so that no window
/// crosses from one into the next unmarked. A single file has none. It stands for no bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vocabulary {
    /// What the other tokens stand for.
    pub symbols: Symbols,
    /// Whether there is an end of a document.
    pub has_end: bool,
}

impl Vocabulary {
    /// How many symbols there are, the end of a document among them: V.
    pub fn size(&self) -> usize {
        let symbols = match &self.symbols {
            Symbols::Bytes => 256,
            Symbols::Characters(characters) => characters.len(),
            Symbols::BytePairs(bpe) => bpe.symbols(),
            Symbols::Unwritten { size } => *size,
        };
        symbols + usize::from(self.has_end)
    }

    /// The end of a document: the last symbol.
    pub fn end(&self) -> Option<u32> {
        self.has_end.then(|| (self.size() - 1) as u32)
    }

    /// How many bytes a token stands for: none for the end of a document and for symbols that have
    /// no written form.
    pub fn bytes_of(&self, token: u32) -> u32 {
        if self.end() == Some(token) {
            return 0;
        }
        match &self.symbols {
            Symbols::Bytes => 1,
            Symbols::Characters(characters) => characters[token as usize].len_utf8() as u32,
            Symbols::BytePairs(bpe) => bpe.bytes_of(token),
            Symbols::Unwritten { .. } => 0,
        }
    }

    /// A text's tokens, without an end of the document.
    ///
    /// # Errors
    /// A character that the vocabulary lacks, bytes that are not UTF-8 where it needs characters, or
    /// symbols that have no written form.
    pub fn encode(&self, text: &[u8]) -> Result<Vec<u32>, LmError> {
        let mut tokens = Vec::with_capacity(text.len());
        Encoder::default().encode(self, text, &mut tokens)?;
        Ok(tokens)
    }
}

/// Encodes piece after piece of a text, and remembers what words became.
#[derive(Default)]
pub(super) struct Encoder {
    words: HashMap<Box<str>, Box<[u32]>>,
}

impl Encoder {
    /// Adds the tokens of a piece to `tokens`.
    pub fn encode(
        &mut self,
        vocabulary: &Vocabulary,
        piece: &[u8],
        tokens: &mut Vec<u32>,
    ) -> Result<(), LmError> {
        match &vocabulary.symbols {
            Symbols::Bytes => tokens.extend(piece.iter().map(|&byte| u32::from(byte))),
            Symbols::Unwritten { .. } => return Err(LmError::NoWrittenForm),
            Symbols::BytePairs(bpe) => bpe.encode(utf8(piece)?, &mut self.words, tokens)?,
            Symbols::Characters(characters) => {
                for character in utf8(piece)?.chars() {
                    match characters.binary_search(&character) {
                        Ok(token) => tokens.push(token as u32),
                        Err(_) => return Err(LmError::NotInVocabulary { found: character }),
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds the characters of a piece of text to those seen.
pub(super) fn see_characters(seen: &mut BTreeSet<char>, piece: &[u8]) -> Result<(), LmError> {
    seen.extend(utf8(piece)?.chars());
    Ok(())
}

/// A piece as text.
pub(super) fn utf8(piece: &[u8]) -> Result<&str, LmError> {
    std::str::from_utf8(piece).map_err(|e| LmError::NotUtf8 { byte: e.valid_up_to() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn characters(text: &str, has_end: bool) -> Vocabulary {
        let mut seen = BTreeSet::new();
        see_characters(&mut seen, text.as_bytes()).unwrap();
        Vocabulary { symbols: Symbols::Characters(seen.into_iter().collect()), has_end }
    }

    #[test]
    fn characters_are_numbered_in_code_point_order() {
        let vocabulary = characters("héllo", false);
        assert_eq!(vocabulary.symbols, Symbols::Characters(vec!['h', 'l', 'o', 'é']));
        assert_eq!(vocabulary.encode("héllo".as_bytes()).unwrap(), [0, 3, 1, 1, 2]);
        assert_eq!((vocabulary.bytes_of(0), vocabulary.bytes_of(3)), (1, 2));
        let error = vocabulary.encode(b"z").unwrap_err().to_string();
        assert!(error.contains("'z'"), "{error}");
    }

    #[test]
    fn the_end_of_a_document_is_the_last_symbol_and_has_no_bytes() {
        let vocabulary = characters("abc", true);
        assert_eq!((vocabulary.size(), vocabulary.end()), (4, Some(3)));
        assert_eq!(vocabulary.bytes_of(3), 0);
        assert_eq!(characters("abc", false).end(), None);
        let bytes = Vocabulary { symbols: Symbols::Bytes, has_end: true };
        assert_eq!((bytes.size(), bytes.end(), bytes.bytes_of(256)), (257, Some(256), 0));
    }

    #[test]
    fn bytes_need_not_be_text_but_characters_must() {
        let bytes = [104, 255];
        let vocabulary = Vocabulary { symbols: Symbols::Bytes, has_end: false };
        assert_eq!(vocabulary.encode(&bytes).unwrap(), [104, 255]);
        let error = characters("h", false).encode(&bytes).unwrap_err();
        assert!(error.to_string().contains("byte 1"), "{error}");
    }
}
