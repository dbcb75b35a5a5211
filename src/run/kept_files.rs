//! Hashes of the files that a run keeps, in its manifest, so that an edit is detected.

use std::path::Path;

use toml::{Table, Value};

use super::error::RunError;
use super::files::EVALUATIONS;
use super::manifest::{MANIFEST, Manifest};
use super::series::CURVE;
use crate::system::{FileError, sha256_of_file};

/// Key of the table of SHA-256 digests; missing while the run goes on, because the files still grow.
const HASHES: &str = "files_sha256";

/// Files whose SHA-256 a manifest may contain.
pub(crate) const KEPT: [&str; 2] = [CURVE, EVALUATIONS];

/// Adds the SHA-256 of `file`, one of [`KEPT`] in `folder`, to `manifest`. The file must be final.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn note(manifest: &mut Manifest, folder: &Path, file: &str) -> Result<(), FileError> {
    let path = folder.join(file);
    let hash = sha256_of_file(&path).map_err(|e| FileError::read(&path, e))?;
    let hashes = manifest.more.entry(HASHES).or_insert_with(|| Table::new().into());
    if let Value::Table(hashes) = hashes {
        hashes.insert(file.to_owned(), hash.into());
    }
    Ok(())
}

/// [`note`] for the manifest in `folder`, which is written only if it changes.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn note_there(folder: &Path, file: &str) -> Result<(), RunError> {
    let path = folder.join(MANIFEST);
    let there = Manifest::read(&path)?;
    let mut manifest = there.clone();
    note(&mut manifest, folder, file)?;
    if manifest == there { Ok(()) } else { manifest.write(&path) }
}

/// Removes the SHA-256 digests, because the files are about to grow.
pub(crate) fn forget(manifest: &mut Manifest) {
    manifest.more.remove(HASHES);
}

/// Returns a file's SHA-256 in the manifest; `None` in older manifests, and while the run goes on.
pub(crate) fn told<'m>(manifest: &'m Manifest, file: &str) -> Option<&'m str> {
    manifest.table(HASHES)?.get(file)?.as_str()
}

/// Returns `true` if a file in `folder` has the SHA-256 in the manifest, or if the manifest has none.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn is_as_told(
    manifest: &Manifest,
    folder: &Path,
    file: &str,
) -> Result<bool, FileError> {
    let Some(told) = told(manifest, file) else { return Ok(true) };
    let path = folder.join(file);
    Ok(sha256_of_file(&path).map_err(|e| FileError::read(&path, e))? == told)
}

/// Checks those kept files of the run that exist in `folder` against the SHA-256 in its manifest.
///
/// # Errors
/// A file that has changed since the run ended, or that cannot be read.
pub(crate) fn check(manifest: &Manifest, folder: &Path) -> Result<(), RunError> {
    for file in KEPT.into_iter().filter(|file| folder.join(file).exists()) {
        if !is_as_told(manifest, folder, file)? {
            return Err(RunError::unusable(
                &folder.join(file),
                "the file has changed since the run wrote it (its SHA-256 differs from files_sha256 in \
                 manifest.toml); restore it, or train the run again",
            ));
        }
    }
    Ok(())
}
