//! What can be wrong with the rows that a table is made from.

use std::path::PathBuf;

use crate::fit::{FactorsFileError, FitError};
use crate::pattern::TargetError;
use crate::row::RowsError;
use crate::run::RunError;

/// Why rows could not be read or tabulated. Each message names the file, what was found and what
/// to do.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Rows that cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// A training run's files that cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The target of a fit that cannot be read.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Queries and keys of a fit that cannot be read.
    #[error(transparent)]
    Factors(#[from] FactorsFileError),
    /// Queries and keys that are not of the fit beside them.
    #[error(transparent)]
    Fit(#[from] FitError),
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
