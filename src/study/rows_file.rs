//! Files of rows as text: `rows.csv`, and `rows-set-aside.csv` with superseded rows, which no table uses.

use std::path::Path;

use super::StudyError;
use crate::record::{Column, Header, Line, to_csv};
use crate::system::{FileError, sha256, write_whole};

/// Superseded rows in the study's folder.
pub(super) const SET_ASIDE: &str = "rows-set-aside.csv";
/// Columns that every file of rows has.
const NEEDED: [&str; 4] = ["study", "cell", "settings", "err"];

/// The contents of a file of rows.
#[derive(Default)]
pub(super) struct RowsFile {
    /// Rows, with the current columns; a row that is older than a column has no value in it.
    pub lines: Vec<Line>,
    /// Lines that are not rows, unchanged: cut off, or with another number of fields than the header.
    pub damaged: Vec<String>,
    /// SHA-256 of the file; `None` if it is missing.
    pub sha256: Option<String>,
}

impl RowsFile {
    /// Reads a file; empty if it is missing.
    ///
    /// # Errors
    /// The file cannot be read, or has the header of another kind of rows.
    pub fn read(path: &Path, columns: &[Column]) -> Result<Self, StudyError> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let bytes = std::fs::read(path).map_err(|e| FileError::read(path, e))?;
        // A line may be cut off in the middle of a character.
        let (lines, damaged) = parse(&String::from_utf8_lossy(&bytes), columns)
            .map_err(|why| StudyError::Rows { path: path.to_owned(), why })?;
        Ok(Self { lines, damaged, sha256: Some(sha256(&bytes)) })
    }

    /// Appends rows and damaged lines to the superseded ones in `folder`.
    ///
    /// # Errors
    /// The existing file does not have such rows, or the file cannot be written.
    pub fn set_aside(
        folder: &Path,
        columns: &[Column],
        lines: &[Line],
        damaged: &[String],
    ) -> Result<(), StudyError> {
        let path = folder.join(SET_ASIDE);
        let there = Self::read(&path, columns)?;
        let written = to_csv(columns, there.lines.iter().chain(lines)).and_then(|mut bytes| {
            for line in there.damaged.iter().chain(damaged) {
                bytes.extend_from_slice(line.as_bytes());
                bytes.push(b'\n');
            }
            write_whole(&path, &bytes)
        });
        Ok(written.map_err(|e| FileError::write(&path, e))?)
    }
}

/// Returns the rows and the damaged lines of a file of rows. Its columns may be in any order, and those that were added
/// later may be missing.
///
/// # Errors
/// A message in words if a column is unknown or occurs twice, or a needed one is missing.
fn parse(text: &str, columns: &[Column]) -> Result<(Vec<Line>, Vec<String>), String> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let records: Vec<csv::StringRecord> =
        reader.records().collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let (mut lines, mut damaged) = (Vec::new(), Vec::new());
    let Some(first) = records.first() else { return Ok((lines, damaged)) };
    let header = Header::read(first)?;
    let known = |name: &str| columns.iter().any(|column| column.name == name);
    let is_there = |name: &&str| first.iter().any(|other| other == *name);
    if !(first.iter().all(known) && NEEDED.iter().all(is_there)) {
        let names: Vec<&str> = columns.iter().take(4).map(|column| column.name).collect();
        return Err(format!(
            "its header is not that of this kind of study (expected {}, …)",
            names.join(", ")
        ));
    }
    let start = |at: usize| records.get(at).and_then(csv::StringRecord::position);
    let byte = |at: usize| start(at).map_or(text.len(), |position| position.byte() as usize);
    for (at, record) in records.iter().enumerate().skip(1) {
        // A line without a line end was cut off, even if it has the right number of fields.
        let has_ended = at + 1 < records.len() || text.ends_with('\n');
        match has_ended && record.len() == header.count() {
            true => lines.push(Line::from_record(&header, record, columns)),
            false => damaged.push(text[byte(at)..byte(at + 1)].trim_end().to_owned()),
        }
    }
    Ok((lines, damaged))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let column = |name| Column { name, ..Column::default() };
        ["study", "cell", "c", "settings", "err"].map(column).to_vec()
    }

    #[test]
    fn old_rows_get_the_new_columns_and_damaged_lines_stay() {
        let (lines, damaged) =
            parse("study,cell,settings,err\ns,\"a,1\",12,bad\ns,b\ns,c,13,", &columns()).unwrap();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].fields().eq(["s", "a,1", "", "12", "bad"]));
        assert_eq!(damaged, ["s,b", "s,c,13,"]);
    }

    #[test]
    fn another_files_header_is_refused() {
        for (text, part) in [
            ("study,cell,c,settings", "expected study, cell, c, settings"),
            ("study,cell,c,settings,err,window", "expected study, cell, c, settings"),
            ("study,cell,cell,settings,err", "names cell twice"),
            ("a,b", "expected study, cell, c, settings"),
        ] {
            let error = parse(text, &columns()).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
