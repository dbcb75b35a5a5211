//! What can go wrong between processes.

use std::io;
use std::path::{Path, PathBuf};

/// Why processes could not meet, or cannot go on together. Each message names the process and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveError {
    /// Processes that did not come.
    #[error(
        "{missing} of {world} processes did not start within {seconds} s; start all of them, or wait longer"
    )]
    NotCome {
        /// The ranks that are missing, in words.
        missing: String,
        /// How many there are to be.
        world: usize,
        /// How long they were waited for.
        seconds: u64,
    },
    /// The process of rank 0 was not found.
    #[error("process 0 was not found within {seconds} s: {why}")]
    NoMeeting {
        /// How long it was looked for.
        seconds: u64,
        /// What was found last.
        why: String,
    },
    /// A process that may not take part.
    #[error("{0}")]
    Refused(String),
    /// A socket or the file by which processes find each other.
    #[error("{what}: {why}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        why: String,
    },
    /// A process that ended without a word.
    #[error(
        "process {rank} is gone: it was killed, or its machine cannot be reached; resume the run from its \
         last checkpoint"
    )]
    Gone {
        /// Its rank.
        rank: usize,
    },
    /// A process that ended and said why.
    #[error("process {rank} ended: {why}")]
    Ended {
        /// Its rank.
        rank: usize,
        /// What it said.
        why: String,
    },
    /// A process that says nothing.
    #[error(
        "no message from process {rank}, or one it waits for, in {seconds} s; check those processes, or \
         wait longer"
    )]
    Silent {
        /// Its rank.
        rank: usize,
        /// How long.
        seconds: u64,
    },
    /// Processes that do different things: a defect of this program.
    #[error("process {rank} is at another operation than this process; please report this")]
    OutOfStep {
        /// The other's rank.
        rank: usize,
    },
}

impl CollectiveError {
    pub(super) fn io(what: &str, source: &io::Error) -> Self {
        Self::Io { what: what.to_owned(), why: source.to_string() }
    }

    pub(super) fn file(what: &str, path: &Path, source: &io::Error) -> Self {
        let path: PathBuf = path.to_owned();
        Self::Io { what: format!("cannot {what} {}", path.display()), why: source.to_string() }
    }
}
