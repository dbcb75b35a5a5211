//! The analysis of a study's rows (tables, figures and verdicts), and its output as files.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::error::ReportError;
use crate::claims::{Group, Verdict};
use crate::figure::Figure;
use crate::system::{FileError, write_whole};
use crate::table::Table;

/// The analysis of a study's rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysis {
    /// Section of the report that the study belongs to.
    pub group: Group,
    /// The tables, the most important first.
    pub tables: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The verdicts on the claims that the study measures.
    pub verdicts: Vec<Verdict>,
    /// What is unknown about the rows, one line each.
    pub not_known: Vec<String>,
}

/// Writes a file, unless it already exists with the same contents.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    Ok(write_whole(path, bytes).map_err(|source| FileError::write(path, source))?)
}

/// Writes every figure as `NAME.svg` and `NAME.png` into `folder`; returns the paths.
///
/// # Errors
/// A figure cannot be drawn, or a file cannot be written.
pub fn save_figures(figures: &[Figure], folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let mut paths = Vec::new();
    let draw = |figure: &Figure| Ok((figure.svg()?, figure.png()?));
    let drawn: Result<Vec<_>, ReportError> = figures.par_iter().map(draw).collect();
    for (figure, (svg, png)) in figures.iter().zip(drawn?) {
        for (ending, bytes) in [("svg", svg.as_bytes()), ("png", &png)] {
            let path = folder.join(format!("{}.{ending}", figure.name));
            write(&path, bytes)?;
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Writes every table as `NAME.csv`, `.parquet`, `.md` and `.tex` into `folder`; returns the paths.
///
/// # Errors
/// A file cannot be written.
pub fn save_tables(tables: &[Table], folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let mut paths = Vec::new();
    for table in tables {
        for (ending, bytes) in [
            ("csv", table.to_csv().into_bytes()),
            ("parquet", table.to_parquet()?),
            ("md", table.to_markdown().into_bytes()),
            ("tex", table.to_latex().into_bytes()),
        ] {
            let path = folder.join(format!("{}.{ending}", table.name));
            write(&path, &bytes)?;
            paths.push(path);
        }
    }
    Ok(paths)
}
