//! Errors of rows that a table is made from.

use std::path::{Path, PathBuf};

use crate::record::RowsError;
use crate::run::RunError;
use crate::solver::{FactorsFileError, FitError};
use crate::targets::TargetError;

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

impl TableError {
    /// `found`, or [`NoRows`](Self::NoRows) where the rows of the file had nothing for the table.
    pub(crate) fn unless_empty<T>(
        found: Vec<T>,
        path: &Path,
        why: &str,
        advice: &str,
    ) -> Result<Vec<T>, Self> {
        if found.is_empty() {
            let (path, why, advice) = (path.to_owned(), why.to_owned(), advice.to_owned());
            return Err(Self::NoRows { path, why, advice });
        }
        Ok(found)
    }
}

/// What to do where every row of a study has an error.
pub(crate) const READ_ERR: &str = "read the column err, and run the study again";
