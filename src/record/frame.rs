//! Rows as polars data frames, and Parquet files of them.

use std::io;
use std::path::Path;

use polars::prelude::{
    Column as FrameColumn, DataFrame, IntoColumn, NamedFrom, ParquetWriter, PolarsResult, Series,
};

use super::column::{Column, ColumnKind};
use super::line::Line;
use crate::system::{FileError, write_whole_with};

/// Rows per row group: a few megabytes of text, so that large files are never in memory twice.
const GROUP: usize = 1 << 15;

/// Writes rows as a Parquet file, atomically and in groups.
///
/// # Errors
/// A row cannot be read, or the file cannot be written.
pub fn write_parquet<L: AsRef<Line>>(
    path: &Path,
    columns: &[Column],
    mut rows: impl Iterator<Item = io::Result<L>>,
) -> Result<(), FileError> {
    let written = write_whole_with(path, |file| {
        let empty = to_frame(columns, &[] as &[Line]).map_err(io::Error::other)?;
        let mut writer =
            ParquetWriter::new(file).batched(empty.schema()).map_err(io::Error::other)?;
        loop {
            let group = rows.by_ref().take(GROUP).collect::<io::Result<Vec<L>>>()?;
            if group.is_empty() {
                return writer.finish().map(drop).map_err(io::Error::other);
            }
            let group = to_frame(columns, &group).map_err(io::Error::other)?;
            writer.write_batch(&group).map_err(io::Error::other)?;
        }
    });
    written.map_err(|e| FileError::write(path, e))
}

/// Converts lines to a data frame of typed columns; an empty field is a null.
///
/// # Errors
/// Two columns of the same name.
pub fn to_frame<L: AsRef<Line>>(columns: &[Column], lines: &[L]) -> PolarsResult<DataFrame> {
    let column = |(at, column): (usize, &Column)| {
        let fields = lines.iter().map(|line| line.as_ref().at(at));
        typed(column, fields)
    };
    DataFrame::new(lines.len(), columns.iter().enumerate().map(column).collect())
}

fn typed<'f>(column: &Column, fields: impl Iterator<Item = &'f str>) -> FrameColumn {
    let name = column.name.into();
    match column.kind {
        ColumnKind::Text => {
            let values: Vec<Option<&str>> = fields.map(|f| (!f.is_empty()).then_some(f)).collect();
            Series::new(name, values)
        }
        ColumnKind::Integer => {
            let values: Vec<Option<i64>> = fields.map(|f| f.parse().ok()).collect();
            Series::new(name, values)
        }
        ColumnKind::Number => {
            let values: Vec<Option<f64>> = fields.map(|f| f.parse().ok()).collect();
            Series::new(name, values)
        }
    }
    .into_column()
}
