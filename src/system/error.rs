//! Errors of files.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be read or written, or a folder taken. Each message says what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file or folder that cannot be written.
    #[error("cannot write {}: {source}; check the folder, its permissions and free space", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder that another process is writing to.
    #[error("{by} is writing to {}; wait for it, or stop it", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
        /// Who, in words.
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
