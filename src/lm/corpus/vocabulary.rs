//! Vocabularies: the mapping between texts and tokens.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::bpe::Bpe;
use super::document::Piece;
use crate::lm::LmError;

/// The text shown for the end of a document.
const END: &str = "<end>";

/// The symbols of a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Symbols {
    /// One token per byte.
    Bytes,
    /// One token per character; the token is the character's index in this list.
    Characters(Vec<char>),
    /// BPE.
    BytePairs(Bpe),
    /// Symbols without a written form, as in the synthetic corpus.
    Unwritten {
        /// The number of symbols.
        size: usize,
    },
}

/// The symbols of a model. The last one may be the end of a document.
///
/// An end follows every document of a corpus from a folder, so that each document boundary within a context is marked.
/// A single file has no end. An end stands for 0 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vocabulary {
    /// The symbols except the end of a document.
    pub symbols: Symbols,
    /// Whether the vocabulary has an end-of-document token.
    pub has_end: bool,
}

impl Vocabulary {
    /// The number of symbols V, including the end of a document.
    pub fn size(&self) -> usize {
        let symbols = match &self.symbols {
            Symbols::Bytes => 256,
            Symbols::Characters(characters) => characters.len(),
            Symbols::BytePairs(bpe) => bpe.symbols(),
            Symbols::Unwritten { size } => *size,
        };
        symbols + usize::from(self.has_end)
    }

    /// The end-of-document token, which is the last symbol.
    pub fn end(&self) -> Option<u32> {
        self.has_end.then(|| (self.size() - 1) as u32)
    }

    /// Number of bytes of a token: 0 for the end of a document and for symbols without a written form.
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

    /// The text of each token, in order; `None` if symbols have no written form. Bytes of a token that are not whole characters
    /// become �.
    pub fn texts_of(&self, tokens: &[u32]) -> Option<Vec<String>> {
        tokens.iter().map(|&token| self.text_of(token)).collect()
    }

    fn text_of(&self, token: u32) -> Option<String> {
        if self.end() == Some(token) {
            return Some(END.to_owned());
        }
        match &self.symbols {
            Symbols::Bytes => Some(String::from_utf8_lossy(&[token as u8]).into_owned()),
            Symbols::Characters(characters) => characters.get(token as usize).map(char::to_string),
            Symbols::BytePairs(bpe) => {
                Some(String::from_utf8_lossy(&bpe.written(token)).into_owned())
            }
            Symbols::Unwritten { .. } => None,
        }
    }
}

/// Encodes a text piece by piece and caches the tokens of words.
#[derive(Clone, Default)]
pub(super) struct Encoder {
    words: HashMap<Box<str>, Box<[u32]>>,
}

impl Encoder {
    /// Appends the tokens of a piece to `tokens`.
    pub fn encode(
        &mut self,
        vocabulary: &Vocabulary,
        piece: &Piece,
        tokens: &mut Vec<u32>,
    ) -> Result<(), LmError> {
        match &vocabulary.symbols {
            Symbols::Bytes => tokens.extend(piece.bytes.iter().map(|&byte| u32::from(byte))),
            Symbols::Unwritten { .. } => {
                return Err(LmError::Refused(
                    "the model was trained on the synthetic corpus and cannot read a text; leave --text out"
                        .to_owned(),
                ));
            }
            Symbols::BytePairs(bpe) => bpe.encode(piece.text()?, &mut self.words, tokens)?,
            Symbols::Characters(characters) => {
                for character in piece.text()?.chars() {
                    let token = characters.binary_search(&character).map_err(|_| {
                        LmError::Refused(format!(
                            "the vocabulary of the model has no {character:?}; train a model on text that has it"
                        ))
                    })?;
                    tokens.push(token as u32);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    impl Vocabulary {
        /// Encodes a text, without an end-of-document token.
        pub(in crate::lm::corpus) fn encode(&self, text: &[u8]) -> Result<Vec<u32>, LmError> {
            let mut tokens = Vec::new();
            let piece = Piece { start: 0, bytes: text.to_vec() };
            Encoder::default().encode(self, &piece, &mut tokens)?;
            Ok(tokens)
        }
    }

    fn characters(text: &str, has_end: bool) -> Vocabulary {
        let seen: BTreeSet<char> = text.chars().collect();
        let symbols = Symbols::Characters(seen.into_iter().collect());
        Vocabulary { symbols, has_end }
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
        let bytes = |has_end: bool| Vocabulary { symbols: Symbols::Bytes, has_end };
        for (vocabulary, end) in [(characters("abc", true), 3), (bytes(true), 256)] {
            assert_eq!((vocabulary.size(), vocabulary.end()), (end as usize + 1, Some(end)));
            assert_eq!(vocabulary.bytes_of(end), 0);
        }
        assert_eq!((characters("abc", false).end(), bytes(false).end()), (None, None));
    }

    #[test]
    fn symbols_stand_for_themselves_where_they_are_text_and_unwritten_ones_for_nothing() {
        let of = |symbols: Symbols| Vocabulary { symbols, has_end: true };
        let bytes = of(Symbols::Bytes).texts_of(&[97, 0xc3, 0xa9, 256]).unwrap();
        assert_eq!(bytes, ["a", "\u{fffd}", "\u{fffd}", "<end>"]);
        let characters = of(Symbols::Characters(vec!['x', '\n'])).texts_of(&[1, 0, 2]).unwrap();
        assert_eq!(characters, ["\n", "x", "<end>"]);
        assert_eq!(of(Symbols::Unwritten { size: 3 }).texts_of(&[0, 1]), None);
    }
}
