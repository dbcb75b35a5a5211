//! Operations on the names of files and folders: create, rename, remove.

use std::io;
use std::path::Path;

use super::watch::{Operation, watched};

/// Renames a file or folder, and replaces a file of the new name. A power failure may undo this until [the folder is
/// synced](sync_folder).
///
/// # Errors
/// I/O errors.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    watched(Operation::Rename { from, to }, || std::fs::rename(from, to))
}

/// Removes a file. A power failure may undo this until [the folder is synced](sync_folder).
///
/// # Errors
/// I/O errors.
pub fn remove_file(path: &Path) -> io::Result<()> {
    watched(Operation::RemoveFile(path), || std::fs::remove_file(path))
}

/// Removes an empty folder.
///
/// # Errors
/// I/O errors.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    watched(Operation::RemoveFolder(path), || std::fs::remove_dir(path))
}

/// Removes a folder and its contents.
///
/// # Errors
/// I/O errors; entries that were not removed yet stay.
pub fn remove_all(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => remove_all(&entry.path())?,
            false => remove_file(&entry.path())?,
        }
    }
    remove_folder(folder)
}

/// Creates a folder and its missing parents. Each is synced to the disk before the next is created.
///
/// # Errors
/// I/O errors.
pub fn make_folders(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let above = folder_of(path);
    make_folders(above)?;
    match watched(Operation::MakeFolder(path), || std::fs::create_dir(path)) {
        // Another process created it meanwhile.
        Err(_) if path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(above),
    }
}

/// Returns the parent folder of a path, `.` if the path has none.
pub(in crate::system) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs a folder: returns once the names created, renamed and removed in it are on the disk itself.
///
/// # Errors
/// I/O errors, except where the system cannot sync folders, or not those without read permission.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    watched(Operation::SyncFolder(folder), || match synced(folder) {
        Err(error) if cannot_be(&error) => Ok(()),
        done => done,
    })
}

#[cfg(unix)]
fn synced(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

/// Other systems cannot open a folder as a file, so there is nothing to sync.
#[cfg(not(unix))]
fn synced(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns `true` for errors that mean that folders cannot be synced, as on some network file systems.
fn cannot_be(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_and_go_with_what_is_in_them() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("a");
        let deep = top.join("b").join("c");
        make_folders(&deep).unwrap();
        make_folders(&deep).unwrap();
        std::fs::write(deep.join("file"), "one").unwrap();
        std::fs::write(top.join("file"), "two").unwrap();
        assert!(make_folders(&top.join("file").join("d")).is_err(), "a file is no folder");
        sync_folder(&deep).unwrap();
        assert!(sync_folder(&place.path().join("none")).is_err());
        remove_all(&top).unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
