//! Logits of every head at every step: a CSV log while the run goes on, a Parquet file after its end.

use std::fs::File;
use std::io;
use std::path::Path;

use polars::prelude::{DataFrame, PolarsResult};

use super::csv_log::read_rows;
use super::error::RunError;
use crate::lm::HeadLogRow;
use crate::record::{Line, columns_of, write_parquet, write_records};
use crate::system::FileError;
use crate::targets::read_frame;

/// Name of the log in a run's folder.
pub(crate) const HEADS_LOG: &str = "heads.log";
/// Name of the Parquet file that replaces the log when the run has ended.
pub(crate) const HEADS: &str = "heads.parquet";

/// Writes the rows of the log at `from` as a Parquet file to `to`, atomically.
///
/// # Errors
/// The log cannot be read, or the file cannot be written.
pub(crate) fn write_heads(from: &Path, to: &Path) -> Result<(), FileError> {
    let log = File::open(from).map_err(|e| FileError::read(from, e))?;
    let rows = csv::Reader::from_reader(log).into_records();
    write_parquet(to, &columns_of::<HeadLogRow>(), rows.map(|row| Ok(Line::from(row?))))
}

/// Calls `seen` for every head at every step of the run in `folder`, in the order of the steps. Reads `heads.parquet`,
/// or the log if the run has not ended. Without both files, it does nothing.
///
/// # Errors
/// A file is damaged.
pub(crate) fn each_head(folder: &Path, seen: impl FnMut(HeadLogRow)) -> Result<(), RunError> {
    let (path, log) = (folder.join(HEADS), folder.join(HEADS_LOG));
    if path.exists() {
        let heads = read_parquet(&path)
            .map_err(|e| RunError::log(&path, format!("cannot be read as Parquet: {e}")))?;
        heads.into_iter().for_each(seen);
    } else if log.exists() {
        let file = File::open(&log).map_err(|e| FileError::read(&log, e))?;
        read_rows(&log, file, usize::MAX, seen)?;
    }
    Ok(())
}

/// Writes the log at `to` again from the Parquet file that was [written](write_heads) from it.
///
/// # Errors
/// `from` is not such a file, or the log cannot be written.
pub(crate) fn restore_log(from: &Path, to: &Path) -> Result<(), FileError> {
    let heads = read_parquet(from).map_err(|e| FileError::read(from, io::Error::other(e)))?;
    write_records(to, &heads)
}

fn read_parquet(path: &Path) -> Result<Vec<HeadLogRow>, String> {
    rows(&read_frame(path)?).map_err(|error| error.to_string())
}

/// Reads rows from the columns of the Parquet file.
fn rows(frame: &DataFrame) -> PolarsResult<Vec<HeadLogRow>> {
    let whole =
        |name: &str| Ok::<_, polars::error::PolarsError>(frame.column(name)?.i64()?.clone());
    let number =
        |name: &str| Ok::<_, polars::error::PolarsError>(frame.column(name)?.f64()?.clone());
    let [steps, layers, heads, windows] =
        [whole("step")?, whole("layer")?, whole("head")?, whole("window")?];
    let kinds = frame.column("kind")?.str()?;
    let [largest, least, largest_absolute, entropies] = [
        number("max_logit")?,
        number("min_logit")?,
        number("max_abs_logit")?,
        number("entropy_nats")?,
    ];
    let row = |row: usize| HeadLogRow {
        step: steps.get(row).unwrap_or(0) as usize,
        layer: layers.get(row).unwrap_or(0) as usize,
        head: heads.get(row).unwrap_or(0) as usize,
        kind: kinds.get(row).unwrap_or_default().to_owned(),
        window: windows.get(row).map(|window| window as usize),
        max_logit: largest.get(row).unwrap_or(f64::NAN),
        min_logit: least.get(row).unwrap_or(f64::NAN),
        max_abs_logit: largest_absolute.get(row).unwrap_or(f64::NAN),
        entropy_nats: entropies.get(row).unwrap_or(f64::NAN),
    };
    Ok((0..frame.height()).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::csv_log::CsvLog;

    #[test]
    fn a_log_is_restored_from_the_file_that_was_written_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let [log, parquet, restored] =
            ["heads.log", "heads.parquet", "restored.log"].map(|name| folder.path().join(name));
        let mut written = CsvLog::<HeadLogRow>::create(&log).unwrap();
        for (step, kind, window) in [(1, "global", None), (2, "local", Some(7))] {
            let logit = step as f64 + 0.25;
            let row = HeadLogRow {
                step,
                layer: 1,
                head: 2,
                kind: kind.to_owned(),
                window,
                max_logit: logit,
                min_logit: f64::NEG_INFINITY,
                max_abs_logit: logit,
                entropy_nats: f64::NAN,
            };
            written.push(&row).unwrap();
        }
        written.sync().unwrap();
        write_heads(&log, &parquet).unwrap();
        let frame = read_frame(&parquet).unwrap();
        let names: Vec<&str> = frame.get_column_names().iter().map(|name| name.as_str()).collect();
        let listed = columns_of::<HeadLogRow>();
        assert_eq!(names, listed.iter().map(|column| column.name).collect::<Vec<_>>());
        restore_log(&parquet, &restored).unwrap();
        assert_eq!(std::fs::read(&restored).unwrap(), std::fs::read(&log).unwrap());
    }
}
