//! A file of rows as text: finds the lines of each cell, so that files can be merged without changing a digit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use super::{StudyError, header};
use crate::record::{Column, Line, STOPPED};
use crate::system::{FileError, sha256};

/// A file of rows in memory.
pub(super) struct RowsFile {
    pub path: PathBuf,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// Contents of the file, with the current columns.
    text: String,
    /// Cells in the order of the file.
    pub cells: Vec<CellRows>,
    /// Lines that are not valid rows.
    damaged: Vec<Range<usize>>,
}

/// The rows of a cell.
pub(super) struct CellRows {
    pub key: Box<str>,
    pub ending: Ending,
    lines: Vec<Range<usize>>,
}

/// Result of a cell, from the worst to the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// The cell failed with an error.
    Failed,
    /// The training run was stopped before its end, and can be resumed.
    Stopped,
    /// The cell is done.
    Whole,
}

impl RowsFile {
    /// Reads a file. A line that is cut off or has another number of fields is not a row: see [`RowsFile::damaged`].
    ///
    /// # Errors
    /// The file cannot be read, or has the header of another kind of rows.
    pub fn read(path: PathBuf, columns: &[Column]) -> Result<Self, StudyError> {
        let bytes = std::fs::read(&path).map_err(|e| FileError::read(&path, e))?;
        let sha256 = sha256(&bytes);
        let wrong = |why: String| StudyError::Rows { path: path.clone(), why };
        let text =
            header::brought_up_to_date(&String::from_utf8_lossy(&bytes), columns).map_err(wrong)?;
        drop(bytes);
        let mut file =
            Self { path: path.clone(), sha256, text, cells: Vec::new(), damaged: Vec::new() };
        file.find_cells(columns).map_err(|e| wrong(e.to_string()))?;
        Ok(file)
    }

    fn find_cells(&mut self, columns: &[Column]) -> Result<(), csv::Error> {
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let [cell, outcome, err] = ["cell", "outcome", "err"].map(place);
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(self.text.as_bytes());
        let mut record = csv::ByteRecord::new();
        reader.byte_headers()?;
        let mut places: HashMap<Box<str>, usize> = HashMap::new();
        loop {
            let start = reader.position().byte() as usize;
            if !reader.read_byte_record(&mut record)? {
                return Ok(());
            }
            let line = start..reader.position().byte() as usize;
            if record.len() != columns.len() || !self.text[..line.end].ends_with('\n') {
                self.damaged.push(line);
                continue;
            }
            let field =
                |place: Option<usize>| place.and_then(|at| record.get(at)).unwrap_or_default();
            let ending = match (field(err), field(outcome)) {
                (b"", outcome) if outcome == STOPPED.as_bytes() => Ending::Stopped,
                (b"", _) => Ending::Whole,
                _ => Ending::Failed,
            };
            let key = String::from_utf8_lossy(field(cell));
            // The lines of a cell are consecutive, unless the file was edited by hand.
            let at = match self.cells.last() {
                Some(last) if *last.key == key => self.cells.len() - 1,
                _ => match places.entry(key.into()) {
                    Entry::Occupied(at) => *at.get(),
                    Entry::Vacant(at) => {
                        let key = at.key().clone();
                        self.cells.push(CellRows { key, ending, lines: Vec::with_capacity(1) });
                        *at.insert(self.cells.len() - 1)
                    }
                },
            };
            let cell = &mut self.cells[at];
            cell.ending = cell.ending.min(ending);
            cell.lines.push(line);
        }
    }

    /// Lines of a cell, each with its line end.
    pub fn lines<'f>(&'f self, of: &'f CellRows) -> impl Iterator<Item = &'f str> {
        of.lines.iter().map(|line| &self.text[line.clone()])
    }

    /// Rows of a cell.
    pub fn rows<'f>(
        &'f self,
        of: &'f CellRows,
        columns: &'f [Column],
    ) -> impl Iterator<Item = Line> {
        self.lines(of).filter_map(|line| header::row_of(line, columns))
    }

    /// Lines that are not valid rows, unchanged except that each has a line end.
    pub fn damaged(&self) -> String {
        self.damaged.iter().flat_map(|line| [self.text[line.clone()].trim_end(), "\n"]).collect()
    }
}

/// Parses lines that are known to be valid rows.
pub(super) fn rows_of_lines<'l>(
    lines: impl Iterator<Item = &'l str>,
) -> impl Iterator<Item = Line> {
    let reader =
        csv::ReaderBuilder::new().has_headers(false).from_reader(Pieces { lines, rest: b"" });
    reader.into_records().map(|record| Line::from(record.expect("each line was read before")))
}

/// Reader over lines, as if they were one file.
struct Pieces<'l, I> {
    lines: I,
    rest: &'l [u8],
}

impl<'l, I: Iterator<Item = &'l str>> Read for Pieces<'l, I> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.rest.is_empty() {
            match self.lines.next() {
                Some(line) => self.rest = line.as_bytes(),
                None => return Ok(0),
            }
        }
        self.rest.read(buffer)
    }
}

impl CellRows {
    /// Number of rows.
    pub fn count(&self) -> usize {
        self.lines.len()
    }
}
