//! Errors of training runs.

use std::path::PathBuf;

use crate::lm::LmError;
use crate::record::RowsError;
use crate::system::{FileError, NoDisk};

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
    /// The disk has no space for the checkpoints.
    #[error("{}: checkpoints need at least {room}; free some, keep fewer checkpoints or shrink the model", folder.display())]
    NoDisk {
        /// The run's folder.
        folder: PathBuf,
        /// Space needed and available.
        room: NoDisk,
    },
    /// A log that no run can have written.
    #[error("{}: {why}; move the file away to measure again", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// A file of a run that has changed since the run ended.
    #[error(
        "{}: the file has changed since the run wrote it (its SHA-256 differs from files_sha256 in \
         manifest.toml); restore it, or train the run again", .0.display()
    )]
    Altered(PathBuf),
    /// A manifest or vocabulary without a required entry.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The fault, and what to do.
        why: String,
    },
    /// A run that cannot be extended to more steps.
    #[error("{}: the run {why}", path.display())]
    NoExtension {
        /// Manifest of the existing run.
        path: PathBuf,
        /// The fault, and what to do.
        why: String,
    },
    /// A worker whose run differs from that of worker 0.
    #[error(
        "worker {rank} has {key} = {of_rank}, but worker 0 has {of_first}; start all workers with the \
         same command and text"
    )]
    OtherWorker {
        /// The rank of the worker.
        rank: usize,
        /// First key whose values differ, as a path with dots.
        key: String,
        /// Value of worker 0.
        of_first: String,
        /// Value of the other worker.
        of_rank: String,
    },
    /// The run to resume is a different one.
    #[error(
        "{}: {key} is {there} in this run, but {here} was asked for; resume it unchanged, or name another \
         folder",
        path.display()
    )]
    Another {
        /// Manifest of the existing run.
        path: PathBuf,
        /// First key whose values differ, as a path with dots.
        key: String,
        /// Value in the existing run.
        there: String,
        /// Value of the run asked for.
        here: String,
    },
}
