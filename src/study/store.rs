//! A study's rows on disk: `rows.csv`, rewritten whole after every cell, and `rows.parquet`.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use polars::prelude::{
    Column, DataFrame, IntoColumn, NamedFrom, ParquetReader, ParquetWriter, SerReader, Series,
};

use super::StudyError;
use super::header::{self, Header};
use super::row::{Row, to_csv};
use super::schema::ColumnKind;
use super::study_manifest::StudyManifest;
use crate::system::sha256;
use crate::system::write_whole;

/// Where rows go that were measured and are not the study's any more, in its folder.
const SET_ASIDE: &str = "rows-set-aside.csv";

/// The rows of one study.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    columns: Vec<(&'static str, ColumnKind)>,
    /// Cells in the order in which they are written, with their rows.
    cells: Vec<(String, Vec<Row>)>,
    /// Lines that were no whole rows, as they stood.
    damaged: Vec<String>,
    /// What `rows.csv` hashes to; none where it is missing.
    sha256: Option<String>,
    /// Held open while this process may write: the lock goes when it is dropped.
    lock: Option<File>,
}

impl Store {
    /// Reads the rows in `folder`, if there are any; writes nothing.
    ///
    /// A line that is cut off, or that does not fit the header, is no row: it is kept aside, see
    /// [`Store::damaged`], and its cell counts as not measured. Rows of before a column was added
    /// have nothing in it.
    ///
    /// # Errors
    /// Rows that cannot be read, or whose header is another's.
    pub fn read(folder: &Path, columns: &[(&'static str, ColumnKind)]) -> Result<Self, StudyError> {
        let mut store = Self {
            folder: folder.to_owned(),
            columns: columns.to_vec(),
            cells: Vec::new(),
            damaged: Vec::new(),
            sha256: None,
            lock: None,
        };
        let path = store.csv_path();
        if path.exists() {
            let bytes = std::fs::read(&path).map_err(|e| StudyError::read(&path, e))?;
            store.sha256 = Some(sha256(&bytes));
            // A line may have been cut off in the middle of a character.
            store.parse(&String::from_utf8_lossy(&bytes))?;
        }
        Ok(store)
    }

    /// Takes the folder, which is made where it is missing, for this process alone, and reads its
    /// rows again: another process may have written some since.
    ///
    /// # Errors
    /// A folder that cannot be made or written, another process at work in it, or as
    /// [`Store::read`].
    pub fn lock(&mut self) -> Result<(), StudyError> {
        std::fs::create_dir_all(&self.folder).map_err(|e| StudyError::write(&self.folder, e))?;
        let path = self.folder.join(".lock");
        let lock = File::create(&path).map_err(|e| StudyError::write(&path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StudyError::Busy(self.folder.clone())),
            Err(TryLockError::Error(e)) => return Err(StudyError::write(&path, e)),
        }
        *self = Self { lock: Some(lock), ..Self::read(&self.folder, &self.columns)? };
        Ok(())
    }

    fn csv_path(&self) -> PathBuf {
        self.folder.join("rows.csv")
    }

    fn parse(&mut self, text: &str) -> Result<(), StudyError> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        let mut place: HashMap<String, usize> = HashMap::new();
        let records: Vec<csv::StringRecord> = reader
            .records()
            .collect::<Result<_, _>>()
            .map_err(|e| StudyError::Rows { path: self.csv_path(), why: e.to_string() })?;
        let Some(first) = records.first() else { return Ok(()) };
        let header = Header::read(first, &self.columns)
            .map_err(|why| StudyError::Rows { path: self.csv_path(), why })?;
        for (line, record) in records.iter().enumerate().skip(1) {
            // A line without its end was cut off, even where the number of fields is right.
            let ended = line + 1 < records.len() || text.ends_with('\n');
            let Some(row) = header.row(record).filter(|_| ended) else {
                let start = |at: usize| records.get(at)?.position().map(|p| p.byte() as usize);
                let line_of = start(line).unwrap_or(0)..start(line + 1).unwrap_or(text.len());
                self.damaged.push(text[line_of].trim_end().to_owned());
                continue;
            };
            let cell = row.get("cell").to_owned();
            let at = *place.entry(cell.clone()).or_insert_with(|| {
                self.cells.push((cell, Vec::new()));
                self.cells.len() - 1
            });
            self.cells[at].1.push(row);
        }
        Ok(())
    }

    /// The lines that were no whole rows.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// The rows of a cell that were measured with these settings and did not fail.
    pub fn finished(&self, cell: &str, settings: &str) -> Option<&[Row]> {
        let (_, rows) = self.cells.iter().find(|(key, _)| key == cell)?;
        let good = !rows.is_empty()
            && rows.iter().all(|r| r.get("settings") == settings && r.get("err").is_empty());
        good.then_some(rows.as_slice())
    }

    /// The rows of a cell that did not fail, whatever they were measured with.
    pub fn measured(&self, cell: &str) -> impl Iterator<Item = &Row> {
        let rows = self.cells.iter().filter(move |(key, _)| key == cell).flat_map(|(_, rows)| rows);
        rows.filter(|row| row.get("err").is_empty())
    }

    /// The rows of cells that are none of `order`.
    pub fn others(&self, order: &[String]) -> usize {
        let others = self.cells.iter().filter(|(key, _)| !order.contains(key));
        others.map(|(_, rows)| rows.len()).sum()
    }

    /// Puts the cells into the order of a definition. Rows of other cells, and damaged lines, go to
    /// the end of `rows-set-aside.csv`: out of every table, but not lost.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn arrange(
        &mut self,
        order: &[String],
        manifest: &mut StudyManifest,
    ) -> Result<(), StudyError> {
        let place: HashMap<&str, usize> =
            order.iter().enumerate().map(|(i, key)| (key.as_str(), i)).collect();
        let (mut kept, others): (Vec<_>, Vec<_>) =
            self.cells.drain(..).partition(|(key, _)| place.contains_key(key.as_str()));
        kept.sort_by_key(|(key, _)| place[key.as_str()]);
        self.cells = kept;
        let stray: Vec<Row> = others.into_iter().flat_map(|(_, rows)| rows).collect();
        if stray.is_empty() && self.damaged.is_empty() {
            return Ok(());
        }
        self.set_aside(&stray)?;
        self.damaged.clear();
        self.write(manifest)
    }

    fn set_aside(&self, rows: &[Row]) -> Result<(), StudyError> {
        let path = self.folder.join(SET_ASIDE);
        let mut bytes = if path.exists() {
            let before = std::fs::read(&path).map_err(|e| StudyError::read(&path, e))?;
            header::brought_up_to_date(&String::from_utf8_lossy(&before), &self.columns)
                .map_err(|why| StudyError::Rows { path: path.clone(), why })?
                .into_bytes()
        } else {
            to_csv(&self.columns, std::iter::empty()).map_err(|e| StudyError::write(&path, e))?
        };
        let all = to_csv(&self.columns, rows.iter()).map_err(|e| StudyError::write(&path, e))?;
        let header = all.iter().position(|&b| b == b'\n').map_or(0, |end| end + 1);
        bytes.extend_from_slice(&all[header..]);
        for line in &self.damaged {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        write_whole(&path, &bytes).map_err(|e| StudyError::write(&path, e))
    }

    /// Replaces a cell's rows and rewrites `rows.csv`. `order` gives the place of a new cell. Rows that were measured
    /// are set aside first.
    ///
    /// # Errors
    /// A file that cannot be written; the one before it still stands.
    pub fn put(
        &mut self,
        cell: &str,
        rows: Vec<Row>,
        order: &[String],
        manifest: &mut StudyManifest,
    ) -> Result<(), StudyError> {
        let replaced: Vec<Row> = self.measured(cell).cloned().collect();
        if !replaced.is_empty() {
            self.set_aside(&replaced)?;
        }
        let place = |key: &str| order.iter().position(|k| k == key).unwrap_or(usize::MAX);
        match self.cells.iter_mut().find(|(key, _)| key == cell) {
            Some((_, old)) => *old = rows,
            None => {
                let at = self.cells.partition_point(|(key, _)| place(key) < place(cell));
                self.cells.insert(at, (cell.to_owned(), rows));
            }
        }
        self.write(manifest)
    }

    /// Writes `rows.csv`, after the manifest that tells of it.
    fn write(&mut self, manifest: &mut StudyManifest) -> Result<(), StudyError> {
        debug_assert!(self.lock.is_some(), "rows are written under the lock");
        let path = self.csv_path();
        let bytes = to_csv(&self.columns, self.rows()).map_err(|e| StudyError::write(&path, e))?;
        let hash = sha256(&bytes);
        manifest.announce(&hash, self.sha256())?;
        write_whole(&path, &bytes).map_err(|e| StudyError::write(&path, e))?;
        self.sha256 = Some(hash);
        Ok(())
    }

    /// The SHA-256 of `rows.csv`, in hexadecimal; none where it is missing.
    pub fn sha256(&self) -> Option<&str> {
        self.sha256.as_deref()
    }

    /// Every row, in order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.cells.iter().flat_map(|(_, rows)| rows)
    }

    /// Writes `rows.parquet` from the rows as they stand.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_parquet(&self) -> Result<(), StudyError> {
        let (height, columns) = self.typed();
        write_parquet(&self.parquet_path(), height, columns)
    }

    /// What is wrong with `rows.parquet`; nothing where it holds these rows. A file of before a column was added may
    /// lack it, where no row has anything in it.
    pub fn wrong_with_parquet(&self) -> Option<&'static str> {
        let Ok(file) = File::open(self.parquet_path()) else {
            return Some("is missing or cannot be read");
        };
        let Ok(there) = ParquetReader::new(file).finish() else {
            return Some("is no Parquet file");
        };
        let (height, mut columns) = self.typed();
        let names = there.get_column_names();
        let is_there = |column: &Column| names.iter().any(|name| *name == column.name());
        columns.retain(|column| is_there(column) || column.null_count() < height);
        let same = DataFrame::new(height, columns).is_ok_and(|here| there.equals_missing(&here));
        (!same).then_some("does not hold the rows of rows.csv")
    }

    fn parquet_path(&self) -> PathBuf {
        self.folder.join("rows.parquet")
    }

    /// How many rows, and their columns.
    fn typed(&self) -> (usize, Vec<Column>) {
        let rows: Vec<&Row> = self.rows().collect();
        let column = |&(name, kind): &(&str, ColumnKind)| {
            typed(name, kind, rows.iter().map(|row| row.get(name)))
        };
        (rows.len(), self.columns.iter().map(column).collect())
    }
}

/// One column of a data frame; an empty field is a null.
fn typed<'f>(name: &str, kind: ColumnKind, fields: impl Iterator<Item = &'f str>) -> Column {
    let name = name.into();
    match kind {
        ColumnKind::Text => {
            let values: Vec<Option<&str>> = fields.map(|f| (!f.is_empty()).then_some(f)).collect();
            Series::new(name, values)
        }
        ColumnKind::Integer => {
            let values: Vec<Option<i64>> = fields.map(|f| f.parse().ok()).collect();
            Series::new(name, values)
        }
        ColumnKind::Number => {
            let values: Vec<Option<f64>> = fields.map(|f| f.parse().ok()).collect();
            Series::new(name, values)
        }
    }
    .into_column()
}

/// Writes columns of one height as a Parquet file, whole or not at all.
pub(super) fn write_parquet(
    path: &Path,
    height: usize,
    columns: Vec<Column>,
) -> Result<(), StudyError> {
    let parquet = |e: polars::error::PolarsError| StudyError::Rows {
        path: path.to_owned(),
        why: format!("cannot be written as Parquet: {e}"),
    };
    let mut frame = DataFrame::new(height, columns).map_err(parquet)?;
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes).finish(&mut frame).map_err(parquet)?;
    write_whole(path, &bytes).map_err(|e| StudyError::write(path, e))
}
