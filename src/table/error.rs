//! Errors of rows that a table is made from.

use std::path::Path;

use crate::record::RowsError;
use crate::run::RunError;
use crate::solver::FitError;
use crate::system::FileError;
use crate::targets::TargetError;

/// Why rows could not be read or tabulated. Each message names the file, what is wrong and what to do.
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
    Factors(#[from] FileError),
    /// Queries and keys that do not match their fit.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A file without a row for the table.
    #[error("{0}")]
    NoRows(String),
    /// A table that the data-frame library cannot write.
    #[error("{name}: cannot be written as Parquet: {source}")]
    Frame {
        /// The table's name.
        name: String,
        /// The error of polars.
        source: polars::error::PolarsError,
    },
}

impl TableError {
    /// Returns `found`, or [`NoRows`](Self::NoRows) if it is empty.
    pub(crate) fn unless_empty<T>(
        found: Vec<T>,
        path: &Path,
        why: &str,
        advice: &str,
    ) -> Result<Vec<T>, Self> {
        if found.is_empty() {
            return Err(Self::NoRows(format!("{}: {why}; {advice}", path.display())));
        }
        Ok(found)
    }
}

/// Advice if every row of a study has an error.
pub(crate) const READ_ERR: &str = "read the column err, and run the study again";
