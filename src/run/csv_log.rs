//! A CSV file that grows with every step, and that can be continued after a crash.

use std::io::{self, BufRead as _, BufReader, Read, Seek as _, SeekFrom};
use std::marker::PhantomData;
use std::path::Path;

use super::error::RunError;
use crate::record::{Header, Line, Record, columns_of};
use crate::system::FileError;
use crate::system::disk::File;

/// Rows whose first field is their step, in the order of the steps.
pub(crate) struct CsvLog<P> {
    writer: csv::Writer<File>,
    rows: PhantomData<P>,
}

impl<P: Record> CsvLog<P> {
    /// Continues the file of a run at step `at`, or creates it with a header; an existing one is then replaced. Removes later
    /// rows, and a last row that is cut off or was never written. Calls `kept` for each row that stays.
    ///
    /// # Errors
    /// The file is missing, cannot be written, or has other columns.
    pub fn open(path: &Path, at: Option<usize>, kept: impl FnMut(P)) -> Result<Self, RunError> {
        let Some(last) = at else { return Ok(Self::create(path)?) };
        let mut file = File::open(path).map_err(|e| FileError::read(path, e))?;
        let end = read_rows(path, &file, last, kept)?;
        let cut = file.set_length(end).and_then(|()| file.seek(SeekFrom::Start(end)));
        cut.map_err(|e| FileError::write(path, e))?;
        let writer = csv::WriterBuilder::new().has_headers(false).from_writer(file);
        Ok(Self { writer, rows: PhantomData })
    }

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

    /// Appends a row.
    ///
    /// # Errors
    /// I/O errors.
    pub fn push(&mut self, row: &P) -> io::Result<()> {
        Ok(self.writer.write_record(Line::from(row).record())?)
    }

    /// Passes the rows to the operating system, so that others can read them.
    ///
    /// # Errors
    /// I/O errors.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Returns once the rows are on the disk itself.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.writer.get_ref().sync()
    }
}

/// Calls `kept` for each row of the log at `path`, read from `file`, up to step `last`, to a row that is cut off or was never
/// written. Returns the number of bytes up to there.
///
/// # Errors
/// The log cannot be read, or has other columns.
pub(crate) fn read_rows<P: Record>(
    path: &Path,
    file: impl Read,
    last: usize,
    mut kept: impl FnMut(P),
) -> Result<u64, RunError> {
    let wrong = |why: &str| RunError::log(path, why);
    let names: csv::StringRecord = columns_of::<P>().iter().map(|column| column.name).collect();
    let header = Header::read(&names).map_err(|why| wrong(&why))?;
    let (mut lines, mut line, mut end) = (BufReader::new(file), String::new(), 0);
    loop {
        line.clear();
        lines.read_line(&mut line).map_err(|e| FileError::read(path, e))?;
        let is_header = end == 0;
        // A power failure may leave zeros where a row was never written.
        let Some(row) = line.strip_suffix('\n').filter(|row| !row.contains('\0')) else {
            return if is_header { Err(wrong("has no header")) } else { Ok(end) };
        };
        let fields: csv::StringRecord = row.split(',').collect();
        if is_header {
            if fields != names {
                return Err(wrong("has other columns than this version writes"));
            }
        } else {
            let step: usize =
                fields[0].parse().map_err(|_| wrong(&format!("{row:?} has no step")))?;
            if step > last {
                return Ok(end);
            }
            if fields.len() != names.len() {
                let (found, all) = (fields.len(), names.len());
                return Err(wrong(&format!("{row:?} has {found} of {all} fields")));
            }
            kept(P::read("", &header.fields(&fields)).map_err(|why| wrong(&why))?);
        }
        end += line.len() as u64;
    }
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
            let mut log =
                CsvLog::<Logged>::open(&path, Some(last), |row| kept.push(row.step)).unwrap();
            log.push(&Logged { step: 9, loss: 1.0 }).unwrap();
            log.flush().unwrap();
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
            let Err(error) = CsvLog::<Logged>::open(&path, Some(3), |_| {}) else {
                panic!("{found:?} was gone on with")
            };
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
