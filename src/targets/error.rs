//! Errors of target matrices and their descriptions.

use std::fmt::Display;

use crate::system::nearest::instead;

/// An error while a target is built, read or written. Each message says what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
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
    /// The name `found` of a `what`, which is not in `valid`.
    pub(super) fn unknown(what: &str, found: &str, valid: &[&str]) -> Self {
        Self::Other(format!("unknown {what} {found:?}; {}", instead(found, valid)))
    }

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
