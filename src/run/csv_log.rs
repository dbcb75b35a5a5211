//! A CSV file that grows by one row per step, and that can be continued after a crash.

use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::marker::PhantomData;
use std::path::Path;

use super::error::RunError;
use crate::record::{Header, Line, Record, columns_of};
use crate::system::FileError;
use crate::system::disk::File;

/// Rows whose first field is their step, in the order of the steps. Each row is passed to the operating system when it
/// is written.
pub(crate) struct CsvLog<P> {
    writer: csv::Writer<File>,
    rows: PhantomData<P>,
}

impl<P: Record> CsvLog<P> {
    /// Creates a file with a header; an existing file is replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let start = || -> io::Result<Self> {
            let mut writer = csv::Writer::from_writer(File::create(path)?);
            writer.write_record(columns_of::<P>().iter().map(|column| column.name))?;
            writer.flush()?;
            Ok(Self { writer, rows: PhantomData })
        };
        start().map_err(|e| FileError::write(path, e))
    }

    /// Continues a file after step `last`. Removes later rows, and a last row that is cut off or was never written.
    /// Calls `kept` for each row that stays.
    ///
    /// # Errors
    /// The file is missing, cannot be written, or has other columns.
    pub fn go_on(path: &Path, last: usize, mut kept: impl FnMut(P)) -> Result<Self, RunError> {
        let wrong = |why: &str| RunError::Log { path: path.to_owned(), why: why.to_owned() };
        let names: csv::StringRecord = columns_of::<P>().iter().map(|column| column.name).collect();
        let header = Header::read(&names).map_err(|why| wrong(&why))?;
        let (mut line, mut is_header) = (String::new(), true);
        let (file, _) = cut_after(path, |lines| {
            line.clear();
            lines.read_line(&mut line).map_err(|e| FileError::read(path, e))?;
            // A power failure may leave zeros where a row was never written.
            let Some(row) = line.strip_suffix('\n').filter(|row| !row.contains('\0')) else {
                return if is_header { Err(wrong("has no header")) } else { Ok(None) };
            };
            let fields: csv::StringRecord = row.split(',').collect();
            if is_header {
                if fields != names {
                    return Err(wrong("has other columns than this version writes"));
                }
                is_header = false;
            } else {
                let step: usize =
                    fields[0].parse().map_err(|_| wrong(&format!("{row:?} has no step")))?;
                if step > last {
                    return Ok(None);
                }
                if fields.len() != names.len() {
                    let (found, all) = (fields.len(), names.len());
                    return Err(wrong(&format!("{row:?} has {found} of {all} fields")));
                }
                kept(P::read("", &header.fields(&fields)).map_err(|why| wrong(&why))?);
            }
            Ok(Some(line.len() as u64))
        })?;
        let writer = csv::WriterBuilder::new().has_headers(false).from_writer(file);
        Ok(Self { writer, rows: PhantomData })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// I/O errors.
    pub fn push(&mut self, row: &P) -> io::Result<()> {
        self.writer.write_record(Line::from(row).record())?;
        self.writer.flush()
    }

    /// Returns once the rows are on the disk itself.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync(&mut self) -> io::Result<()> {
        self.writer.get_ref().sync()
    }
}

/// Opens a log and truncates it after the last record to keep. `next` reads one record and returns its length in bytes,
/// or `None` if it and all later records are removed. Returns the log, positioned at its end, and its length.
///
/// # Errors
/// The file is missing or cannot be written; errors of `next`, which leave the file unchanged.
pub(crate) fn cut_after<E: From<FileError>>(
    path: &Path,
    mut next: impl FnMut(&mut BufReader<&File>) -> Result<Option<u64>, E>,
) -> Result<(File, u64), E> {
    let mut file = File::open(path).map_err(|e| FileError::read(path, e))?;
    let mut records = BufReader::new(&file);
    let mut end = 0;
    while let Some(length) = next(&mut records)? {
        end += length;
    }
    drop(records);
    let cut = file.set_length(end).and_then(|()| file.seek(SeekFrom::Start(end)));
    cut.map_err(|e| FileError::write(path, e))?;
    Ok((file, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::record;

    record! {
        /// A row of a log.
        pub struct Logged {
            /// the step
            step: usize,
            /// its loss
            loss: f64,
        }
    }

    #[test]
    fn later_rows_and_torn_ones_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steps.csv");
        let whole = "step,loss\n1,4.5\n2,4.25\n3,4.125\n";
        for (found, last, left) in [
            (whole, 3, whole),
            (whole, 2, "step,loss\n1,4.5\n2,4.25\n"),
            (&whole[..whole.len() - 4], 3, "step,loss\n1,4.5\n2,4.25\n"),
            ("step,loss\n", 0, "step,loss\n"),
        ] {
            std::fs::write(&path, found).unwrap();
            let mut kept = Vec::new();
            let mut log = CsvLog::<Logged>::go_on(&path, last, |row| kept.push(row.step)).unwrap();
            log.push(&Logged { step: 9, loss: 1.0 }).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{left}9,1\n"));
            assert_eq!(kept.len(), left.lines().count() - 1);
        }
        for (found, part) in [
            ("", "no header"),
            ("step,nats\n", "other columns"),
            ("step,loss\n1\n2,4.25\n", "\"1\" has 1 of 2 fields"),
            ("step,loss\n1,4.5,7\n", "\"1,4.5,7\" has 3 of 2 fields"),
        ] {
            std::fs::write(&path, found).unwrap();
            let Err(error) = CsvLog::<Logged>::go_on(&path, 3, |_| {}) else {
                panic!("{found:?} was gone on with")
            };
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
