//! Superseded rows: kept in a file of their own, and not used in tables.

use std::path::Path;

use super::StudyError;
use super::header;
use crate::record::{Column, to_csv};
use crate::system::{FileError, write_whole};

/// Name of the file in the study's folder.
pub(super) const SET_ASIDE: &str = "rows-set-aside.csv";

/// Appends lines, each with its line end, to the file in `folder`.
///
/// # Errors
/// The existing file does not have such rows, or the file cannot be written.
pub(super) fn set_aside(folder: &Path, columns: &[Column], lines: &[u8]) -> Result<(), StudyError> {
    let path = folder.join(SET_ASIDE);
    let mut bytes = if path.exists() {
        let before = std::fs::read(&path).map_err(|e| FileError::read(&path, e))?;
        header::brought_up_to_date(&String::from_utf8_lossy(&before), columns)
            .map_err(|why| StudyError::Rows { path: path.clone(), why })?
            .into_bytes()
    } else {
        to_csv(columns, std::iter::empty()).map_err(|e| FileError::write(&path, e))?
    };
    bytes.extend_from_slice(lines);
    Ok(write_whole(&path, &bytes).map_err(|e| FileError::write(&path, e))?)
}
