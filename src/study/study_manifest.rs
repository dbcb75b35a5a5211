//! The manifest of a study, and the order in which it is written with the rows.
//!
//! A sweep may end at any moment: killed, disk full, power failure. Each file is written under a temporary name and
//! renamed, so it is never half written. The files are written in this order:
//!
//! 1. `rows-set-aside.csv`, if measured rows are replaced: they then exist twice rather than not at all;
//! 2. `manifest.toml`, with the hash of the new rows and the hash of the existing rows;
//! 3. `rows.csv`;
//! 4. 1 to 3 again for each further cell, and `rows.parquet` when no cell is left or the sweep was stopped;
//! 5. `manifest.toml`, with the hash of the rows only.
//!
//! At any time the rows have one of the two hashes in the manifest, so they are recognised as measured. After 2 it is
//! the old hash, after 3 and 4 the new one. (Before the first cell there are no rows, and a new manifest begins.) If 4
//! or 5 is missing, the Parquet file is missing or differs, or the manifest still has the old hash. The next sweep
//! completes both, even if no cell is left. A manifest that matches neither hash means that someone removed or replaced
//! a file. The rows are then accepted as they are, and the manifest notes what is unknown about them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use toml::Table;

use super::StudyError;
use crate::run::RunError;
use crate::run::manifest::{MANIFEST, Manifest};
use crate::system::{FileError, sha256_of_file};

/// Key of the SHA-256 of `rows.csv`.
pub(super) const ROWS_HASH: &str = "rows_sha256";
/// Key of the SHA-256 of `rows.csv` before the latest write; removed when a sweep ends.
const ROWS_HASH_BEFORE: &str = "rows_sha256_before";

/// A study's manifest during a sweep or a merge.
pub(super) struct StudyManifest {
    path: PathBuf,
    manifest: Manifest,
    /// Seconds of work of earlier sweeps.
    earlier_s: f64,
    started: Instant,
}

impl StudyManifest {
    /// Begins the manifest of a sweep, with the entries of `manifest`. If there are rows with the hash `rows`, the
    /// manifest in `folder` is continued.
    ///
    /// # Errors
    /// The manifest in the folder cannot be read.
    pub fn begin(
        folder: &Path,
        mut manifest: Manifest,
        rows: Option<&str>,
    ) -> Result<Self, RunError> {
        if let Some(rows) = rows {
            let before = of_rows(read(folder)?, rows, &manifest.dtype);
            manifest.started.clone_from(&before.started);
            manifest.wall_time_s = before.wall_time_s;
            manifest.go_on_with(&before);
        }
        let earlier_s = manifest.wall_time_s;
        Ok(Self { path: folder.join(MANIFEST), manifest, earlier_s, started: Instant::now() })
    }

    /// Records the hash of the rows to be written and the current hash, before `rows.csv` is written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn announce(&mut self, rows: &str, before: Option<&str>) -> Result<(), RunError> {
        // The key also exists for the first rows: only the end removes it.
        self.set(ROWS_HASH_BEFORE, before.unwrap_or_default());
        self.set(ROWS_HASH, rows);
        self.write()
    }

    /// Adds a shard's time, and an entry about its `cells` cells from its manifest.
    pub fn take_in(&mut self, part: &str, cells: usize, of: &Manifest) {
        self.earlier_s += of.wall_time_s;
        let revision = Some(of.git_revision.as_str()).filter(|revision| !revision.is_empty());
        let part = format!(
            "{part}: {cells} cells in {:.0} s on {}, revision {}",
            of.wall_time_s,
            of.about_machine(),
            revision.unwrap_or("unknown")
        );
        self.manifest.take_in(of, part);
    }

    /// Records that the sweep has ended, with the hash of its rows.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn end(mut self, rows: &str) -> Result<(), RunError> {
        self.manifest.more.remove(ROWS_HASH_BEFORE);
        self.set(ROWS_HASH, rows);
        self.write()
    }

    fn set(&mut self, key: &str, value: &str) {
        self.manifest.more.insert(key.to_owned(), value.into());
    }

    fn write(&mut self) -> Result<(), RunError> {
        self.manifest.wall_time_s = self.earlier_s;
        self.manifest.end(self.started.elapsed().as_secs_f64());
        self.manifest.write(&self.path)
    }
}

/// Returns the complete manifest for finished rows with the hash `rows` and the entries `about`, or `None` if the
/// manifest in `folder` is complete. Entries in `once` are only added if their key is missing.
///
/// # Errors
/// The manifest cannot be read.
pub(super) fn ended(
    folder: &Path,
    rows: &str,
    dtype: &str,
    about: Table,
    once: Table,
) -> Result<Option<Manifest>, RunError> {
    let there = read(folder)?;
    let mut manifest = of_rows(there.clone(), rows, dtype);
    manifest.more.extend(about);
    for (key, value) in once {
        manifest.more.entry(key).or_insert(value);
    }
    manifest.more.insert(ROWS_HASH.to_owned(), rows.into());
    manifest.more.remove(ROWS_HASH_BEFORE);
    Ok((there.as_ref() != Some(&manifest)).then_some(manifest))
}

/// Whether the manifest contains `rows` as the current or the previous hash.
pub(super) fn tells_of(manifest: &Manifest, rows: &str) -> bool {
    [ROWS_HASH, ROWS_HASH_BEFORE].iter().any(|key| manifest.text(key) == rows)
}

/// Reads the manifest in `folder`; `None` if it is missing.
fn read(folder: &Path) -> Result<Option<Manifest>, RunError> {
    let path = folder.join(MANIFEST);
    if !path.exists() {
        return Ok(None);
    }
    Manifest::read(&path).map(Some).map_err(|error| match error {
        RunError::Unusable { path, why } => RunError::Unusable {
            path,
            why: format!(
                "{why}; move it away, and the next sweep writes one that says what it lacks"
            ),
        },
        other => other,
    })
}

/// Returns the manifest of rows with the hash `rows`, with a note if it is missing or does not match.
fn of_rows(there: Option<Manifest>, rows: &str, dtype: &str) -> Manifest {
    let Some(mut manifest) = there else {
        let mut manifest = Manifest::unknown(dtype);
        manifest.note(
            "the manifest was missing, so command, date, duration and machine of the rows are unknown",
        );
        return manifest;
    };
    let told = manifest.text(ROWS_HASH).to_owned();
    // Older manifests have no hash of the rows.
    if !told.is_empty() && !tells_of(&manifest, rows) {
        manifest.note(&format!(
            "rows.csv was accepted although its hash differed from rows_sha256 {told}; how it changed is unknown"
        ));
    }
    manifest
}

/// Number of digits of a hash in messages.
const DIGITS: usize = 12;

/// Checks `rows.csv` in `folder` against the SHA-256 in its manifest. While a sweep runs, the hash before the last cell
/// is accepted too. Returns a note if the manifest is older than these hashes, so that changes cannot be detected. Rows
/// without a manifest do not belong to a study and are not checked.
///
/// # Errors
/// The rows have changed, or a file cannot be read.
pub fn check_measured(folder: &Path) -> Result<Option<String>, StudyError> {
    let path = folder.join("rows.csv");
    let hash = || sha256_of_file(&path).map_err(|e| FileError::read(&path, e));
    if !folder.join(MANIFEST).exists() {
        return Ok(None);
    }
    let mut found = hash()?;
    loop {
        let manifest = Manifest::read(&folder.join(MANIFEST))?;
        let told = manifest.text(ROWS_HASH);
        if told.is_empty() {
            return Ok(Some(format!(
                "{}: no {ROWS_HASH}, so changes of the rows cannot be detected",
                folder.join(MANIFEST).display()
            )));
        }
        if tells_of(&manifest, &found) {
            return Ok(None);
        }
        // A running sweep may have written rows between the two reads.
        let again = hash()?;
        if again == found {
            return Err(StudyError::Message(format!(
                "{}: the rows have changed since they were measured (SHA-256 {}, manifest {}); restore \
                 the file, or accept it with `{}`, which the manifest then notes",
                path.display(),
                first_digits(&found),
                first_digits(told),
                manifest.sweep_command()
            )));
        }
        found = again;
    }
}

fn first_digits(hash: &str) -> String {
    format!("{}…", hash.chars().take(DIGITS).collect::<String>())
}
