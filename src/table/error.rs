//! What can be wrong with the rows that a table is made from.

use std::path::{Path, PathBuf};

/// Why rows could not be read or tabulated. Each message names the file, what was found and what
/// to do.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A file that is not there or cannot be read.
    #[error("cannot read {}: {why}; {advice}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
        /// What to do.
        advice: String,
    },
    /// A header without a column that the table needs.
    #[error("{}: no column {column:?} (found: {found}); {advice}", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column needed.
        column: String,
        /// The columns that are there.
        found: String,
        /// What to do.
        advice: String,
    },
    /// A line that cannot be a row: torn, with fields too many or too few, or not text.
    #[error("{}, line {line}: {why}; {advice}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1 with the header as line 1.
        line: u64,
        /// What is wrong with it.
        why: String,
        /// What to do.
        advice: String,
    },
    /// A file without a row that the table could use.
    #[error("{}: {why}; {advice}", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
        /// Which rows are lacking.
        why: String,
        /// What to do.
        advice: String,
    },
    /// A failure of the data-frame library on columns that had been checked.
    #[error("{}: cannot tabulate the rows: {source}", path.display())]
    Frame {
        /// The file.
        path: PathBuf,
        /// What polars said.
        source: polars::error::PolarsError,
    },
}

impl TableError {
    /// Ties an error of polars to the file whose rows were in hand.
    pub(super) fn frame(path: &Path) -> impl Fn(polars::error::PolarsError) -> Self + '_ {
        |source| Self::Frame { path: path.to_owned(), source }
    }
}
