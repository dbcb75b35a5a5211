//! Reading a file of rows into a data frame, checked line by line.

use std::path::{Path, PathBuf};

use polars::prelude::DataFrame;

use super::TableError;
use super::columns::words;
use super::schema::Schema;

/// The rows of one study or one log: typed columns, and the file that they came from.
#[derive(Clone, Debug)]
pub struct Rows {
    path: PathBuf,
    frame: DataFrame,
}

impl Rows {
    /// Reads `rows.csv` of each study of fits in the folders `studies`, one after the other.
    ///
    /// # Errors
    /// A missing file, a missing column, a torn line or a field that is no number, each with file,
    /// line and what to do.
    pub fn of_fits(studies: &[PathBuf]) -> Result<Self, TableError> {
        Self::together(studies, &Schema::fits())
    }

    /// Reads `rows.csv` of each study of trainings in the folders `studies`.
    ///
    /// # Errors
    /// As [`Rows::of_fits`].
    pub fn of_trainings(studies: &[PathBuf]) -> Result<Self, TableError> {
        Self::together(studies, &Schema::trainings())
    }

    /// Reads `rows.csv` of each study of singular values in the folders `studies`.
    ///
    /// # Errors
    /// As [`Rows::of_fits`].
    pub fn of_spectra(studies: &[PathBuf]) -> Result<Self, TableError> {
        Self::together(studies, &Schema::spectra())
    }

    /// Reads `rows.csv` of each study of inference in the folders `studies`.
    ///
    /// # Errors
    /// As [`Rows::of_fits`].
    pub fn of_latency(studies: &[PathBuf]) -> Result<Self, TableError> {
        Self::together(studies, &Schema::latency())
    }

    /// Reads `rows.csv` of each study of trained heads in the folders `studies`.
    ///
    /// # Errors
    /// As [`Rows::of_fits`].
    pub fn of_heads(studies: &[PathBuf]) -> Result<Self, TableError> {
        Self::together(studies, &Schema::heads())
    }

    /// The rows of several files of one kind as one frame.
    fn together(studies: &[PathBuf], schema: &Schema) -> Result<Self, TableError> {
        let path = studies.first().map_or_else(PathBuf::new, |study| study.join("rows.csv"));
        let mut all = DataFrame::empty();
        for study in studies {
            let Rows { path, frame } = read(&study.join("rows.csv"), schema, &advice_for(study))?;
            let frame = schema.completed(&frame).map_err(TableError::frame(&path))?;
            match all.width() {
                0 => all = frame,
                _ => all = all.vstack(&frame).map_err(TableError::frame(&path))?,
            }
        }
        Ok(Self { frame: all, path })
    }

    /// Reads the `curve.csv` of a training.
    pub(super) fn of_curve(run: &Path) -> Result<Self, TableError> {
        read(&run.join("curve.csv"), &Schema::curve(), &advice_for_log())
    }

    /// Reads the `eval.csv` of a training.
    pub(super) fn of_evaluations(run: &Path) -> Result<Self, TableError> {
        read(&run.join("eval.csv"), &Schema::evaluations(), &advice_for_log())
    }

    /// The file that the rows came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many rows are of cells that failed with an error.
    pub(super) fn failed(&self) -> Result<usize, TableError> {
        let errors = words(&self.frame, "err").map_err(TableError::frame(&self.path))?;
        Ok(errors.iter().flatten().count())
    }

    /// The columns, typed.
    pub(super) fn frame(&self) -> &DataFrame {
        &self.frame
    }
}

fn advice_for(study: &Path) -> String {
    let name = study.file_name().map_or_else(|| "STUDY".into(), |name| name.to_string_lossy());
    format!("run `rank-study reproduce --only {name}` again, which keeps the whole rows")
}

/// What to do about a log of a training that cannot be read.
fn advice_for_log() -> String {
    "remove the run's rows and run its study again, which writes it again".to_owned()
}

fn read(path: &Path, schema: &Schema, advice: &str) -> Result<Rows, TableError> {
    let bytes = std::fs::read(path).map_err(|error| TableError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
        advice: advice.to_owned(),
    })?;
    let (header, records) = checked(path, &bytes, schema, advice)?;
    let columns = header.iter().enumerate().map(|(at, name)| {
        schema.column(name, records.iter().map(|record| record.get(at).unwrap_or_default()))
    });
    let frame =
        DataFrame::new(records.len(), columns.collect()).map_err(TableError::frame(path))?;
    Ok(Rows { path: path.to_owned(), frame })
}

/// The header and the records, checked while the number of a line is still known.
fn checked(
    path: &Path,
    bytes: &[u8],
    schema: &Schema,
    advice: &str,
) -> Result<(Vec<String>, Vec<csv::StringRecord>), TableError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let bad = |line: u64, why: String| TableError::BadLine {
        path: path.to_owned(),
        line,
        why,
        advice: advice.to_owned(),
    };
    let header: Vec<String> = reader
        .headers()
        .map_err(|error| bad(1, error.to_string()))?
        .iter()
        .map(str::to_owned)
        .collect();
    if let Some(column) = schema.needed.iter().find(|&&c| !header.iter().any(|name| name == c)) {
        return Err(TableError::MissingColumn {
            path: path.to_owned(),
            column: (*column).to_owned(),
            found: header.join(", "),
            advice: advice.to_owned(),
        });
    }
    let (mut last, mut records) = (1, Vec::new());
    for record in reader.records() {
        let record = record.map_err(|error| {
            bad(error.position().map_or(last + 1, csv::Position::line), error.to_string())
        })?;
        last = record.position().map_or(last + 1, csv::Position::line);
        check_record(&record, &header, schema).map_err(|why| bad(last, why))?;
        records.push(record);
    }
    if !bytes.ends_with(b"\n") {
        return Err(bad(last, "the last line is torn: it has no end of line".to_owned()));
    }
    Ok((header, records))
}

fn check_record(
    record: &csv::StringRecord,
    header: &[String],
    schema: &Schema,
) -> Result<(), String> {
    if record.len() != header.len() {
        return Err(format!("{} fields where the header has {}", record.len(), header.len()));
    }
    match header.iter().zip(record).find(|(name, field)| !schema.accepts(name, field)) {
        Some((name, field)) => Err(format!("{field:?} in column {name} is not a number")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "step,split,tokens,loss_nats,perplexity\n";

    fn error_of(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("eval.csv"), text).unwrap();
        Rows::of_evaluations(folder.path()).unwrap_err().to_string()
    }

    #[test]
    fn whole_rows_are_typed_and_empty_fields_are_null() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("eval.csv"), format!("{HEADER}10,valid,,2.5,12\n"))
            .unwrap();
        let rows = Rows::of_evaluations(folder.path()).unwrap();
        assert_eq!(rows.frame().shape(), (1, 5));
        assert_eq!(rows.frame().column("tokens").unwrap().null_count(), 1);
        assert_eq!(rows.frame().column("loss_nats").unwrap().f64().unwrap().get(0), Some(2.5));
    }

    #[test]
    fn a_torn_last_line_is_named_by_its_number() {
        let error = error_of(&format!("{HEADER}10,valid,,2.5,12\n20,valid,,2."));
        assert!(error.contains("line 3") && error.contains("4 fields"), "{error}");
        let error = error_of(&format!("{HEADER}10,valid,,2.5,12\n20,valid,,2.,1"));
        assert!(error.contains("line 3") && error.contains("torn"), "{error}");
        assert!(!error.contains('\n'), "one line: {error}");
    }

    #[test]
    fn a_missing_column_a_wrong_number_and_a_missing_file_say_what_to_do() {
        let error = error_of("step,split,tokens,loss,perplexity\n");
        assert!(error.contains("no column \"loss_nats\""), "{error}");
        let error = error_of(&format!("{HEADER}10,valid,,2.5,12\n20,valid,,abc,1\n"));
        assert!(error.contains("line 3") && error.contains("\"abc\" in column loss_nats"));
        let error = Rows::of_fits(&["/nowhere/some-study".into()]).unwrap_err().to_string();
        assert!(error.contains("rank-study reproduce --only some-study"), "{error}");
    }
}
