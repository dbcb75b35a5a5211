//! Free space of a disk.

use std::path::Path;

use super::memory::{NoRoom, in_words};

/// Checks that the disk of `folder`, which need not exist yet, has `needed` bytes free.
///
/// # Errors
/// The disk has less free space. If the free space is unknown, the check passes.
pub fn check_disk(folder: &Path, needed: f64) -> Result<(), NoRoom> {
    match free_bytes(folder) {
        Some(free) if needed > free => {
            Err(NoRoom(format!("{} of disk ({} free)", in_words(needed), in_words(free))))
        }
        _ => Ok(()),
    }
}

/// Bytes free for users other than root on the disk of `folder`, or of its nearest parent that exists.
fn free_bytes(folder: &Path) -> Option<f64> {
    // A bare file name has an empty parent, which `absolute` refuses.
    let folder = std::path::absolute(Path::new(".").join(folder)).ok()?;
    let found = folder.ancestors().find_map(|there| rustix::fs::statvfs(there).ok())?;
    Some(found.f_bavail as f64 * found.f_frsize as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_disk_has_is_refused_in_a_folder_to_be_made_too() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path();
        for place in [there.to_owned(), there.join("not/there/yet"), "".into()] {
            assert_eq!(check_disk(&place, 1.0), Ok(()));
            let error = check_disk(&place, 1e18).unwrap_err().to_string();
            assert!(error.starts_with("931322574.6 GiB of disk ("), "{error}");
        }
    }
}
