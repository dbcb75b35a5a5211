//! Merges the rows of a study's shards into one file.
//!
//! Rows are copied as text, so that no digit changes. [`study_manifest`](super::study_manifest) describes the order in
//! which files are written; a shard's files are removed last. A merge that was killed at any time can be repeated,
//! because duplicate rows are recognised as equal.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use rayon::prelude::*;

use super::StudyError;
use super::parts::{self, Part, SHARD, has_parts};
use super::rows_file::{RowsFile, SET_ASIDE};
use super::store::{Ending, Store};
use super::study_manifest::StudyManifest;
use crate::record::{Column, Line};
use crate::run::manifest::Manifest;
use crate::system::{FileError, disk, lock};

/// Result of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Shards whose rows are now in the study's file.
    pub parts: usize,
    /// Cells that came from the shards.
    pub cells: usize,
    /// Total number of rows of the study.
    pub rows: usize,
    /// Cells that two files have with equal numbers.
    pub twice: usize,
    /// Shards that a process is still working on, and that process: their rows so far are merged, and more may follow.
    pub at_work: Vec<String>,
}

/// Maximum number of cells that an error names.
const NAMED: usize = 3;

/// Merges the rows of the shards of the study in `folder` into its own; `None` if it has no shards.
///
/// If several files have a cell, finished rows have priority over rows of a stopped training run, and these over
/// errors. Two sets of finished rows must be equal except for times. Rows of a shard with other settings replace the
/// study's own, which move to `rows-set-aside.csv`.
///
/// # Errors
/// An error if two files have different numbers for a cell; nothing is written then. Files that cannot
/// be read or written, or another process that works on the study.
pub fn merge(folder: &Path) -> Result<Option<Merged>, StudyError> {
    if !has_parts(folder) {
        return Ok(None);
    }
    let lock = lock(folder)?;
    let there = Part::with_rows(folder)?;
    let Some(first) = there.first() else {
        // Leftovers of a merge that ended after it had written the study's rows.
        parts::tidy(folder)?;
        return Ok(None);
    };
    let columns = first.kind()?.columns();
    let mut own = Store::locked(lock, folder, &columns)?;
    let shards: Vec<Store> = there
        .par_iter()
        .map(|part| Store::read(&part.folder, &columns))
        .collect::<Result<_, _>>()?;
    let Joined { kept, twice, replaced } = Joined::of(folder, &own, &shards)?;

    for part in &there {
        set_aside_of_part(part, &own)?;
    }
    let damaged = std::iter::once(&own).chain(&shards).flat_map(|store| &store.damaged);
    own.set_aside(&replaced, &damaged.cloned().collect::<Vec<_>>())?;

    let place: HashMap<String, usize> = parts::order(folder).into_iter().zip(0..).collect();
    let mut came = vec![0; 1 + shards.len()];
    kept.iter().for_each(|cell| came[cell.file] += 1);
    let mut cells: Vec<(String, Vec<Line>)> =
        kept.into_iter().map(|cell| (cell.key.to_owned(), cell.rows.to_vec())).collect();
    cells.sort_by_key(|(key, _)| place.get(key).copied().unwrap_or(usize::MAX));
    let mut manifest = manifest(folder, &there, &came[1..], own.sha256())?;
    own.put_all(cells, &mut manifest)?;
    own.write_parquet()?;
    manifest.end(own.sha256().unwrap_or_default())?;

    let mut merged = Merged {
        parts: there.len(),
        cells: came[1..].iter().sum(),
        rows: own.rows().count(),
        twice,
        at_work: Vec::new(),
    };
    for (part, store) in there.iter().zip(&shards) {
        match part.remove_merged(store.sha256()) {
            Err(StudyError::File(FileError::Busy { by, .. })) => {
                merged.at_work.push(format!("{} ({by})", part.shard));
            }
            removed => removed?,
        }
    }
    parts::tidy(folder)?;
    Ok(Some(merged))
}

/// Appends the superseded rows of a shard to those of the study, before the shard's files are removed.
fn set_aside_of_part(part: &Part, own: &Store) -> Result<(), StudyError> {
    let path = part.folder.join(SET_ASIDE);
    if !path.exists() {
        return Ok(());
    }
    let RowsFile { lines, damaged, .. } = RowsFile::read(&path, &own.columns)?;
    own.set_aside(&lines, &damaged)?;
    Ok(disk::remove_file(&path).map_err(|e| FileError::write(&path, e))?)
}

/// Builds the study's manifest: that of the latest shard, with the total time and an entry per shard that contributed
/// cells.
fn manifest(
    folder: &Path,
    parts: &[Part],
    came: &[usize],
    before: Option<&str>,
) -> Result<StudyManifest, StudyError> {
    let manifests: Vec<Manifest> = parts.iter().map(Part::manifest).collect::<Result<_, _>>()?;
    let latest = manifests.iter().max_by_key(|manifest| manifest.ended.clone());
    let mut manifest = latest.cloned().unwrap_or_default();
    manifest.more.remove(SHARD);
    manifest.go_on_with(&Manifest::default());
    let started = manifests.iter().map(|of| of.started.as_str()).filter(|at| !at.is_empty()).min();
    manifest.started = started.unwrap_or_default().to_owned();
    manifest.wall_time_s = 0.0;
    let mut manifest = StudyManifest::begin(folder, manifest, before)?;
    for ((part, of), &cells) in parts.iter().zip(&manifests).zip(came) {
        // A shard without new cells was merged earlier, for example by a merge that was killed.
        if cells > 0 {
            manifest.take_in(&part.shard.to_string(), cells, of);
        }
    }
    Ok(manifest)
}

/// The rows to keep from several files.
struct Joined<'s> {
    kept: Vec<Kept<'s>>,
    /// Number of cells that two files have with equal numbers.
    twice: usize,
    /// The study's own rows that newer rows of a shard replace.
    replaced: Vec<Line>,
}

/// The rows of a cell in one file.
#[derive(Clone, Copy)]
struct Kept<'s> {
    key: &'s str,
    rows: &'s [Line],
    ending: Ending,
    /// Number of the file: 0 for the study's own.
    file: usize,
}

impl<'s> Joined<'s> {
    /// Chooses between the rows of the study itself and those of its shards.
    fn of(folder: &Path, own: &'s Store, shards: &'s [Store]) -> Result<Self, StudyError> {
        let files: Vec<&Store> = std::iter::once(own).chain(shards).collect();
        let mut joined = Self { kept: Vec::new(), twice: 0, replaced: Vec::new() };
        let mut place: HashMap<&str, usize> = HashMap::new();
        let mut conflicts: Vec<[Kept<'_>; 2]> = Vec::new();
        for (file, store) in files.iter().enumerate() {
            for (key, rows) in &store.cells {
                let new = Kept { key, rows, ending: store.ending(rows), file };
                let old = match place.entry(key) {
                    Entry::Vacant(place) => {
                        place.insert(joined.kept.len());
                        joined.kept.push(new);
                        continue;
                    }
                    Entry::Occupied(at) => &mut joined.kept[*at.get()],
                };
                if (old.ending, new.ending) != (Ending::Whole, Ending::Whole) {
                    // The better result is kept, and of two equal ones the later; a shard's is later than the study's.
                    if new.ending >= old.ending {
                        *old = new;
                    }
                } else if old.settings() != new.settings() && old.file == 0 {
                    joined.replaced.extend_from_slice(old.rows);
                    *old = new;
                } else if old.says_the_same(&new, &own.columns) {
                    joined.twice += 1;
                } else {
                    conflicts.push([*old, new]);
                }
            }
        }
        let Some(first) = conflicts.first() else { return Ok(joined) };
        let mut cells: Vec<&str> = conflicts.iter().take(NAMED).map(|[old, _]| old.key).collect();
        if conflicts.len() > NAMED {
            cells.push("…");
        }
        let [one, other] = first.map(|of| files[of.file].path());
        Err(StudyError::Message(format!(
            "{}: {} configurations have other numbers in {} than in {} ({}); remove the folder that \
             is wrong, and merge again",
            folder.display(),
            conflicts.len(),
            other.display(),
            one.display(),
            cells.join(", ")
        )))
    }
}

impl Kept<'_> {
    fn settings(&self) -> Option<&str> {
        self.rows.first().map(Line::settings)
    }

    /// Whether two measurements of a cell are equal except for times.
    fn says_the_same(&self, other: &Self, columns: &[Column]) -> bool {
        let timeless = |row: &Line| -> Vec<String> {
            let fields = columns.iter().zip(row.fields());
            fields.filter(|(c, _)| c.unit != Some("s")).map(|(_, text)| text.to_owned()).collect()
        };
        self.rows.iter().map(timeless).eq(other.rows.iter().map(timeless))
    }
}
