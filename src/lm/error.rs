//! Errors of training.

use std::io;
use std::path::{Path, PathBuf};

use crate::targets::TargetError;

/// Why a training run could not be defined, started or saved. Each message says what was found
/// and what to do. A run that diverges is not an error but an [`Outcome`](crate::lm::Outcome).
#[derive(Debug, thiserror::Error)]
pub enum LmError {
    /// A key with a value that it cannot take.
    #[error("{}", value_error(key, found, why))]
    Value {
        /// The key.
        key: &'static str,
        /// The value as given.
        found: String,
        /// What the key may be.
        why: String,
    },
    /// A device that is not there, or that does not compute what is asked.
    #[error("device cuda: {why}")]
    NoDevice {
        /// What is missing.
        why: String,
    },
    /// No text where one is needed.
    #[error("the model needs a text, and none is given")]
    NoText,
    /// A text with fewer tokens than a passage needs.
    #[error(
        "the text is too short: {found} of the {needed} tokens needed; give a longer text, or use fewer tokens"
    )]
    ShortText {
        /// Tokens of the text.
        found: usize,
        /// Where the passage ends.
        needed: usize,
    },
    /// A file of exported heads with fewer passages than are asked for.
    #[error(
        "the file has {found} passages, but groups × passages is {needed}; ask for fewer, or export more"
    )]
    FewPassages {
        /// Passages of the file.
        found: usize,
        /// How many are asked for.
        needed: usize,
    },
    /// A corpus too short for the context.
    #[error(
        "{part} has {tokens} tokens, but one context needs {needed}; give a longer text or a smaller \
         context"
    )]
    TextTooShort {
        /// Which part of the text, or all of it.
        part: &'static str,
        /// How many tokens it has.
        tokens: usize,
        /// How many one window of context + 1 tokens needs.
        needed: usize,
    },
    /// Tokens that could not be written.
    #[error("cannot write the tokens of the text: {0}; check the free disk space")]
    Tokens(#[source] io::Error),
    /// A text that cannot be made into characters.
    #[error("the text is not UTF-8 at byte {byte}; convert it, or set vocabulary=byte")]
    NotUtf8 {
        /// The first byte that is not part of a character.
        byte: usize,
    },
    /// Weights that are not what activations are multiplied by.
    #[error(
        "the model uses sigma-reparam, so its weights cannot be edited or reused; take a run without it"
    )]
    Reparametrised,
    /// Weights of a model of another shape than the one that is to begin with them.
    #[error("{key} is {here}, but the starting weights have {there}; set the same value")]
    OtherShape {
        /// The first key that differs.
        key: &'static str,
        /// Its value in the run that is to begin.
        here: String,
        /// Its value in the weights.
        there: String,
    },
    /// A model that was not trained to predict the next token.
    #[error(
        "the model predicts masked tokens, not the next one; take a run with objective = next-token"
    )]
    NotNextToken,
    /// A passage without a token after the first.
    #[error("a passage of under two tokens has no next token; give a longer one")]
    NoNextToken,
    /// A file of a model that cannot be used.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was found and, of a published model, what can be used.
        why: String,
    },
    /// A file that could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Attention that could not be made for a head.
    #[error(transparent)]
    Attention(#[from] TargetError),
    /// A recorder that could not keep a record, as on a full disk.
    #[error("cannot write a record of the run: {0}")]
    Recorder(#[from] io::Error),
    /// Anything else that is wrong with a definition, a text, a model or a machine: what was found, and what to do.
    #[error("{0}")]
    Refused(String),
    /// An error of the tensor library: a shape or a device, never a value that a user gave.
    #[error("tensor operation: {0}")]
    Tensor(#[from] candle_core::Error),
}

impl LmError {
    /// What an error of the file system at `path` becomes.
    pub(in crate::lm) fn io(path: &Path) -> impl Fn(io::Error) -> Self + Copy + use<'_> {
        |source| Self::Io { path: path.to_owned(), source }
    }

    /// That the file at `path` cannot be used, and why.
    pub(in crate::lm) fn file(path: &Path, why: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), why: why.into() }
    }
}

/// `window must be at least 1 (0 found)`; what to do follows what was found.
fn value_error(key: &str, found: &str, why: &str) -> String {
    let (wrong, then) = why
        .split_once("; ")
        .map_or((why, String::new()), |(wrong, then)| (wrong, format!("; {then}")));
    format!("{key} {wrong} ({found} found){then}")
}

/// An error naming the key and what was found, unless `holds`.
pub(in crate::lm) fn require(
    holds: bool,
    key: &'static str,
    found: impl ToString,
    why: &str,
) -> Result<(), LmError> {
    if holds {
        Ok(())
    } else {
        Err(LmError::Value { key, found: found.to_string(), why: why.to_owned() })
    }
}
