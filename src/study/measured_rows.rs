//! Check that rows are as they were measured, before anything is drawn from them.

use std::path::Path;

use super::StudyError;
use super::study_manifest::{ROWS_HASH, tells_of};
use crate::run::manifest::{MANIFEST, Manifest};
use crate::system::{FileError, sha256_of_file};

/// Number of digits of a hash in messages.
const DIGITS: usize = 12;

/// Checks `rows.csv` in `folder` against the SHA-256 in its manifest. While a sweep runs, the hash before the last cell
/// is accepted too. Returns a note if the manifest is older than these hashes, so that changes cannot be detected. Rows
/// without a manifest do not belong to a study and are not checked.
///
/// # Errors
/// [`StudyError::Altered`], or a file cannot be read.
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
            return Err(StudyError::Altered {
                told: first_digits(told),
                take_in: manifest.sweep_command(),
                path,
                found: first_digits(&found),
            });
        }
        found = again;
    }
}

fn first_digits(hash: &str) -> String {
    format!("{}…", hash.chars().take(DIGITS).collect::<String>())
}
