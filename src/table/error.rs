//! What can be wrong with the rows that a table is made from.

use std::path::PathBuf;

use crate::row::RowsError;

/// Why rows could not be read or tabulated. Each message names the file, what was found and what
/// to do.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Rows that cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
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
    /// A table that the data-frame library cannot write.
    #[error("{name}: cannot be written as Parquet: {source}")]
    Frame {
        /// The table's name.
        name: String,
        /// What polars said.
        source: polars::error::PolarsError,
    },
}
