//! Files written aside and renamed, so that none is ever torn.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::analyse::{Analysis, ReportError};

/// Writes `bytes` to `path`: to a temporary file beside it first, then renamed over it.
///
/// # Errors
/// [`ReportError::Write`] with the path; what stood there before still stands.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    let fault = |source| ReportError::Write { path: path.to_owned(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fault)?;
    let mut file =
        tempfile::Builder::new().permissions(permissions()).tempfile_in(folder).map_err(fault)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(fault)?;
    file.persist(path).map_err(|error| fault(error.error))?;
    Ok(())
}

/// A finished file is for everyone to read; the default of a temporary one is its owner alone.
fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::Permissions::from_mode(0o644)
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
                write_whole(&path, bytes)?;
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
                write_whole(&path, text.as_bytes())?;
                paths.push(path);
            }
        }
        Ok(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures/a.svg");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing beside");
        let error = write_whole(&path.join("under-a-file"), b"three").unwrap_err().to_string();
        assert!(error.contains("a.svg"), "{error}");
    }
}
