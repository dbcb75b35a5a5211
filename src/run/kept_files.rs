//! Hashes of the files that a run keeps, in its manifest, so that an edit is detected.

use std::path::Path;

use toml::{Table, Value};

use super::error::RunError;
use super::files::EVALUATIONS;
use super::manifest::{MANIFEST, Manifest};
use super::series::CURVE;
use crate::system::{FileError, sha256_of_file};

/// The SHA-256 of each of a run's files that are kept; none while the run is under way and they grow.
const HASHES: &str = "files_sha256";

/// The files whose hashes a manifest may tell.
pub(crate) const KEPT: [&str; 2] = [CURVE, EVALUATIONS];

/// Notes in `manifest` what a file of [`KEPT`] of the run in `folder` hashes to, once it is as it stays.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn note(manifest: &mut Manifest, folder: &Path, file: &str) -> Result<(), FileError> {
    let path = folder.join(file);
    let hash = sha256_of_file(&path).map_err(|e| FileError::read(&path, e))?;
    let hashes = manifest.more.entry(HASHES).or_insert_with(|| Table::new().into());
    if let Value::Table(hashes) = hashes {
        hashes.insert(file.to_owned(), hash.into());
    }
    Ok(())
}

/// [`note`] in the manifest in `folder`, which is written where that is new to it.
///
/// # Errors
/// A file that cannot be read or written.
pub(crate) fn note_there(folder: &Path, file: &str) -> Result<(), RunError> {
    let path = folder.join(MANIFEST);
    let there = Manifest::read(&path)?;
    let mut manifest = there.clone();
    note(&mut manifest, folder, file)?;
    if manifest == there { Ok(()) } else { manifest.write(&path) }
}

/// Takes away what is told of files that are about to grow.
pub(crate) fn forget(manifest: &mut Manifest) {
    manifest.more.remove(HASHES);
}

/// What a manifest tells that a file hashes to; none of before such hashes, or while the run is under way.
pub(crate) fn told<'m>(manifest: &'m Manifest, file: &str) -> Option<&'m str> {
    manifest.more.get(HASHES)?.get(file)?.as_str()
}

/// Whether a file of the run in `folder` is the one that its manifest tells of, as far as it does.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn is_as_told(
    manifest: &Manifest,
    folder: &Path,
    file: &str,
) -> Result<bool, FileError> {
    let Some(told) = told(manifest, file) else { return Ok(true) };
    let path = folder.join(file);
    Ok(sha256_of_file(&path).map_err(|e| FileError::read(&path, e))? == told)
}

/// Holds the files of the run in `folder`, if they are there, to what its manifest tells of them.
///
/// # Errors
/// [`RunError::Altered`], or a file that cannot be read.
pub(crate) fn check(manifest: &Manifest, folder: &Path) -> Result<(), RunError> {
    for file in KEPT.into_iter().filter(|file| folder.join(file).exists()) {
        if !is_as_told(manifest, folder, file)? {
            return Err(RunError::Altered(folder.join(file)));
        }
    }
    Ok(())
}
