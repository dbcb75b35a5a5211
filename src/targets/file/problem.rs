//! Errors in the bytes of a matrix file.

use crate::targets::TargetError;

/// Why the bytes of a file are no square matrix.
pub(super) enum Problem {
    /// They cannot be read as a matrix.
    Unreadable(String),
    /// The matrix is not one that a target can be.
    Unfit(TargetError),
}

impl From<String> for Problem {
    fn from(why: String) -> Self {
        Self::Unreadable(why)
    }
}

/// A square shape, or what is wrong with this one.
pub(super) fn square(rows: usize, columns: usize) -> Result<usize, Problem> {
    if rows == 0 {
        Err(Problem::Unfit(TargetError::Empty))
    } else if rows != columns {
        Err(Problem::Unfit(TargetError::NotSquare { rows, columns }))
    } else {
        Ok(rows)
    }
}
