//! A study's rows on disk: `rows.csv`, rewritten as a whole after every cell, and `rows.parquet`.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use polars::prelude::DataFrame;

use super::StudyError;
use super::rows_file::RowsFile;
use super::study_manifest::StudyManifest;
use crate::record::{Column, Line, to_csv, to_frame, write_parquet};
use crate::system::{FileError, Lock, lock, sha256, write_whole};
use crate::targets::read_frame;

/// The rows of one study, or of one of its shards.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    /// The columns of the rows.
    pub columns: Vec<Column>,
    /// Cells in the order in which they are written, with their rows.
    pub cells: Vec<(String, Vec<Line>)>,
    /// Lines that are not valid rows, unchanged.
    pub damaged: Vec<String>,
    /// SHA-256 of `rows.csv`; `None` if the file is missing.
    sha256: Option<String>,
    /// Lock on the folder, while this process may write.
    lock: Option<Lock>,
}

/// Result of a cell, from the worst to the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// The cell failed with an error.
    Failed,
    /// The training run was stopped before its end, and can be resumed.
    Stopped,
    /// The cell is done.
    Whole,
}

impl Store {
    /// Reads the rows in `folder`, if there are any; writes nothing.
    ///
    /// A line that is cut off, or that does not fit the header, is not a row: see `damaged`. Its cell counts
    /// as not measured. Rows that are older than a column have no value in it.
    ///
    /// # Errors
    /// The rows cannot be read, or have the header of another kind of rows.
    pub fn read(folder: &Path, columns: &[Column]) -> Result<Self, StudyError> {
        let RowsFile { lines, damaged, sha256 } =
            RowsFile::read(&folder.join("rows.csv"), columns)?;
        let mut cells: Vec<(String, Vec<Line>)> = Vec::new();
        let mut place: HashMap<String, usize> = HashMap::new();
        for line in lines {
            let cell = line.cell().to_owned();
            let at = *place.entry(cell.clone()).or_insert(cells.len());
            if at == cells.len() {
                cells.push((cell, Vec::new()));
            }
            cells[at].1.push(line);
        }
        let (folder, columns) = (folder.to_owned(), columns.to_vec());
        Ok(Self { folder, columns, cells, damaged, sha256, lock: None })
    }

    /// Locks the folder for this process alone, and creates it if it is missing. Then reads the rows again, because
    /// another process may have written some since.
    ///
    /// # Errors
    /// The folder cannot be created or written, another process works in it, or as [`Store::read`].
    pub fn lock(&mut self) -> Result<(), StudyError> {
        *self = Self::locked(lock(&self.folder)?, &self.folder, &self.columns)?;
        Ok(())
    }

    /// Reads the rows in a folder that is locked.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn locked(lock: Lock, folder: &Path, columns: &[Column]) -> Result<Self, StudyError> {
        Ok(Self { lock: Some(lock), ..Self::read(folder, columns)? })
    }

    /// Whether the lock keeps other processes out of the folder.
    pub fn excludes_others(&self) -> bool {
        self.lock.as_ref().is_some_and(Lock::excludes_others)
    }

    /// Path of `rows.csv`.
    pub fn path(&self) -> PathBuf {
        self.folder.join("rows.csv")
    }

    /// Whether a cell is done with these settings.
    pub fn has_finished(&self, cell: &str, settings: &str) -> bool {
        let is_good = |row: &Line| row.settings() == settings && self.has_ended(row);
        let cell = self.cells.iter().find(|(key, _)| key == cell);
        cell.is_some_and(|(_, rows)| !rows.is_empty() && rows.iter().all(is_good))
    }

    fn has_ended(&self, row: &Line) -> bool {
        self.ending(std::slice::from_ref(row)) == Ending::Whole
    }

    /// Result of a cell with these rows.
    pub fn ending(&self, rows: &[Line]) -> Ending {
        let of_row = |row: &Line| match (row.err(), row.was_stopped(&self.columns)) {
            ("", false) => Ending::Whole,
            ("", true) => Ending::Stopped,
            _ => Ending::Failed,
        };
        rows.iter().map(of_row).min().unwrap_or(Ending::Failed)
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
        self.set_aside(&stray, &self.damaged)?;
        self.write(manifest)
    }

    /// Appends rows and damaged lines to `rows-set-aside.csv`, if there are any.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn set_aside(&self, rows: &[Line], damaged: &[String]) -> Result<(), StudyError> {
        match rows.is_empty() && damaged.is_empty() {
            true => Ok(()),
            false => RowsFile::set_aside(&self.folder, &self.columns, rows, damaged),
        }
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
        self.set_aside(&replaced, &[])?;
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

    /// Replaces all cells and rewrites `rows.csv`.
    ///
    /// # Errors
    /// A file cannot be written; the previous file is unchanged.
    pub fn put_all(
        &mut self,
        cells: Vec<(String, Vec<Line>)>,
        manifest: &mut StudyManifest,
    ) -> Result<(), StudyError> {
        self.cells = cells;
        self.write(manifest)
    }

    /// Writes the manifest with the new hash, and then `rows.csv`.
    fn write(&mut self, manifest: &mut StudyManifest) -> Result<(), StudyError> {
        debug_assert!(self.lock.is_some(), "rows are written by who holds them");
        let path = self.path();
        let bytes = to_csv(&self.columns, self.rows()).map_err(|e| FileError::write(&path, e))?;
        let hash = sha256(&bytes);
        manifest.announce(&hash, self.sha256())?;
        write_whole(&path, &bytes).map_err(|e| FileError::write(&path, e))?;
        self.damaged.clear();
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

    /// Writes the current rows to `rows.parquet`, in groups.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_parquet(&self) -> Result<(), FileError> {
        write_parquet(&self.folder.join(PARQUET), &self.columns, self.rows().map(Ok))
    }

    /// Compares `rows.parquet` with these rows, and returns a message if they differ. A column that was added later may be
    /// missing in the file if it is empty in all rows.
    pub fn wrong_with_parquet(&self) -> Option<&'static str> {
        let path = self.folder.join(PARQUET);
        if File::open(&path).is_err() {
            return Some("is missing or cannot be read");
        }
        let Ok(there) = read_frame(&path) else {
            return Some("is not a Parquet file");
        };
        let names = there.get_column_names();
        let same = to_frame(&self.columns, &self.rows().collect::<Vec<_>>()).and_then(|here| {
            let height = here.height();
            let is_there = |name: &str| names.iter().any(|other| other.as_str() == name);
            let told =
                here.columns().iter().filter(|c| is_there(c.name()) || c.null_count() < height);
            let here = DataFrame::new(height, told.cloned().collect())?;
            let there = there.select(here.get_column_names_owned())?;
            Ok(names.len() == here.width() && there.equals_missing(&here))
        });
        (!same.unwrap_or(false)).then_some("differs from rows.csv")
    }
}

/// Name of the file in the study's folder.
const PARQUET: &str = "rows.parquet";
