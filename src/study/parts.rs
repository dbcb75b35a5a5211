//! The folders, in a study's, of the rows of its parts.
//!
//! ```text
//! data/STUDY/shards/3-of-8/rows.csv, manifest.toml     one part's rows, which one task writes
//! data/STUDY/shards/cells.txt                          the study's cells in order, a line each
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::StudyError;
use super::shard::Shard;
use crate::run::manifest::{MANIFEST, Manifest};
use crate::system::{FileError, Lock, disk, lock_now, sha256_of_file, write_whole};

/// The folder of all parts.
const SHARDS: &str = "shards";
/// The order of the study's cells.
const CELLS: &str = "cells.txt";

/// In the manifest of a part, which of how many it is.
pub(super) const SHARD: &str = "shard";

/// How many parts of the study in a folder have rows that are not joined to its own.
///
/// # Errors
/// A folder that cannot be read.
pub fn unmerged_parts(study: &Path) -> Result<usize, StudyError> {
    Ok(Parts::of(study).with_rows()?.len())
}

/// Whether a study has a folder of parts: also where none of them has rows, as what a merge that was killed left.
pub fn has_parts(study: &Path) -> bool {
    study.join(SHARDS).is_dir()
}

/// Refuses a study whose parts have rows that are not joined to its own.
///
/// # Errors
/// [`StudyError::Unmerged`], or a folder that cannot be read.
pub fn check_merged(study: &Path) -> Result<(), StudyError> {
    Parts::of(study).check_merged()
}

/// The parts of the study in a folder.
pub(super) struct Parts {
    folder: PathBuf,
}

/// One of them.
pub(super) struct Part {
    /// As the folder is called.
    pub shard: Shard,
    pub folder: PathBuf,
}

impl Part {
    /// The file of its rows.
    pub fn rows(&self) -> PathBuf {
        self.folder.join("rows.csv")
    }

    pub fn has_rows(&self) -> bool {
        self.rows().exists()
    }
}

impl Parts {
    /// Those in a study's folder.
    pub fn of(study: &Path) -> Self {
        Self { folder: study.join(SHARDS) }
    }

    /// The folder of one.
    pub fn folder_of(&self, shard: Shard) -> PathBuf {
        self.folder.join(shard.folder_name())
    }

    /// Those that have rows, in the order of their numbers.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn with_rows(&self) -> Result<Vec<Part>, StudyError> {
        let mut parts = self.all()?;
        parts.retain(Part::has_rows);
        Ok(parts)
    }

    /// Those that were begun, in the order of their numbers.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn all(&self) -> Result<Vec<Part>, StudyError> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let entries =
            std::fs::read_dir(&self.folder).map_err(|e| FileError::read(&self.folder, e))?;
        let mut parts = Vec::new();
        for entry in entries {
            let folder = entry.map_err(|e| FileError::read(&self.folder, e))?.path();
            let name = folder.file_name().map(|name| name.to_string_lossy().replace("-of-", "/"));
            let shard = name.and_then(|name| name.parse::<Shard>().ok());
            parts.extend(shard.map(|shard| Part { shard, folder }));
        }
        parts.sort_by_key(|part| (part.shard.count(), part.shard.index()));
        Ok(parts)
    }

    /// Refuses rows that were not joined to the study's.
    ///
    /// # Errors
    /// [`StudyError::Unmerged`] where there are some, or a folder that cannot be read.
    pub fn check_merged(&self) -> Result<(), StudyError> {
        match self.with_rows()?.len() {
            0 => Ok(()),
            parts => {
                let study = self.folder.parent().unwrap_or(&self.folder).to_owned();
                let name = study.file_name().unwrap_or_default().to_string_lossy();
                let first = self.with_rows()?.into_iter().next();
                let manifest =
                    first.and_then(|part| Manifest::read(&part.folder.join(MANIFEST)).ok());
                let size = manifest.map_or_else(String::new, |manifest| manifest.preset_flag());
                let command = format!("rank-study merge {name}{size}");
                Err(StudyError::Unmerged { study, parts, command })
            }
        }
    }

    /// Takes away a part, which is locked, whose rows, of this SHA-256, are now the study's; one that has others by now stays.
    ///
    /// # Errors
    /// Files that cannot be read or taken away.
    pub fn take_away(&self, part: &Part, lock: Lock, sha256: &str) -> Result<(), StudyError> {
        let rows = part.rows();
        if !sha256_of_file(&rows).is_ok_and(|there| there == sha256) {
            return Ok(());
        }
        for path in [rows, part.folder.join(MANIFEST)] {
            disk::remove_file(&path).map_err(|e| FileError::write(&path, e))?;
        }
        lock.remove()?;
        remove_empty(&part.folder)
    }

    /// Takes away what is there of parts without rows, where nobody is at work, and what is beside parts, where there are
    /// none any more.
    ///
    /// # Errors
    /// Files that cannot be taken away.
    pub fn tidy(&self) -> Result<(), StudyError> {
        for Part { folder, .. } in self.all()?.into_iter().filter(|part| !part.has_rows()) {
            let lock = match lock_now(&folder) {
                Err(FileError::Busy { .. }) => continue,
                lock => lock?,
            };
            let manifest = folder.join(MANIFEST);
            if manifest.exists() {
                disk::remove_file(&manifest).map_err(|e| FileError::write(&manifest, e))?;
            }
            lock.remove()?;
            remove_empty(&folder)?;
        }
        let order = self.folder.join(CELLS);
        let mut others = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        if others.all(|entry| entry.path() == order) {
            if order.exists() {
                disk::remove_file(&order).map_err(|e| FileError::write(&order, e))?;
            }
            remove_empty(&self.folder)?;
        }
        Ok(())
    }

    /// Writes down the order of the study's cells, where it is not there or another.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep_order(&self, order: &[String]) -> Result<(), StudyError> {
        let path = self.folder.join(CELLS);
        let text: String = order.iter().flat_map(|cell| [cell.as_str(), "\n"]).collect();
        if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        Ok(write_whole(&path, text.as_bytes()).map_err(|e| FileError::write(&path, e))?)
    }

    /// That order; empty where nobody wrote it down.
    pub fn order(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join(CELLS)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Takes a folder away that is there. It stays where there is more in it, or somebody has come to work in it meanwhile.
fn remove_empty(folder: &Path) -> Result<(), StudyError> {
    match disk::remove_folder(folder) {
        Err(e) if !matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
            Err(FileError::write(folder, e).into())
        }
        _ => Ok(()),
    }
}
