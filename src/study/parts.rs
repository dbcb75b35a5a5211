//! The folders of a study's shards, within the study's folder.
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

/// Folder of all shards.
const SHARDS: &str = "shards";
/// File with the order of the study's cells.
const CELLS: &str = "cells.txt";

/// Key of the shard's number in its manifest.
pub(super) const SHARD: &str = "shard";

/// Number of shards of a study whose rows are not merged into its own.
///
/// # Errors
/// The folder cannot be read.
pub fn unmerged_parts(study: &Path) -> Result<usize, StudyError> {
    Ok(Parts::of(study).with_rows()?.len())
}

/// Whether a study has a folder of shards. It may contain no rows, for example after a merge that was killed.
pub fn has_parts(study: &Path) -> bool {
    study.join(SHARDS).is_dir()
}

/// Fails if a study has shards whose rows are not merged.
///
/// # Errors
/// [`StudyError::Unmerged`], or the folder cannot be read.
pub fn check_merged(study: &Path) -> Result<(), StudyError> {
    Parts::of(study).check_merged()
}

/// The shards of one study.
pub(super) struct Parts {
    folder: PathBuf,
}

/// One shard and its folder.
pub(super) struct Part {
    /// The shard, from the folder's name.
    pub shard: Shard,
    pub folder: PathBuf,
}

impl Part {
    /// Path of the shard's rows.
    pub fn rows(&self) -> PathBuf {
        self.folder.join("rows.csv")
    }

    pub fn has_rows(&self) -> bool {
        self.rows().exists()
    }
}

impl Parts {
    /// The shards in a study's folder.
    pub fn of(study: &Path) -> Self {
        Self { folder: study.join(SHARDS) }
    }

    /// Folder of one shard.
    pub fn folder_of(&self, shard: Shard) -> PathBuf {
        self.folder.join(shard.folder_name())
    }

    /// Lists the shards that have rows, in the order of their numbers.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn with_rows(&self) -> Result<Vec<Part>, StudyError> {
        let mut parts = self.all()?;
        parts.retain(Part::has_rows);
        Ok(parts)
    }

    /// Lists the shards that were started, in the order of their numbers.
    ///
    /// # Errors
    /// The folder cannot be read.
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

    /// Fails if there are rows that are not merged into the study's.
    ///
    /// # Errors
    /// [`StudyError::Unmerged`], or the folder cannot be read.
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

    /// Removes a locked shard whose rows, with this SHA-256, were merged. A shard whose rows have changed since then
    /// stays.
    ///
    /// # Errors
    /// A file cannot be removed.
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

    /// Removes the remains of shards that have no rows and no running process, and the common files once no shard is
    /// left.
    ///
    /// # Errors
    /// A file cannot be removed.
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

    /// Stores the order of the study's cells, if it is missing or differs.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_order(&self, order: &[String]) -> Result<(), StudyError> {
        let path = self.folder.join(CELLS);
        let text: String = order.iter().flat_map(|cell| [cell.as_str(), "\n"]).collect();
        if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        Ok(write_whole(&path, text.as_bytes()).map_err(|e| FileError::write(&path, e))?)
    }

    /// Reads the order of the study's cells; empty if it was not stored.
    pub fn order(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join(CELLS)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Removes an existing folder, unless it has contents, for example because another process has started to work in it.
fn remove_empty(folder: &Path) -> Result<(), StudyError> {
    match disk::remove_folder(folder) {
        Err(e) if !matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
            Err(FileError::write(folder, e).into())
        }
        _ => Ok(()),
    }
}
