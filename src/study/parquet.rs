//! `rows.parquet`: the rows of `rows.csv` with typed columns.

use std::fs::File;
use std::path::Path;

use polars::prelude::{DataFrame, ParquetWriter, PolarsError};

use super::StudyError;
use crate::record::{Column, Line, to_frame};
use crate::system::{FileError, write_whole_with};
use crate::targets::read_frame;

/// Name of the file in the study's folder.
const PARQUET: &str = "rows.parquet";
/// Rows per group: a few megabytes of text, so that large files are never in memory twice.
const GROUP: usize = 1 << 15;

/// Writes the rows in groups.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write<L: AsRef<Line>>(
    folder: &Path,
    columns: &[Column],
    mut rows: impl Iterator<Item = L>,
) -> Result<(), StudyError> {
    let path = folder.join(PARQUET);
    let written = write_whole_with(&path, |file| {
        let write = || {
            let none = to_frame(columns, &[] as &[Line])?;
            let mut writer = ParquetWriter::new(file).batched(none.schema())?;
            loop {
                let group: Vec<L> = rows.by_ref().take(GROUP).collect();
                if group.is_empty() {
                    return writer.finish();
                }
                writer.write_batch(&to_frame(columns, &group)?)?;
            }
        };
        write().map(drop).map_err(|e: PolarsError| std::io::Error::other(e.to_string()))
    });
    Ok(written.map_err(|e| FileError::write(&path, e))?)
}

/// Compares the file with `rows`, and returns a message if they differ. A column that was added later may be missing in
/// the file if it is empty in all rows.
pub(super) fn wrong_with(
    folder: &Path,
    columns: &[Column],
    rows: &[&Line],
) -> Option<&'static str> {
    let path = folder.join(PARQUET);
    if File::open(&path).is_err() {
        return Some("is missing or cannot be read");
    }
    let Ok(there) = read_frame(&path) else {
        return Some("is not a Parquet file");
    };
    let names = there.get_column_names();
    let same = to_frame(columns, rows).and_then(|here| {
        let height = here.height();
        let is_there = |name: &str| names.iter().any(|other| other.as_str() == name);
        let told = here.columns().iter().filter(|c| is_there(c.name()) || c.null_count() < height);
        let here = DataFrame::new(height, told.cloned().collect())?;
        let there = there.select(here.get_column_names_owned())?;
        Ok(names.len() == here.width() && there.equals_missing(&here))
    });
    (!same.unwrap_or(false)).then_some("differs from rows.csv")
}
