//! Reads files of rows into the structs that wrote them, and checks each line.

use std::path::{Path, PathBuf};

use super::column::{Column, Fields, Header};
use super::kind::{Measurement, Row, columns};
use super::row_record::{Record, columns_of};

/// Why a file of rows could not be read: the file, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RowsError {
    /// The file.
    pub path: PathBuf,
    message: String,
}

/// The rows of one or more studies of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<M: Measurement> {
    /// The file of the first study.
    pub path: PathBuf,
    /// The rows of cells that did not fail, in the order of the files.
    pub rows: Vec<Row<M>>,
    /// The number of rows of cells that failed.
    pub failed: usize,
}

impl<M: Measurement> Rows<M> {
    /// Reads `rows.csv` of each study in the folders `studies`, one after the other.
    ///
    /// # Errors
    /// A missing file, a missing column, a line that is cut off or a value that its column does not allow. Each error
    /// names the file and the line, and says what to do.
    pub fn read(studies: &[PathBuf]) -> Result<Self, RowsError> {
        let path = studies.first().map_or_else(PathBuf::new, |study| study.join(ROWS));
        let mut all = Self { path, rows: Vec::new(), failed: 0 };
        for study in studies {
            let name = study.file_name();
            let name = name.map_or_else(|| "STUDY".into(), |name| name.to_string_lossy());
            let again = format!("measure the study {name} again; whole rows are kept");
            let without = format!("delete the line and {again}");
            let read = |from: &Fields<'_>| match from.get("err").is_empty() {
                true => Row::read(from).map(Some),
                false => Ok(None),
            };
            for row in each_line(&study.join(ROWS), &columns::<M>(), [&again, &without], read)? {
                match row {
                    Some(row) => all.rows.push(row),
                    None => all.failed += 1,
                }
            }
        }
        Ok(all)
    }
}

/// The name of the file that holds a study's rows.
const ROWS: &str = "rows.csv";

/// Reads a CSV file of records that are not rows of a study, such as the curve of a training run. `advice` becomes part
/// of the error and says what to do.
///
/// # Errors
/// As [`Rows::read`].
pub fn read_records<R: Record>(path: &Path, advice: &str) -> Result<Vec<R>, RowsError> {
    each_line(path, &columns_of::<R>(), [advice; 2], |from| R::read("", from))
}

/// Reads each line of a file. Errors end with the first advice if the file is missing, cut off or of another format, and
/// with the second if one value of a complete line is wrong: a sweep would not measure such a row again.
fn each_line<R>(
    path: &Path,
    columns: &[Column],
    [advice, of_value]: [&str; 2],
    read: impl Fn(&Fields<'_>) -> Result<R, String>,
) -> Result<Vec<R>, RowsError> {
    let shown = path.display();
    let wrong = |message: String| RowsError { path: path.to_owned(), message };
    let bytes = std::fs::read(path)
        .map_err(|error| wrong(format!("cannot read {shown}: {error}; {advice}")))?;
    let bad = |line: u64, why: String, advice: &str| {
        wrong(format!("{shown}, line {line}: {why}; {advice}"))
    };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes.as_slice());
    let names = reader.headers().map_err(|error| bad(1, error.to_string(), advice))?.clone();
    let header = Header::read(&names).map_err(|why| bad(1, why, advice))?;
    let is_there = |column: &&Column| names.iter().any(|name| name == column.name);
    if let Some(column) = columns.iter().filter(|column| column.needed).find(|c| !is_there(c)) {
        let found = names.iter().collect::<Vec<_>>().join(", ");
        return Err(wrong(format!(
            "{shown}: no column {:?} (found: {found}); {advice}",
            column.name
        )));
    }
    let (mut last, mut found) = (1, Vec::new());
    let mend = format!("correct it, or {of_value}");
    for record in reader.records() {
        let record = record.map_err(|error| {
            bad(error.position().map_or(last + 1, csv::Position::line), error.to_string(), advice)
        })?;
        last = record.position().map_or(last + 1, csv::Position::line);
        if record.len() != names.len() {
            let why = format!("{} fields, but the header has {}", record.len(), names.len());
            return Err(bad(last, why, advice));
        }
        found.push(read(&header.fields(&record)).map_err(|why| bad(last, why, &mend))?);
    }
    if !bytes.ends_with(b"\n") {
        let why = "the last line is cut off: it has no line ending".to_owned();
        return Err(bad(last, why, advice));
    }
    Ok(found)
}
