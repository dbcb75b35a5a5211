//! Rows as text: single lines and whole CSV files.

use std::path::Path;

use super::column::{Column, ColumnKind, Header};
use super::row_record::{Record, columns_of};
use crate::system::{FileError, write_whole};

/// One row as text, one field per column. All fields share one allocation, because a study may have a million rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(csv::StringRecord);

impl Line {
    /// The text of the column `name`; empty if there is no such column.
    pub fn get(&self, columns: &[Column], name: &str) -> &str {
        let place = columns.iter().position(|column| column.name == name);
        place.map_or("", |place| self.at(place))
    }

    /// The text of the column at index `place`; empty if there are fewer columns.
    pub fn at(&self, place: usize) -> &str {
        self.0.get(place).unwrap_or_default()
    }

    /// The text of each column.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter()
    }

    /// The line as a CSV record.
    pub(crate) fn record(&self) -> &csv::StringRecord {
        &self.0
    }

    /// The non-empty fields as a JSON object.
    pub fn to_json(&self, columns: &[Column]) -> serde_json::Value {
        let number = |text: &str| match text.parse::<i64>() {
            Ok(whole) => Some(whole.into()),
            Err(_) => text.parse::<f64>().ok().and_then(serde_json::Number::from_f64),
        };
        let value = |kind, text: &str| match kind {
            ColumnKind::Text => text.into(),
            ColumnKind::Integer | ColumnKind::Number => {
                number(text).map_or(text.into(), serde_json::Value::Number)
            }
        };
        let there = columns.iter().zip(self.fields()).filter(|(_, text)| !text.is_empty());
        there.map(|(column, text)| (column.name.to_owned(), value(column.kind, text))).collect()
    }

    /// The line of `record` with its fields in the order of `columns`. `header` is that of the file of `record`.
    pub fn from_record(header: &Header, record: &csv::StringRecord, columns: &[Column]) -> Self {
        let fields = header.fields(record);
        columns.iter().map(|column| fields.get(column.name)).collect()
    }
}

/// The outcome of a cell that was stopped early: its row says how far it came, and the next sweep resumes it.
pub const STOPPED: &str = "stopped";

/// Accessors for a line of a study's rows, whose columns are those of [`columns`](super::columns).
impl Line {
    /// Whether the cell was stopped early.
    pub fn was_stopped(&self, columns: &[Column]) -> bool {
        self.get(columns, "outcome") == STOPPED
    }

    /// The cell's key.
    pub fn cell(&self) -> &str {
        self.at(1)
    }

    /// A hash of all settings that the measurement depends on.
    pub fn settings(&self) -> &str {
        self.at(self.0.len() - 2)
    }

    /// Wall time of the row, in s. Returns `None` if its kind has no such column.
    pub fn wall_time_s(&self, columns: &[Column]) -> Option<f64> {
        self.get(columns, "wall_time_s").parse().ok()
    }

    /// Why the cell failed; empty if it did not.
    pub fn err(&self) -> &str {
        self.at(self.0.len() - 1)
    }
}

impl From<csv::StringRecord> for Line {
    fn from(record: csv::StringRecord) -> Self {
        Self(record)
    }
}

impl AsRef<Self> for Line {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Writes a record as one line.
impl<R: Record> From<&R> for Line {
    fn from(record: &R) -> Self {
        let mut fields = Vec::new();
        record.write(&mut fields);
        fields.into_iter().collect()
    }
}

impl<F: AsRef<str>> FromIterator<F> for Line {
    fn from_iter<I: IntoIterator<Item = F>>(fields: I) -> Self {
        let mut record = csv::StringRecord::new();
        fields.into_iter().for_each(|field| record.push_field(field.as_ref()));
        Self(record)
    }
}

/// Writes lines as CSV with a header of the column names.
///
/// # Errors
/// Only those of the CSV writer; writing to memory itself does not fail.
pub fn to_csv<'r>(
    columns: &[Column],
    lines: impl IntoIterator<Item = &'r Line>,
) -> std::io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(|column| column.name))?;
    for line in lines {
        writer.write_record(&line.0)?;
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}

/// Writes a CSV file of records of one type, atomically.
///
/// # Errors
/// The file cannot be written.
pub fn write_records<R: Record>(path: &Path, records: &[R]) -> Result<(), FileError> {
    let lines: Vec<Line> = records.iter().map(Line::from).collect();
    to_csv(&columns_of::<R>(), &lines)
        .and_then(|bytes| write_whole(path, &bytes))
        .map_err(|e| FileError::write(path, e))
}
