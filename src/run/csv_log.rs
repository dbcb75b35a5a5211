//! A CSV file that grows by a row a step, and can be gone on with after a crash.

use std::fs::File;
use std::io::{self, BufRead as _};
use std::path::Path;

use super::log_end::cut_after;
use crate::study::StudyError;
use crate::study::schema::Columns;

/// Rows whose first field is the step that they belong to, in the order of the steps; each is handed
/// to the system as it is written.
pub(crate) struct CsvLog {
    writer: csv::Writer<File>,
}

impl CsvLog {
    /// Starts a file with its header; one that is there is replaced.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn create(path: &Path, columns: &Columns) -> Result<Self, StudyError> {
        let start = || -> io::Result<Self> {
            let mut writer = csv::Writer::from_writer(File::create(path)?);
            writer.write_record(columns.iter().map(|(name, _)| name))?;
            writer.flush()?;
            Ok(Self { writer })
        };
        start().map_err(|e| StudyError::write(path, e))
    }

    /// Goes on with a file after step `last`: later rows, and a row that is cut off, are taken away.
    /// `kept` is told of the fields of each row that stays.
    ///
    /// # Errors
    /// A file that is missing, cannot be written, or has other columns.
    pub fn go_on(
        path: &Path,
        columns: &Columns,
        last: usize,
        mut kept: impl FnMut(&[&str]),
    ) -> Result<Self, StudyError> {
        let wrong = |why: &str| StudyError::Rows { path: path.to_owned(), why: why.to_owned() };
        let header: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let (mut line, mut is_header) = (String::new(), true);
        let (file, _) = cut_after(path, |lines| {
            line.clear();
            lines.read_line(&mut line).map_err(|e| StudyError::read(path, e))?;
            let Some(row) = line.strip_suffix('\n') else {
                return if is_header { Err(wrong("has no header")) } else { Ok(None) };
            };
            let fields: Vec<&str> = row.split(',').collect();
            if is_header {
                if fields != header {
                    return Err(wrong("has other columns than this version writes"));
                }
                is_header = false;
            } else {
                let step: usize =
                    fields[0].parse().map_err(|_| wrong(&format!("{row:?} has no step")))?;
                if step > last {
                    return Ok(None);
                }
                kept(&fields);
            }
            Ok(Some(line.len() as u64))
        })?;
        let writer = csv::WriterBuilder::new().has_headers(false).from_writer(file);
        Ok(Self { writer })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn push(&mut self, fields: &[String]) -> io::Result<()> {
        self.writer.write_record(fields)?;
        self.writer.flush()
    }

    /// Returns once the rows are on the disk itself.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn sync(&mut self) -> io::Result<()> {
        self.writer.get_ref().sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::schema::ColumnKind;

    const COLUMNS: &Columns = &[("step", ColumnKind::Integer), ("loss", ColumnKind::Number)];

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
                CsvLog::go_on(&path, COLUMNS, last, |row| kept.push(row[0].to_owned())).unwrap();
            log.push(&["9".to_owned(), "1".to_owned()]).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{left}9,1\n"));
            assert_eq!(kept.len(), left.lines().count() - 1);
        }
        for (found, part) in [("", "no header"), ("step,nats\n", "other columns")] {
            std::fs::write(&path, found).unwrap();
            let Err(error) = CsvLog::go_on(&path, COLUMNS, 3, |_| {}) else {
                panic!("{found:?} was gone on with")
            };
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
