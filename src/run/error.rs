//! Errors of training runs.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::lm::LmError;
use crate::record::RowsError;
use crate::system::FileError;

/// Why a training run could not be made, continued or read. Each message says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An error of a file in the run's folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// Rows that cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// An error of the definition, the text or the model.
    #[error(transparent)]
    Model(#[from] LmError),
    /// A file or a folder that cannot be used, such as a manifest without a required entry.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The fault, and what to do.
        why: String,
    },
    /// A worker whose run differs from that of worker 0: what differs, and what to do.
    #[error("{0}")]
    OtherWorker(String),
}

impl RunError {
    /// The file or folder `path` cannot be used: the fault, and what to do.
    pub(super) fn unusable(path: &Path, why: impl Into<String>) -> Self {
        Self::Unusable { path: path.to_owned(), why: why.into() }
    }

    /// No run can have written the log at `path`: the fault.
    pub(super) fn log(path: &Path, why: impl Display) -> Self {
        Self::unusable(path, format!("{why}; move the file away to measure again"))
    }
}
