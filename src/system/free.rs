//! Free space of a disk.

use std::path::Path;

use super::memory::in_words;

/// Files that take more room than their disk has. Its message says how much, and what there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{needed} of disk ({free} free)")]
pub struct NoDisk {
    needed: String,
    free: String,
}

/// Refuses files of so many bytes in `folder`, which need not be there yet, where its disk has less room.
///
/// # Errors
/// Less room than that.
pub fn check_disk(folder: &Path, needed: f64) -> Result<(), NoDisk> {
    match free_bytes(folder) {
        Some(free) if needed > free => {
            Err(NoDisk { needed: in_words(needed), free: in_words(free) })
        }
        _ => Ok(()),
    }
}

/// The room on the disk of a folder, or of the first around it that is there, for who is not root.
#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<f64> {
    let folder = std::path::absolute(folder).ok()?;
    let found = folder.ancestors().find_map(|there| rustix::fs::statvfs(there).ok())?;
    Some(found.f_bavail as f64 * found.f_frsize as f64)
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<f64> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_no_disk_has_is_refused_in_a_folder_to_be_made_too() {
        let folder = tempfile::tempdir().unwrap();
        for place in [folder.path().to_owned(), folder.path().join("not/there/yet")] {
            assert_eq!(check_disk(&place, 1.0), Ok(()));
            let error = check_disk(&place, 1e18).unwrap_err().to_string();
            assert!(error.starts_with("931322574.6 GiB of disk ("), "{error}");
        }
    }
}
