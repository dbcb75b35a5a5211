//! Byte-pair encoding (BPE) of texts.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::ModelWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainerBuilder};
use tokenizers::utils::SysRegex;
use tokenizers::{AddedToken, Model as _, Tokenizer, Trainer as _};

use crate::lm::LmError;
use crate::system::caught;

/// Splits text into words as GPT-2 does (github.com/openai/gpt-2, src/encoder.py). The
/// `ByteLevel` pre-tokenizer of a `tokenizer.json` uses the same pattern.
const WORDS: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// The end of a document in `tokenizer.json`. Text is never encoded as this token, even if it contains this string.
const END: &str = "<|endoftext|>";
/// The largest number of words whose tokens an encoder caches; the cache is then cleared.
const REMEMBERED: usize = 1 << 18;

/// A BPE vocabulary (Sennrich, Haddow and Birch 2016, arXiv 1508.07909) over bytes, as in
/// GPT-2: the 256 bytes are symbols, so no text is unknown. Training repeatedly merges the pair that is most frequent
/// within words into a new symbol; ties go to the symbols created first.
/// It counts words of the training split only and is deterministic.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Bpe(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    json: String,
    model: BPE,
    words: SysRegex,
    letters: [char; 256],
    has_end: bool,
    /// Number of bytes of each symbol.
    bytes: Vec<u32>,
}

impl Bpe {
    /// Trains a vocabulary of `size` symbols on pieces of text; fewer if no more pairs exist.
    /// With `has_end` the last symbol is the end of a document.
    pub(super) fn train(
        pieces: impl Iterator<Item = String> + Send,
        size: usize,
        has_end: bool,
    ) -> Result<Self, LmError> {
        let letters = letters();
        let words = pattern()?;
        let mut trainer = BpeTrainerBuilder::new()
            .vocab_size(size - usize::from(has_end))
            .initial_alphabet(letters.into_iter().collect())
            .show_progress(false)
            .build();
        let spelt = |piece: &str| {
            Ok(cut(&words, piece).map(|word| spell(&letters, word)).collect::<Vec<String>>())
        };
        trainer.feed(pieces, spelt).map_err(failed)?;
        let mut model = BPE::default();
        trainer.train(&mut model).map_err(failed)?;
        Self::new(model, has_end)
    }

    /// Reads a vocabulary that [`Self::json`] returned.
    ///
    /// # Errors
    /// Text that is not a `tokenizer.json` written by this program.
    pub fn from_json(json: &str) -> Result<Self, LmError> {
        // The library panics on some damaged files.
        caught(|| Self::heard(json)).unwrap_or_else(|why| Err(failed(why)))
    }

    fn heard(json: &str) -> Result<Self, LmError> {
        let tokenizer = Tokenizer::from_bytes(json).map_err(failed)?;
        let has_end = tokenizer.token_to_id(END).is_some();
        let ModelWrapper::BPE(model) = tokenizer.get_model() else {
            return Err(failed("its model is not BPE"));
        };
        let read = Self::new(model.clone(), has_end)?;
        if read.json() != json {
            return Err(failed("rank-study did not write it"));
        }
        Ok(read)
    }

    fn new(model: BPE, has_end: bool) -> Result<Self, LmError> {
        let mut tokenizer = Tokenizer::new(model.clone());
        tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, false, true)));
        tokenizer.with_decoder(Some(ByteLevel::new(false, false, true)));
        let mut symbols: Vec<(String, u32)> = model.get_vocab().into_iter().collect();
        symbols.sort_by_key(|(_, token)| *token);
        let mut bytes: Vec<u32> = symbols.iter().map(|(s, _)| s.chars().count() as u32).collect();
        if has_end {
            tokenizer.add_special_tokens([AddedToken::from(END, true)]).map_err(failed)?;
            bytes.push(0);
        }
        let json = tokenizer.to_string(true).map_err(failed)?;
        let (words, letters) = (pattern()?, letters());
        Ok(Self(Arc::new(Inner { json, model, words, letters, has_end, bytes })))
    }

    /// The vocabulary as `tokenizer.json`, readable by the `tokenizers` library.
    pub fn json(&self) -> &str {
        &self.0.json
    }

    /// Number of symbols, without the end of a document.
    pub(super) fn symbols(&self) -> usize {
        self.0.bytes.len() - usize::from(self.0.has_end)
    }

    /// Number of bytes of a token; 0 for the end of a document.
    pub(super) fn bytes_of(&self, token: u32) -> u32 {
        self.0.bytes[token as usize]
    }

    /// The bytes of a token; empty for the end of a document.
    pub(super) fn written(&self, token: u32) -> Vec<u8> {
        let Inner { model, letters, .. } = &*self.0;
        let byte = |letter| letters.iter().position(|&l| l == letter).map(|byte| byte as u8);
        model.id_to_token(token).unwrap_or_default().chars().filter_map(byte).collect()
    }

    /// Appends the tokens of `text` to `tokens`. `known` caches the tokens of words.
    pub(super) fn encode(
        &self,
        text: &str,
        known: &mut HashMap<Box<str>, Box<[u32]>>,
        tokens: &mut Vec<u32>,
    ) -> Result<(), LmError> {
        for word in cut(&self.0.words, text) {
            if let Some(found) = known.get(word) {
                tokens.extend_from_slice(found);
                continue;
            }
            let found = self.0.model.tokenize(&spell(&self.0.letters, word)).map_err(failed)?;
            let found: Box<[u32]> = found.into_iter().map(|token| token.id).collect();
            tokens.extend_from_slice(&found);
            if known.len() == REMEMBERED {
                known.clear();
            }
            known.insert(word.into(), found);
        }
        Ok(())
    }
}

impl PartialEq for Bpe {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

impl Eq for Bpe {}

impl From<Bpe> for String {
    fn from(bpe: Bpe) -> Self {
        bpe.json().to_owned()
    }
}

impl TryFrom<String> for Bpe {
    type Error = LmError;

    fn try_from(json: String) -> Result<Self, LmError> {
        Self::from_json(&json)
    }
}

fn failed(why: impl ToString) -> LmError {
    LmError::Refused(format!("BPE vocabulary: {}", why.to_string().replace('\n', " ")))
}

fn pattern() -> Result<SysRegex, LmError> {
    SysRegex::new(WORDS).map_err(failed)
}

/// Splits a text into words, whose concatenation is the text. If the pattern fails, the rest of the text is one word.
fn cut<'t>(words: &SysRegex, text: &'t str) -> impl Iterator<Item = &'t str> {
    let mut places = words.find_iter(text);
    let mut at = 0;
    std::iter::from_fn(move || {
        let end = places.next().map_or(text.len(), |(_, end)| end);
        let word = &text[at..end];
        at = end;
        (!word.is_empty()).then_some(word)
    })
}

/// The character of each byte in a byte-level vocabulary, as in GPT-2's
/// `bytes_to_unicode`: printable bytes are themselves, the others are U+0100 and up, in order.
fn letters() -> [char; 256] {
    let mut hidden = (0x100..).filter_map(char::from_u32);
    std::array::from_fn(|byte| match byte as u8 {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte as u8),
        _ => hidden.next().unwrap_or(char::REPLACEMENT_CHARACTER),
    })
}

fn spell(letters: &[char; 256], word: &str) -> String {
    word.bytes().map(|byte| letters[usize::from(byte)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "the quick brown fox, the lazy dog\nand the quick quail 's end: don't, naïve 3.14  \n\n déjà 你好 😀\t\t<|endoftext|> ";

    fn trained(has_end: bool) -> Bpe {
        Bpe::train(std::iter::repeat_n(TEXT.to_owned(), 3), 300, has_end).unwrap()
    }

    fn tokens(bpe: &Bpe, text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        bpe.encode(text, &mut HashMap::new(), &mut tokens).unwrap();
        tokens
    }

    #[test]
    fn it_encodes_as_the_library_reads_its_file() {
        let bpe = trained(false);
        let library = Tokenizer::from_bytes(bpe.json()).unwrap();
        for text in [TEXT, "unseen \u{a0} wörds\r\n", "   ", ""] {
            let found = tokens(&bpe, text);
            assert_eq!(found, library.encode(text, false).unwrap().get_ids(), "{text:?}");
            assert_eq!(library.decode(&found, false).unwrap(), text);
            let bytes: u32 = found.iter().map(|&token| bpe.bytes_of(token)).sum();
            assert_eq!(bytes as usize, text.len());
            let written: Vec<u8> = found.iter().flat_map(|&token| bpe.written(token)).collect();
            assert_eq!(written, text.as_bytes());
        }
        assert!(tokens(&bpe, TEXT).len() < TEXT.len() * 3 / 4, "nothing was merged");
    }

    #[test]
    fn training_is_deterministic_and_reads_back() {
        let bpe = trained(true);
        assert_eq!(bpe, trained(true));
        assert_eq!(Bpe::from_json(bpe.json()).unwrap(), bpe);
        assert_eq!((bpe.symbols(), bpe.bytes_of(299)), (299, 0));
        assert!(tokens(&bpe, TEXT).iter().all(|&token| token < 299), "text became an end");
        let other = bpe.json().replace("\"trim_offsets\": false", "\"trim_offsets\": true");
        let error = Bpe::from_json(&other).unwrap_err().to_string();
        assert!(error.contains("rank-study did not write it"), "{error}");
    }
}
