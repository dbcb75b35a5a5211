//! The key `vocabulary` of a training definition.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The fewest symbols of a byte-pair vocabulary: the bytes and the end of a document.
const LEAST_PAIRS: usize = 257;
/// The most.
const MOST_PAIRS: usize = 1 << 20;

/// How a text becomes tokens. The synthetic corpus has symbols of its own and ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum TextVocabulary {
    /// `byte`: one token a byte, 256 symbols.
    Byte,
    /// `characters`: one token a character; the distinct characters of all splits, in code point
    /// order.
    Characters,
    /// `bpe:SIZE`: byte pairs, merged as often as SIZE symbols allow; see [`crate::lm::Bpe`].
    Bpe {
        /// Symbols in all, the end of a document among them where there is one.
        size: usize,
    },
}

impl fmt::Display for TextVocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte => f.write_str("byte"),
            Self::Characters => f.write_str("characters"),
            Self::Bpe { size } => write!(f, "bpe:{size}"),
        }
    }
}

impl FromStr for TextVocabulary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pairs = text.strip_prefix("bpe:").and_then(|size| size.parse().ok());
        match (text, pairs) {
            ("byte", _) => Ok(Self::Byte),
            ("characters", _) => Ok(Self::Characters),
            (_, Some(size)) if (LEAST_PAIRS..=MOST_PAIRS).contains(&size) => Ok(Self::Bpe { size }),
            _ => Err(format!(
                "vocabulary = {text:?} is unknown; give byte, characters or bpe:SIZE \
                 ({LEAST_PAIRS} to {MOST_PAIRS}), such as bpe:8192"
            )),
        }
    }
}

impl TryFrom<String> for TextVocabulary {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TextVocabulary> for String {
    fn from(vocabulary: TextVocabulary) -> Self {
        vocabulary.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_reads_back_as_written_and_a_wrong_one_is_told_what_to_be() {
        for text in ["byte", "characters", "bpe:257", "bpe:20000"] {
            assert_eq!(text.parse::<TextVocabulary>().unwrap().to_string(), text);
        }
        for text in ["bytes", "bpe", "bpe:", "bpe:256", "bpe:1048577", "bpe:-1", "bpe:8k"] {
            let error = text.parse::<TextVocabulary>().unwrap_err();
            assert!(error.contains(text) && error.contains("bpe:8192"), "{error}");
        }
    }
}
