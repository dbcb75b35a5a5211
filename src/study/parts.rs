//! The folders of a study's shards, within the study's folder.
//!
//! ```text
//! data/STUDY/shards/3-of-8/rows.csv, manifest.toml     one part's rows, which one task writes
//! data/STUDY/shards/cells.txt                          the study's cells in order, a line each
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::StudyError;
use super::definition::StudyDefinition;
use super::shard::Shard;
use crate::experiment::Kind;
use crate::run::manifest::{MANIFEST, Manifest};
use crate::system::{
    FileError, Lock, disk, lock_now, remove_if_there, sha256_of_file, write_whole,
};

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
    Ok(Part::with_rows(study)?.len())
}

/// Whether a study has a folder of shards. It may contain no rows, for example after a merge that was killed.
pub fn has_parts(study: &Path) -> bool {
    study.join(SHARDS).is_dir()
}

/// Fails if a study has shards whose rows are not merged.
///
/// # Errors
/// There are such shards, or the folder cannot be read.
pub fn check_merged(study: &Path) -> Result<(), StudyError> {
    let parts = Part::with_rows(study)?;
    let Some(first) = parts.first() else { return Ok(()) };
    let name = study.file_name().unwrap_or_default().to_string_lossy();
    let size = first.manifest().map_or_else(|_| String::new(), |manifest| manifest.preset_flag());
    Err(StudyError::Message(format!(
        "{} has rows of {} shards that are not merged; merge them with `rank-study merge {name}{size}`",
        study.display(),
        parts.len()
    )))
}

/// One shard and its folder.
pub(super) struct Part {
    /// The shard, from the folder's name.
    pub shard: Shard,
    pub folder: PathBuf,
}

impl Part {
    /// One shard of the study in the folder `study`.
    pub fn of(study: &Path, shard: Shard) -> Self {
        Self { shard, folder: study.join(SHARDS).join(shard.folder_name()) }
    }

    /// Lists a study's shards that were started, in the order of their numbers.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all(study: &Path) -> Result<Vec<Self>, StudyError> {
        let shards = study.join(SHARDS);
        if !shards.exists() {
            return Ok(Vec::new());
        }
        let mut parts = Vec::new();
        for entry in std::fs::read_dir(&shards).map_err(|e| FileError::read(&shards, e))? {
            let folder = entry.map_err(|e| FileError::read(&shards, e))?.path();
            let name = folder.file_name().map(|name| name.to_string_lossy().replace("-of-", "/"));
            let shard = name.and_then(|name| name.parse::<Shard>().ok());
            parts.extend(shard.map(|shard| Self { shard, folder }));
        }
        parts.sort_by_key(|part| (part.shard.count(), part.shard.index()));
        Ok(parts)
    }

    /// Lists a study's shards that have rows, in the order of their numbers.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn with_rows(study: &Path) -> Result<Vec<Self>, StudyError> {
        let mut parts = Self::all(study)?;
        parts.retain(Self::has_rows);
        Ok(parts)
    }

    /// Path of the shard's rows.
    pub fn rows(&self) -> PathBuf {
        self.folder.join("rows.csv")
    }

    fn has_rows(&self) -> bool {
        self.rows().exists()
    }

    /// Reads the shard's manifest.
    ///
    /// # Errors
    /// It is missing or cannot be read.
    pub fn manifest(&self) -> Result<Manifest, StudyError> {
        Ok(Manifest::read(&self.folder.join(MANIFEST))?)
    }

    /// Reads the kind of the shard's rows from its manifest.
    ///
    /// # Errors
    /// The manifest or its definition cannot be read.
    pub fn kind(&self) -> Result<Kind, StudyError> {
        Ok(StudyDefinition::in_manifest(&self.manifest()?)?.work.kind())
    }

    /// Removes the files of a locked shard, its rows first: without them the rest counts as leftovers.
    fn remove(&self, lock: Lock) -> Result<(), StudyError> {
        [self.rows(), self.folder.join(MANIFEST)]
            .iter()
            .try_for_each(|path| remove_if_there(path))?;
        lock.remove()?;
        remove_empty(&self.folder)
    }

    /// Removes a shard whose rows, with this SHA-256, were merged. A shard whose rows have changed since then stays.
    ///
    /// # Errors
    /// [`FileError::Busy`] if a process is working on the shard, or a file cannot be removed.
    pub fn remove_merged(&self, sha256: Option<&str>) -> Result<(), StudyError> {
        let lock = lock_now(&self.folder)?;
        match sha256_of_file(&self.rows()).is_ok_and(|there| Some(&*there) == sha256) {
            true => self.remove(lock),
            false => Ok(()),
        }
    }
}

/// Removes the remains of shards that have no rows and no running process, and the common files once no shard is left.
///
/// # Errors
/// A file cannot be removed.
pub(super) fn tidy(study: &Path) -> Result<(), StudyError> {
    for part in Part::all(study)?.into_iter().filter(|part| !part.has_rows()) {
        match lock_now(&part.folder) {
            Err(FileError::Busy { .. }) => continue,
            lock => part.remove(lock?)?,
        }
    }
    let shards = study.join(SHARDS);
    let order = shards.join(CELLS);
    let mut others = std::fs::read_dir(&shards).into_iter().flatten().flatten();
    if others.all(|entry| entry.path() == order) {
        remove_if_there(&order)?;
        remove_empty(&shards)?;
    }
    Ok(())
}

/// Stores the order of the study's cells, if it is missing or differs.
///
/// # Errors
/// The file cannot be written.
pub(super) fn keep_order(study: &Path, order: &[String]) -> Result<(), StudyError> {
    let path = study.join(SHARDS).join(CELLS);
    let text: String = order.iter().flat_map(|cell| [cell.as_str(), "\n"]).collect();
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    Ok(write_whole(&path, text.as_bytes()).map_err(|e| FileError::write(&path, e))?)
}

/// Reads the order of the study's cells; empty if it was not stored.
pub(super) fn order(study: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(study.join(SHARDS).join(CELLS)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Removes a folder, unless it has contents, for example because another process has started to work in it.
fn remove_empty(folder: &Path) -> Result<(), StudyError> {
    match disk::remove_folder(folder) {
        Err(e) if !matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
            Err(FileError::write(folder, e).into())
        }
        _ => Ok(()),
    }
}
