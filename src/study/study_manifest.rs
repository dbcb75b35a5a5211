//! The manifest of a study, and the order in which it is written with the rows.
//!
//! A sweep may end at any moment: killed, out of disk, out of power. Each file is whole or as it was, since each is
//! written aside and renamed, and the files are written in this order:
//!
//! 1. `rows-set-aside.csv`, where measured rows are replaced: so they are there twice rather than not at all;
//! 2. `manifest.toml`, with the hash of the rows as they are to be, and of those there before;
//! 3. `rows.csv`;
//! 4. again 1 to 3 for each further cell, and, once no cell is left or the sweep was stopped, `rows.parquet`;
//! 5. `manifest.toml`, with the hash of the rows alone.
//!
//! So between any two writes the rows have one of the two hashes that the manifest tells, and are known for those
//! that were measured: after 2 those of before, where the cell in hand is measured again (before the first cell there
//! are none, and the manifest is begun anew); after 3 and 4 the new ones. That 4 or 5 is still to come shows in a
//! Parquet file that is missing or holds other rows, and in the hash of before, which only 5 takes away; the next
//! sweep makes up for both, with no cell to measure, too. Nothing that tells of rows is thus ever older than they
//! are, but where a file was taken away or an older one put there: then the rows are taken as they stand, and the
//! manifest says what it does not know of them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use toml::Table;

use crate::run::RunError;
use crate::run::manifest::{MANIFEST, Manifest};

/// The SHA-256 of `rows.csv`.
pub(super) const ROWS_HASH: &str = "rows_sha256";
/// That of `rows.csv` as it was before the write that was begun last; there is none once a sweep has ended.
const ROWS_HASH_BEFORE: &str = "rows_sha256_before";

/// A study's manifest while rows are kept under it.
pub(super) struct StudyManifest {
    path: PathBuf,
    manifest: Manifest,
    /// Seconds that earlier sweeps were at work.
    earlier_s: f64,
    started: Instant,
}

impl StudyManifest {
    /// The manifest of a sweep that begins now; `manifest` says how. With rows in `folder` that hash to `rows`, the
    /// manifest there goes on in it.
    ///
    /// # Errors
    /// A manifest there that cannot be read.
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

    /// Says, before `rows.csv` is written, what it will hash to, and what it hashes to now.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn announce(&mut self, rows: &str, before: Option<&str>) -> Result<(), RunError> {
        // Of the first rows, too, the key is there: only the end takes it away.
        self.set(ROWS_HASH_BEFORE, before.unwrap_or_default());
        self.set(ROWS_HASH, rows);
        self.write()
    }

    /// Takes in what the manifest of a part says of so many cells.
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

    /// Says that the sweep has ended, and what its rows hash to.
    ///
    /// # Errors
    /// A file that cannot be written.
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

/// What the manifest in `folder` has to become for rows that hash to `rows`, are all there and are described by
/// `about`; none where it says all that. What is in `once` it is only told where it has nothing of that name.
///
/// # Errors
/// A manifest that cannot be read.
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

/// Whether rows that hash to `rows` are those that the manifest tells of.
pub(super) fn tells_of(manifest: &Manifest, rows: &str) -> bool {
    [ROWS_HASH, ROWS_HASH_BEFORE].iter().any(|key| manifest.text(key) == rows)
}

/// The manifest in `folder`; none where it is missing.
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

/// What is known of rows that hash to `rows`, by the manifest beside them.
fn of_rows(there: Option<Manifest>, rows: &str, dtype: &str) -> Manifest {
    let Some(mut manifest) = there else {
        let mut manifest = Manifest::unknown(dtype);
        manifest.note(
            "the manifest was missing, so command, date, duration and machine of the rows are unknown",
        );
        return manifest;
    };
    let told = manifest.text(ROWS_HASH).to_owned();
    // Manifests did not always tell the rows' hash.
    if !told.is_empty() && !tells_of(&manifest, rows) {
        manifest.note(&format!(
            "rows.csv was accepted although its hash differed from rows_sha256 {told}; how it changed is unknown"
        ));
    }
    manifest
}
