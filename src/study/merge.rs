//! Merges the rows of a study's shards into one file.
//!
//! Rows are copied as text, so that no digit changes. [`study_manifest`](super::study_manifest) describes the order in
//! which files are written; a shard's files are removed last. A merge that was killed at any time can be repeated,
//! because duplicate rows are recognised as equal.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::definition::StudyDefinition;
use super::parts::{Part, Parts, SHARD, has_parts};
use super::rows_file::{CellRows, Ending, RowsFile, rows_of_lines};
use super::set_aside::{SET_ASIDE, set_aside};
use super::study_manifest::StudyManifest;
use super::{StudyError, header, parquet};
use crate::experiment::Kind;
use crate::record::{Column, to_csv};
use crate::run::manifest::{MANIFEST, Manifest};
use crate::system::{FileError, disk, lock, lock_now, sha256_of, write_whole_with};

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
/// [`StudyError::Conflict`] if two files have different numbers for a cell; nothing is written then. Files that cannot
/// be read or written, or another process that works on the study.
pub fn merge(folder: &Path) -> Result<Option<Merged>, StudyError> {
    let parts = Parts::of(folder);
    if !has_parts(folder) {
        return Ok(None);
    }
    let _lock = lock(folder)?;
    let there = parts.with_rows()?;
    let Some(first) = there.first() else {
        // Leftovers of a merge that ended after it had written the study's rows.
        parts.tidy()?;
        return Ok(None);
    };
    let columns = kind_of(&first.folder)?.columns();
    let own = folder.join("rows.csv");
    let has_own = own.exists();
    let of_parts = there.iter().map(Part::rows);
    let paths: Vec<PathBuf> = has_own.then(|| own.clone()).into_iter().chain(of_parts).collect();
    let files: Vec<RowsFile> = paths
        .into_par_iter()
        .map(|path| RowsFile::read(path, &columns))
        .collect::<Result<_, StudyError>>()?;
    let joined = Joined::of(&files, &columns, has_own);
    joined.refuse_conflicts(folder)?;

    set_aside_of_parts(folder, &there, &columns)?;
    let mut aside: String = joined.replaced.iter().flat_map(|of| of.lines()).collect();
    aside.extend(files.iter().map(RowsFile::damaged));
    if !aside.is_empty() {
        set_aside(folder, &columns, aside.as_bytes())?;
    }

    let kept = joined.in_order(&parts.order());
    let lines = || kept.iter().flat_map(|of| of.lines());
    let head = to_csv(&columns, std::iter::empty()).map_err(|e| FileError::write(&own, e))?;
    let hash = sha256_of(std::iter::once(head.as_slice()).chain(lines().map(str::as_bytes)));
    let before = files.first().filter(|_| has_own).map(|file| file.sha256.as_str());
    let came = joined.cells_by_file();
    let came = &came[usize::from(has_own)..];
    let mut manifest = manifest(folder, &there, came, before)?;
    manifest.announce(&hash, before)?;
    if before != Some(hash.as_str()) {
        let written = write_whole_with(&own, |file| {
            file.write_all(&head)?;
            lines().try_for_each(|line| file.write_all(line.as_bytes()))
        });
        written.map_err(|e| FileError::write(&own, e))?;
    }
    parquet::write(folder, &columns, rows_of_lines(lines()))?;
    manifest.end(&hash)?;

    let mut merged = Merged {
        parts: there.len(),
        cells: came.iter().sum(),
        rows: kept.iter().map(|of| of.cell.count()).sum(),
        twice: joined.twice,
        at_work: Vec::new(),
    };
    for (part, file) in there.iter().zip(&files[usize::from(has_own)..]) {
        match lock_now(&part.folder) {
            Err(FileError::Busy { by, .. }) => {
                merged.at_work.push(format!("{} ({by})", part.shard))
            }
            lock => parts.take_away(part, lock?, &file.sha256)?,
        }
    }
    parts.tidy()?;
    Ok(Some(merged))
}

/// Reads the kind of a shard's rows from its manifest.
pub(super) fn kind_of(part: &Path) -> Result<Kind, StudyError> {
    let manifest = Manifest::read(&part.join(MANIFEST))?;
    let preset = manifest.text("preset").parse().unwrap_or_default();
    let path = Path::new(manifest.text("definition_file"));
    let definition =
        StudyDefinition::of_rows(path, manifest.text("definition").to_owned(), preset)?;
    Ok(definition.work.kind())
}

/// Appends the superseded rows of shards to those of the study, before the shards' files are removed.
fn set_aside_of_parts(folder: &Path, parts: &[Part], columns: &[Column]) -> Result<(), StudyError> {
    for part in parts {
        let path = part.folder.join(SET_ASIDE);
        if !path.exists() {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|e| FileError::read(&path, e))?;
        let text = header::brought_up_to_date(&text, columns)
            .map_err(|why| StudyError::Rows { path: path.clone(), why })?;
        let lines = text.split_once('\n').map_or("", |(_, lines)| lines);
        set_aside(folder, columns, lines.as_bytes())?;
        disk::remove_file(&path).map_err(|e| FileError::write(&path, e))?;
    }
    Ok(())
}

/// Builds the study's manifest: that of the latest shard, with the total time and an entry per shard that contributed
/// cells.
fn manifest(
    folder: &Path,
    parts: &[Part],
    came: &[usize],
    before: Option<&str>,
) -> Result<StudyManifest, StudyError> {
    let manifests: Vec<Manifest> = parts
        .iter()
        .map(|part| Manifest::read(&part.folder.join(MANIFEST)))
        .collect::<Result<_, _>>()?;
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
struct Joined<'f> {
    columns: &'f [Column],
    /// Whether the first file is the study's own.
    has_own: bool,
    place: HashMap<&'f str, usize>,
    kept: Vec<Of<'f>>,
    /// Number of cells that two files have with equal numbers.
    twice: usize,
    /// The study's own rows that newer rows of a shard replace.
    replaced: Vec<Of<'f>>,
    /// Cells for which two files have different numbers, with the rows of both.
    conflicts: Vec<[Of<'f>; 2]>,
    files: usize,
}

/// The rows of a cell in one file.
#[derive(Clone, Copy)]
struct Of<'f> {
    at: usize,
    file: &'f RowsFile,
    cell: &'f CellRows,
}

impl<'f> Of<'f> {
    fn lines(self) -> impl Iterator<Item = &'f str> {
        self.file.lines(self.cell)
    }
}

impl<'f> Joined<'f> {
    fn of(files: &'f [RowsFile], columns: &'f [Column], has_own: bool) -> Self {
        let cells = files.iter().map(|file| file.cells.len()).sum();
        let mut joined = Self {
            columns,
            has_own,
            place: HashMap::with_capacity(cells),
            kept: Vec::with_capacity(cells),
            twice: 0,
            replaced: Vec::new(),
            conflicts: Vec::new(),
            files: files.len(),
        };
        for (at, file) in files.iter().enumerate() {
            file.cells.iter().for_each(|cell| joined.add(Of { at, file, cell }));
        }
        joined
    }

    fn add(&mut self, new: Of<'f>) {
        let at = match self.place.entry(&new.cell.key) {
            Entry::Vacant(place) => {
                place.insert(self.kept.len());
                self.kept.push(new);
                return;
            }
            Entry::Occupied(at) => *at.get(),
        };
        let old = self.kept[at];
        let is_own = self.has_own && old.at == 0;
        match (old.cell.ending, new.cell.ending) {
            (Ending::Whole, Ending::Whole) => {
                let [before, now] = [old, new].map(|of| self.settings(of));
                if is_own && before != now {
                    self.replaced.push(old);
                    self.kept[at] = new;
                } else if before == now && self.says_the_same(old, new) {
                    self.twice += 1;
                } else {
                    self.conflicts.push([old, new]);
                }
            }
            // The better result is kept, and of two equal ones the later; a shard's is later than the study's own.
            (before, now) if now >= before => self.kept[at] = new,
            _ => {}
        }
    }

    fn settings(&self, of: Of<'f>) -> Option<String> {
        of.file.rows(of.cell, self.columns).next().map(|row| row.settings().to_owned())
    }

    /// Whether two measurements of a cell are equal except for times.
    fn says_the_same(&self, one: Of<'f>, other: Of<'f>) -> bool {
        if one.lines().eq(other.lines()) {
            return true;
        }
        let is_time = |column: &Column| column.unit == Some("s");
        let [one, other]: [Vec<_>; 2] =
            [one, other].map(|of| of.file.rows(of.cell, self.columns).collect());
        one.len() == other.len()
            && one.iter().zip(&other).all(|(one, other)| {
                let fields = self.columns.iter().zip(one.fields().zip(other.fields()));
                fields.filter(|(column, _)| !is_time(column)).all(|(_, (one, other))| one == other)
            })
    }

    fn refuse_conflicts(&self, folder: &Path) -> Result<(), StudyError> {
        let Some([old, new]) = self.conflicts.first() else { return Ok(()) };
        let named = self.conflicts.iter().take(NAMED).map(|[old, _]| &*old.cell.key);
        let mut cells: Vec<&str> = named.collect();
        if self.conflicts.len() > NAMED {
            cells.push("…");
        }
        Err(StudyError::Conflict {
            study: folder.to_owned(),
            cells: cells.join(", "),
            count: self.conflicts.len(),
            files: [old, new].map(|of| of.file.path.clone()),
        })
    }

    /// Returns the rows to keep in the order of the study's cells; unknown cells come last.
    fn in_order(&self, order: &[String]) -> Vec<Of<'f>> {
        let place: HashMap<&str, usize> =
            order.iter().enumerate().map(|(at, key)| (key.as_str(), at)).collect();
        let mut kept = self.kept.clone();
        kept.sort_by_key(|of| place.get(&*of.cell.key).copied().unwrap_or(usize::MAX));
        kept
    }

    /// Returns the number of kept cells per file.
    fn cells_by_file(&self) -> Vec<usize> {
        let mut cells = vec![0; self.files];
        self.kept.iter().for_each(|of| cells[of.at] += 1);
        cells
    }
}
