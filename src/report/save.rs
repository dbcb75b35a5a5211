//! An analysis's figures and tables as files.

use std::path::{Path, PathBuf};

use super::analyse::{Analysis, ReportError};
use crate::files::write_whole;

fn write(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    write_whole(path, bytes).map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

impl Analysis {
    /// Writes every figure as `NAME.svg` and `NAME.png` into `folder`; gives the paths.
    ///
    /// # Errors
    /// A figure that cannot be drawn, or a file that cannot be written.
    pub fn save_figures(&self, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let mut paths = Vec::new();
        for figure in &self.figures {
            let (svg, png) = (figure.svg()?, figure.png()?);
            for (ending, bytes) in [("svg", svg.as_bytes()), ("png", &png)] {
                let path = folder.join(format!("{}.{ending}", figure.name));
                write(&path, bytes)?;
                paths.push(path);
            }
        }
        Ok(paths)
    }

    /// Writes every table as `NAME.csv` and `NAME.md` into `folder`; gives the paths.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save_tables(&self, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        let mut paths = Vec::new();
        for table in &self.tables {
            for (ending, text) in [("csv", table.to_csv()), ("md", table.to_markdown())] {
                let path = folder.join(format!("{}.{ending}", table.name));
                write(&path, text.as_bytes())?;
                paths.push(path);
            }
        }
        Ok(paths)
    }
}
