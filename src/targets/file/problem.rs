//! Errors in the bytes of a matrix file.

use crate::targets::TargetError;

/// The reason why a file holds no square matrix that can be a target.
pub(super) enum Problem {
    /// The bytes cannot be read as a matrix.
    Unreadable(String),
    /// The matrix cannot be a target.
    Unfit(TargetError),
}

impl From<String> for Problem {
    fn from(why: String) -> Self {
        Self::Unreadable(why)
    }
}

/// Returns n for an n × n shape with n ≥ 1, and the error otherwise.
pub(super) fn square(rows: usize, columns: usize) -> Result<usize, Problem> {
    if rows == 0 {
        Err(Problem::Unfit(TargetError::Empty))
    } else if rows != columns {
        Err(Problem::Unfit(TargetError::NotSquare { rows, columns }))
    } else {
        Ok(rows)
    }
}
