//! Errors of training runs.

use std::path::PathBuf;

use crate::lm::LmError;
use crate::record::RowsError;
use crate::system::{FileError, NoDisk};

/// Why a training run could not be made, gone on with or read. Each message says what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of the run's folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// Rows that cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// The definition, the text or the model.
    #[error(transparent)]
    Model(#[from] LmError),
    /// Checkpoints that their disk has no room for.
    #[error("{}: checkpoints need at least {room}; free some, keep fewer checkpoints or shrink the model", folder.display())]
    NoDisk {
        /// The run's folder.
        folder: PathBuf,
        /// How much they take, and what there is.
        room: NoDisk,
    },
    /// A log that is not what a run writes.
    #[error("{}: {why}; move the file away to measure again", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file of a run that is not what it was when the run ended.
    #[error(
        "{}: the file has changed since the run wrote it (its SHA-256 differs from files_sha256 in \
         manifest.toml); restore it, or train the run again", .0.display()
    )]
    Altered(PathBuf),
    /// A manifest or a vocabulary that does not say what it must.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// A run to be extended that cannot be.
    #[error("{}: the run {why}", path.display())]
    NoExtension {
        /// The manifest of the run that is there.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// A worker that is to train another run than worker 0.
    #[error(
        "worker {rank} has {key} = {of_rank}, but worker 0 has {of_first}; start all workers with the \
         same command and text"
    )]
    OtherWorker {
        /// The rank of the worker.
        rank: usize,
        /// The first key whose values differ, with the keys of inner tables after a dot.
        key: String,
        /// Its value of worker 0.
        of_first: String,
        /// Its value of the other.
        of_rank: String,
    },
    /// A run to be gone on with that is another.
    #[error(
        "{}: {key} is {there} in this run, but {here} was asked for; resume it unchanged, or name another \
         folder",
        path.display()
    )]
    Another {
        /// The manifest of the run that is there.
        path: PathBuf,
        /// The first key whose values differ, with the keys of inner tables after a dot.
        key: String,
        /// Its value there.
        there: String,
        /// Its value here.
        here: String,
    },
}
