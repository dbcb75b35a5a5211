//! Check that rows are as they were measured, before anything is drawn from them.

use std::path::Path;

use super::StudyError;
use super::study_manifest::{ROWS_HASH, tells_of};
use crate::run::manifest::{MANIFEST, Manifest};
use crate::system::{FileError, sha256_of_file};

/// So many digits of a hash are told.
const DIGITS: usize = 12;

/// Holds `rows.csv` in `folder` to the hashes that the manifest beside it tells: that of the rows, and, while a sweep is at
/// work, that of those before its last cell. Returns, in words, that this cannot be known, where the manifest is of before
/// such hashes: then the rows are all that there is. Rows without a manifest are no study's, and nothing is known of them.
///
/// # Errors
/// [`StudyError::Altered`]; files that cannot be read.
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
        // A sweep at work may have written rows between the two readings.
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
