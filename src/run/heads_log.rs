//! Logits of every head at every step: a log while the run goes on, a Parquet file after its end.

use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use polars::prelude::{
    Column, DataFrame, Float64Chunked, Int64Chunked, IntoColumn, NamedFrom, ParquetWriter,
    PolarsResult, Series,
};

use super::csv_log::cut_after;
use super::error::RunError;
use crate::lm::HeadRecord;
use crate::system::disk::File;
use crate::system::{FileError, write_whole_with};
use crate::targets::{HeadKind, read_frame};

/// Name of the log in a run's folder.
pub(crate) const HEADS_LOG: &str = "heads.log";
/// Name of the Parquet file that replaces the log when the run has ended.
pub(crate) const HEADS: &str = "heads.parquet";

/// Number of 64-bit little-endian words per record: step, layer, head and window, then max, min and abs-max logit and
/// entropy as float64. The window is 0 for a global head.
const WORDS: usize = 8;
const RECORD: usize = 8 * WORDS;
/// Records per row group of the Parquet file; a row group is held in memory while it is written.
const GROUP: usize = 1 << 18;

/// A log of records of equal size, so that an incomplete record after a crash can be detected.
pub(crate) struct HeadsLog {
    file: BufWriter<File>,
}

impl HeadsLog {
    /// Creates a log; an existing one is replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let file = File::create(path).map_err(|e| FileError::write(path, e))?;
        Ok(Self { file: BufWriter::new(file) })
    }

    /// Continues a log after step `last`. Removes later records and an incomplete one. Calls `kept` for each record
    /// that stays.
    ///
    /// # Errors
    /// The file is missing or cannot be written.
    pub fn go_on(
        path: &Path,
        last: usize,
        mut kept: impl FnMut(&HeadRecord),
    ) -> Result<Self, FileError> {
        let (file, _) = cut_after(path, |records| {
            let record = read(records).map_err(|e| FileError::read(path, e))?;
            Ok(record.filter(|record| record.step <= last).map(|record| {
                kept(&record);
                RECORD as u64
            }))
        })?;
        Ok(Self { file: BufWriter::new(file) })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// I/O errors.
    pub fn push(&mut self, record: &HeadRecord) -> io::Result<()> {
        write(&mut self.file, record)
    }

    /// Returns once the records are on the disk itself.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync()
    }
}

fn write(to: &mut impl Write, record: &HeadRecord) -> io::Result<()> {
    let window = record.kind.window().unwrap_or(0);
    for word in [record.step, record.layer, record.head, window] {
        to.write_all(&(word as u64).to_le_bytes())?;
    }
    let HeadRecord { max_logit, min_logit, max_abs_logit, entropy_nats, .. } = *record;
    for number in [max_logit, min_logit, max_abs_logit, entropy_nats] {
        to.write_all(&number.to_le_bytes())?;
    }
    Ok(())
}

/// Converts the window in a record to the kind of head.
fn kind_of(tokens: usize) -> HeadKind {
    match tokens {
        0 => HeadKind::Global,
        window => HeadKind::Local { window },
    }
}

/// Reads the next record; `None` at the end, or if the rest is incomplete or was never written. A power failure may
/// leave zeros, while steps count from 1.
fn read(from: &mut impl Read) -> io::Result<Option<HeadRecord>> {
    let mut bytes = Vec::with_capacity(RECORD);
    from.take(RECORD as u64).read_to_end(&mut bytes)?;
    if bytes.len() < RECORD {
        return Ok(None);
    }
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
    if words[0] == 0 {
        return Ok(None);
    }
    let whole = |at: usize| words[at] as usize;
    let number = |at: usize| f64::from_bits(words[at]);
    Ok(Some(HeadRecord {
        step: whole(0),
        layer: whole(1),
        head: whole(2),
        kind: kind_of(whole(3)),
        max_logit: number(4),
        min_logit: number(5),
        max_abs_logit: number(6),
        entropy_nats: number(7),
    }))
}

/// Writes the records of the log at `from` as a Parquet file to `to`, atomically.
///
/// # Errors
/// The log cannot be read, or the file cannot be written.
pub(crate) fn write_heads(from: &Path, to: &Path) -> Result<(), FileError> {
    let log = fs::File::open(from).map_err(|e| FileError::read(from, e))?;
    let mut records = BufReader::new(log);
    let written = write_whole_with(to, |file| {
        let empty = frame(&[]).map_err(io::Error::other)?;
        let mut writer =
            ParquetWriter::new(file).batched(empty.schema()).map_err(io::Error::other)?;
        loop {
            let mut group = Vec::new();
            while group.len() < GROUP
                && let Some(record) = read(&mut records)?
            {
                group.push(record);
            }
            if group.is_empty() {
                break;
            }
            let group = frame(&group).map_err(io::Error::other)?;
            writer.write_batch(&group).map_err(io::Error::other)?;
        }
        writer.finish().map_err(io::Error::other)?;
        Ok(())
    });
    written.map_err(|e| FileError::write(to, e))
}

/// Calls `seen` for every head at every step of the run in `folder`, in the order of the steps. Reads `heads.parquet`,
/// or the log if the run has not ended. Without both files, it does nothing.
///
/// # Errors
/// A file is damaged.
pub(crate) fn each_head(folder: &Path, mut seen: impl FnMut(&HeadRecord)) -> Result<(), RunError> {
    let (path, log) = (folder.join(HEADS), folder.join(HEADS_LOG));
    if path.exists() {
        let heads = read_parquet(&path)
            .map_err(|e| RunError::Log { why: format!("cannot be read as Parquet: {e}"), path })?;
        heads.iter().for_each(seen);
        return Ok(());
    }
    if log.exists() {
        let file = fs::File::open(&log).map_err(|e| FileError::read(&log, e))?;
        let mut records = BufReader::new(file);
        while let Some(record) = read(&mut records).map_err(|e| FileError::read(&log, e))? {
            seen(&record);
        }
    }
    Ok(())
}

/// Writes the log at `to` again from the Parquet file that was [written](write_heads) from it.
///
/// # Errors
/// `from` is not such a file, or the log cannot be written.
pub(crate) fn restore_log(from: &Path, to: &Path) -> Result<(), FileError> {
    let heads = read_parquet(from).map_err(|e| FileError::read(from, io::Error::other(e)))?;
    let written = write_whole_with(to, |file| {
        let mut out = BufWriter::new(file);
        heads.iter().try_for_each(|record| write(&mut out, record))?;
        out.flush()
    });
    written.map_err(|e| FileError::write(to, e))
}

fn read_parquet(path: &Path) -> Result<Vec<HeadRecord>, String> {
    records(&read_frame(path)?).map_err(|error| error.to_string())
}

/// Reads records from the columns that [`frame`] makes.
fn records(frame: &DataFrame) -> PolarsResult<Vec<HeadRecord>> {
    let whole =
        |name: &str| -> PolarsResult<Int64Chunked> { Ok(frame.column(name)?.i64()?.clone()) };
    let number =
        |name: &str| -> PolarsResult<Float64Chunked> { Ok(frame.column(name)?.f64()?.clone()) };
    let [steps, layers, heads, windows] =
        [whole("step")?, whole("layer")?, whole("head")?, whole("window")?];
    let [largest, least, largest_absolute, entropies] = [
        number("max_logit")?,
        number("min_logit")?,
        number("max_abs_logit")?,
        number("entropy_nats")?,
    ];
    let at = |column: &Int64Chunked, row: usize| column.get(row).unwrap_or(0) as usize;
    let number_at = |column: &Float64Chunked, row: usize| column.get(row).unwrap_or(f64::NAN);
    let record = |row: usize| HeadRecord {
        step: at(&steps, row),
        layer: at(&layers, row),
        head: at(&heads, row),
        kind: kind_of(at(&windows, row)),
        max_logit: number_at(&largest, row),
        min_logit: number_at(&least, row),
        max_abs_logit: number_at(&largest_absolute, row),
        entropy_nats: number_at(&entropies, row),
    };
    Ok((0..frame.height()).map(record).collect())
}

/// Builds the columns of `heads.parquet`.
fn frame(heads: &[HeadRecord]) -> PolarsResult<DataFrame> {
    let whole = |name: &str, of: fn(&HeadRecord) -> i64| {
        Series::new(name.into(), heads.iter().map(of).collect::<Vec<i64>>()).into_column()
    };
    let number = |name: &str, of: fn(&HeadRecord) -> f64| {
        Series::new(name.into(), heads.iter().map(of).collect::<Vec<f64>>()).into_column()
    };
    let kind = |head: &HeadRecord| match head.kind.window() {
        None => ("global", None),
        Some(tokens) => ("local", Some(tokens as i64)),
    };
    let (kinds, windows): (Vec<&str>, Vec<Option<i64>>) = heads.iter().map(kind).unzip();
    let columns: Vec<Column> = vec![
        whole("step", |h| h.step as i64),
        whole("layer", |h| h.layer as i64),
        whole("head", |h| h.head as i64),
        Series::new("kind".into(), kinds).into_column(),
        Series::new("window".into(), windows).into_column(),
        number("max_logit", |h| h.max_logit),
        number("min_logit", |h| h.min_logit),
        number("max_abs_logit", |h| h.max_abs_logit),
        number("entropy_nats", |h| h.entropy_nats),
    ];
    DataFrame::new(heads.len(), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(step: usize, kind: HeadKind) -> HeadRecord {
        let logit = step as f64 + 0.25;
        HeadRecord {
            step,
            layer: 1,
            head: 2,
            kind,
            max_logit: logit,
            min_logit: -logit,
            max_abs_logit: logit,
            entropy_nats: f64::NAN,
        }
    }

    #[test]
    fn the_file_has_the_columns_that_are_listed() {
        let frame = frame(&[record(1, HeadKind::Global)]).unwrap();
        let names: Vec<&str> = frame.get_column_names().iter().map(|name| name.as_str()).collect();
        let listed = crate::record::columns_of::<crate::run::HeadLogRow>();
        assert_eq!(names, listed.iter().map(|column| column.name).collect::<Vec<_>>());
    }

    #[test]
    fn a_log_is_restored_from_the_file_that_was_written_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let [log, parquet, restored] =
            ["heads.log", "heads.parquet", "restored.log"].map(|name| folder.path().join(name));
        let mut written = HeadsLog::create(&log).unwrap();
        for (step, kind) in [(1, HeadKind::Global), (2, HeadKind::Local { window: 7 })] {
            written.push(&record(step, kind)).unwrap();
        }
        written.sync().unwrap();
        write_heads(&log, &parquet).unwrap();
        restore_log(&parquet, &restored).unwrap();
        assert_eq!(std::fs::read(&restored).unwrap(), std::fs::read(&log).unwrap());
    }

    #[test]
    fn later_records_and_torn_ones_are_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("heads.log");
        let mut log = HeadsLog::create(&path).unwrap();
        for step in 1..=4 {
            log.push(&record(step, HeadKind::Local { window: 7 })).unwrap();
        }
        log.sync().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for (bytes, last, left) in [(256, 4, 4), (256, 3, 3), (250, 4, 3), (64, 4, 1), (3, 4, 0)] {
            std::fs::write(&path, &whole[..bytes]).unwrap();
            let mut kept = Vec::new();
            let mut log = HeadsLog::go_on(&path, last, |head| kept.push(*head)).unwrap();
            log.push(&record(9, HeadKind::Global)).unwrap();
            log.sync().unwrap();
            assert_eq!(kept.len(), left);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 64 * (left as u64 + 1));
            let mut bytes = &std::fs::read(&path).unwrap()[64 * left..];
            let last = read(&mut bytes).unwrap().unwrap();
            assert_eq!((last.step, last.kind, last.max_logit), (9, HeadKind::Global, 9.25));
        }
    }
}
