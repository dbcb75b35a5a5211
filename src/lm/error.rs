//! Errors of training.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// An error of a training run or a model. Each message states what was found
/// and what to do. A run that diverges is not an error but an [`Outcome`](crate::lm::Outcome).
#[derive(Debug, thiserror::Error)]
pub enum LmError {
    /// A device that is missing or does not support the requested computation.
    #[error("device cuda: {why}")]
    NoDevice {
        /// What is missing or not supported.
        why: String,
    },
    /// A text is needed, but none is given.
    #[error("the model needs a text, and none is given; add --text FILE")]
    NoText,
    /// A model file that cannot be used.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was found and, for a published model, what is supported.
        why: String,
    },
    /// A file that could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A row or the tokens of a text that could not be written, for example on a full disk.
    #[error("cannot write a file of the run: {0}; check the free disk space")]
    Write(#[from] io::Error),
    /// Any other error in a definition, text, model or machine: what was found, and what to do.
    #[error("{0}")]
    Refused(String),
    /// An error of the tensor library about a shape or a device, never about a value from a user.
    #[error("tensor operation: {0}")]
    Tensor(#[from] candle_core::Error),
}

impl LmError {
    /// Converts an error of the file system at `path`.
    pub(in crate::lm) fn io(path: &Path) -> impl Fn(io::Error) -> Self + Copy + use<'_> {
        |source| Self::Io { path: path.to_owned(), source }
    }

    /// A text or a file of exported heads that has fewer tokens or passages than needed.
    pub fn too_few(whose: &str, found: usize, needed: usize, of: &str) -> Self {
        Self::Refused(format!(
            "{whose} has {found} of the {needed} {of} needed; give more, or lower context, tokens or groups"
        ))
    }

    /// A model without an output layer, whose loss was asked for.
    pub(in crate::lm) fn no_loss() -> Self {
        Self::Refused("the model has no output layer, so it has no loss; name one saved with its output layer".to_owned())
    }

    /// A model without the weights of a training here, whose weights were to be rounded.
    pub(crate) fn no_weights() -> Self {
        Self::Refused(
            "the model is not a run trained here, so its weights cannot be rounded; name a run"
                .to_owned(),
        )
    }

    /// The error that the file at `path` cannot be used, with the reason.
    pub(in crate::lm) fn file(path: &Path, why: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), why: why.into() }
    }
}

/// Returns an error with the key and the value found, unless `holds`: `window must be at least 1 (0 found)`. A part of `why`
/// after `; ` says what to do and follows the value.
pub(in crate::lm) fn require(
    holds: bool,
    key: &str,
    found: impl Display,
    why: &str,
) -> Result<(), LmError> {
    let (wrong, then) = why.split_at(why.find("; ").unwrap_or(why.len()));
    match holds {
        true => Ok(()),
        false => Err(LmError::Refused(format!("{key} {wrong} ({found} found){then}"))),
    }
}
