//! The content of a page of `show`.

use std::path::{Path, PathBuf};

use super::head_grid::HeadGrid;
use crate::figure::Figure;
use crate::report::analysis::{save_figures, save_tables};
use crate::report::error::ReportError;
use crate::table::Table;

/// The analysis of one folder, or of several runs together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// The title.
    pub title: String,
    /// The results, in sentences.
    pub conclusion: Vec<String>,
    /// Contents missing from the figures, and why.
    pub notes: Vec<String>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Grids of heads, one per model.
    pub grids: Vec<HeadGrid>,
    /// The tables.
    pub tables: Vec<Table>,
}

impl Shown {
    /// Writes the figures as SVG and PNG into `folder`; returns the paths.
    ///
    /// # Errors
    /// A figure cannot be drawn, or a file cannot be written.
    pub fn save_figures(&self, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        save_figures(&self.figures, folder)
    }

    /// Writes the tables as CSV, Parquet, Markdown and LaTeX into `folder`; returns the paths.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn save_tables(&self, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        save_tables(&self.tables, folder)
    }
}
