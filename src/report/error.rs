//! Errors of reports and pages.

use crate::figure::FigureError;
use crate::record::RowsError;
use crate::study::StudyError;
use crate::system::FileError;
use crate::table::TableError;

/// Why a study could not be analysed or its report written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Rows that cannot be read.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// Rows that cannot be tabulated.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A figure that cannot be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// A manifest that cannot be read.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// A file that cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Anything else, in words.
    #[error("{0}")]
    Message(String),
}
