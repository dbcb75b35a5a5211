//! Errors of files.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be read or written, or a folder could not be locked. Each message says what is wrong and what
/// to do.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The file or folder cannot be written.
    #[error("cannot write {}: {source}; check the folder, its permissions and free space", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Another process is writing to the folder.
    #[error("{by} is writing to {}; wait for it, or stop it", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
        /// The process that holds the folder, in words.
        by: String,
    },
}

impl FileError {
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}
