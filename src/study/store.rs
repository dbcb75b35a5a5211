//! A study's rows on disk: `rows.csv`, rewritten as a whole after every cell, and `rows.parquet`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::StudyError;
use super::set_aside::set_aside;
use super::study_manifest::StudyManifest;
use super::{header, parquet};
use crate::record::{Column, Line, to_csv};
use crate::system::{FileError, Lock, lock, sha256, write_whole};

/// The rows of one study.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    columns: Vec<Column>,
    /// Cells in the order in which they are written, with their rows.
    cells: Vec<(String, Vec<Line>)>,
    /// Lines that are not valid rows, unchanged.
    damaged: Vec<String>,
    /// SHA-256 of `rows.csv`; `None` if the file is missing.
    sha256: Option<String>,
    /// Lock on the folder, while this process may write.
    lock: Option<Lock>,
}

impl Store {
    /// Reads the rows in `folder`, if there are any; writes nothing.
    ///
    /// A line that is cut off, or that does not fit the header, is not a row: see [`Store::damaged`]. Its cell counts
    /// as not measured. Rows that are older than a column have no value in it.
    ///
    /// # Errors
    /// The rows cannot be read, or have the header of another kind of rows.
    pub fn read(folder: &Path, columns: &[Column]) -> Result<Self, StudyError> {
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
            let bytes = std::fs::read(&path).map_err(|e| FileError::read(&path, e))?;
            store.sha256 = Some(sha256(&bytes));
            // A line may be cut off in the middle of a character.
            store.parse(&String::from_utf8_lossy(&bytes))?;
        }
        Ok(store)
    }

    /// Locks the folder for this process alone, and creates it if it is missing. Then reads the rows again, because
    /// another process may have written some since.
    ///
    /// # Errors
    /// The folder cannot be created or written, another process works in it, or as [`Store::read`].
    pub fn lock(&mut self) -> Result<(), StudyError> {
        let lock = lock(&self.folder)?;
        *self = Self { lock: Some(lock), ..Self::read(&self.folder, &self.columns)? };
        Ok(())
    }

    /// Whether the lock keeps other processes out of the folder.
    pub fn excludes_others(&self) -> bool {
        self.lock.as_ref().is_some_and(Lock::excludes_others)
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
        let header = header::read(first, &self.columns)
            .map_err(|why| StudyError::Rows { path: self.csv_path(), why })?;
        for (line, record) in records.iter().enumerate().skip(1) {
            // A line without a line end was cut off, even if it has the right number of fields.
            let ended = line + 1 < records.len() || text.ends_with('\n');
            let Some(row) = header::line_of(&header, record, &self.columns).filter(|_| ended)
            else {
                let start = |at: usize| records.get(at)?.position().map(|p| p.byte() as usize);
                let line_of = start(line).unwrap_or(0)..start(line + 1).unwrap_or(text.len());
                self.damaged.push(text[line_of].trim_end().to_owned());
                continue;
            };
            let cell = row.cell().to_owned();
            let at = *place.entry(cell.clone()).or_insert_with(|| {
                self.cells.push((cell, Vec::new()));
                self.cells.len() - 1
            });
            self.cells[at].1.push(row);
        }
        Ok(())
    }

    /// Lines that are not valid rows.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Rows of a cell, if the cell is done with these settings.
    pub fn finished(&self, cell: &str, settings: &str) -> Option<&[Line]> {
        let (_, rows) = self.cells.iter().find(|(key, _)| key == cell)?;
        let good = !rows.is_empty()
            && rows.iter().all(|row| row.settings() == settings && self.has_ended(row));
        good.then_some(rows.as_slice())
    }

    /// Cells that are done, with their settings.
    pub fn all_finished(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cells.iter().filter_map(|(cell, rows)| {
            let settings = rows.first()?.settings();
            let good = rows.iter().all(|row| row.settings() == settings && self.has_ended(row));
            good.then_some((cell.as_str(), settings))
        })
    }

    /// The columns of the rows.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn has_ended(&self, row: &Line) -> bool {
        row.err().is_empty() && !row.was_stopped(&self.columns)
    }

    /// The row of a cell that was stopped with these settings; it has the step that was reached.
    pub fn stopped(&self, cell: &str, settings: &str) -> Option<&Line> {
        let is_of = |row: &&Line| row.cell() == cell && row.settings() == settings;
        self.rows().filter(is_of).find(|row| row.was_stopped(&self.columns))
    }

    /// Rows of a cell that ended without an error, with any settings.
    pub fn measured(&self, cell: &str) -> impl Iterator<Item = &Line> {
        let rows = self.cells.iter().filter(move |(key, _)| key == cell).flat_map(|(_, rows)| rows);
        rows.filter(|row| self.has_ended(row))
    }

    /// Number of rows of cells that are not in `order`.
    pub fn others(&self, order: &[String]) -> usize {
        let others = self.cells.iter().filter(|(key, _)| !order.contains(key));
        others.map(|(_, rows)| rows.len()).sum()
    }

    /// Sorts the cells into the order of a definition. Rows of other cells and damaged lines are appended to
    /// `rows-set-aside.csv`, so that they are kept but not used.
    ///
    /// # Errors
    /// A file cannot be written.
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
        let stray: Vec<Line> = others.into_iter().flat_map(|(_, rows)| rows).collect();
        if stray.is_empty() && self.damaged.is_empty() {
            return Ok(());
        }
        self.set_aside(&stray)?;
        self.damaged.clear();
        self.write(manifest)
    }

    fn set_aside(&self, rows: &[Line]) -> Result<(), StudyError> {
        let all = to_csv(&self.columns, rows).map_err(|e| FileError::write(&self.csv_path(), e))?;
        let header = all.iter().position(|&b| b == b'\n').map_or(0, |end| end + 1);
        let mut lines = all[header..].to_vec();
        for line in &self.damaged {
            lines.extend_from_slice(line.as_bytes());
            lines.push(b'\n');
        }
        set_aside(&self.folder, &self.columns, &lines)
    }

    /// Replaces a cell's rows and rewrites `rows.csv`. `order` gives the position of a new cell. Replaced rows of
    /// finished cells are first copied to `rows-set-aside.csv`.
    ///
    /// # Errors
    /// A file cannot be written; the previous file is unchanged.
    pub fn put(
        &mut self,
        cell: &str,
        rows: Vec<Line>,
        order: &[String],
        manifest: &mut StudyManifest,
    ) -> Result<(), StudyError> {
        let replaced: Vec<Line> = self.measured(cell).cloned().collect();
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

    /// Writes the manifest with the new hash, and then `rows.csv`.
    fn write(&mut self, manifest: &mut StudyManifest) -> Result<(), StudyError> {
        debug_assert!(self.lock.is_some(), "rows are written by who holds them");
        let path = self.csv_path();
        let bytes = to_csv(&self.columns, self.rows()).map_err(|e| FileError::write(&path, e))?;
        let hash = sha256(&bytes);
        manifest.announce(&hash, self.sha256())?;
        write_whole(&path, &bytes).map_err(|e| FileError::write(&path, e))?;
        self.sha256 = Some(hash);
        Ok(())
    }

    /// The SHA-256 of `rows.csv` in hexadecimal; `None` if the file is missing.
    pub fn sha256(&self) -> Option<&str> {
        self.sha256.as_deref()
    }

    /// All rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = &Line> {
        self.cells.iter().flat_map(|(_, rows)| rows)
    }

    /// Writes the current rows to `rows.parquet`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_parquet(&self) -> Result<(), StudyError> {
        parquet::write(&self.folder, &self.columns, self.rows())
    }

    /// Compares `rows.parquet` with these rows; returns a message if they differ.
    pub fn wrong_with_parquet(&self) -> Option<&'static str> {
        parquet::wrong_with(&self.folder, &self.columns, &self.rows().collect::<Vec<_>>())
    }
}
