//! Errors of reports and pages.

use std::path::PathBuf;

use crate::experiment::ViewError;
use crate::figure::FigureError;
use crate::record::RowsError;
use crate::study::StudyError;
use crate::table::TableError;
use crate::targets::TargetError;

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
    /// The definition in a manifest cannot be used: this version cannot read it, or it has no view.
    #[error(
        "{}: the definition recorded for the rows of {study} cannot be used: {why}; `{command}` records \
         the present one",
        manifest.display()
    )]
    Definition {
        /// The manifest.
        manifest: PathBuf,
        /// Name of the study, followed by its text's name if it has one.
        study: String,
        /// What is wrong with the definition.
        why: String,
        /// The command that updates the manifest to the present definition.
        command: String,
    },
    /// A matrix that cannot be read.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A path without anything that can be shown.
    #[error(
        "{} {problem}; give a folder of a fit (frontier.csv), a training run (steps.csv), \
         predictions or a study (rows.csv), dumped heads (layer-L-head-H.npy), or a file with a matrix",
        path.display()
    )]
    NothingToShow {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file that cannot be written.
    #[error("cannot write {}: {source}; no partial file is left", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
}

impl From<ViewError> for ReportError {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::Rows(error) => error.into(),
            ViewError::Table(error) => error.into(),
        }
    }
}
