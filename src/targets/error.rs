//! Errors of target matrices and their descriptions.

use std::fmt::Display;
use std::path::PathBuf;

use crate::system::nearest::UnknownName;

/// An error while a target is built, read or written. Each message says what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A name that is not valid.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// A parameter with an invalid value, or a missing parameter.
    #[error("family {family}: {why}")]
    Parameter {
        /// The family.
        family: &'static str,
        /// The parameter, its value, and the values it may have.
        why: String,
    },
    /// Weight on a pair that the mask forbids.
    #[error("{0}")]
    Mask(String),
    /// A file that holds no matrix, or one that cannot be a target.
    #[error("{}: {problem}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// The error in the matrix.
        problem: Box<TargetError>,
    },
    /// Any other error.
    #[error("{0}")]
    Other(String),
}

impl From<String> for TargetError {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

impl TargetError {
    /// A matrix with no rows.
    pub(super) fn empty() -> Self {
        Self::Other("the target has no rows; give at least a 1 × 1 matrix".to_owned())
    }

    /// A matrix that is not square.
    pub(super) fn not_square(rows: usize, columns: usize) -> Self {
        Self::Other(format!(
            "the target is {rows} × {columns}; it must be square, with one row per query and one column per key"
        ))
    }

    /// A decomposition that failed.
    pub(crate) fn decomposition(error: impl Display) -> Self {
        Self::Other(format!("the singular values of the target could not be computed: {error}"))
    }
}
