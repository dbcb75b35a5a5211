//! The names of files and folders: made, changed, taken away.

use std::io;
use std::path::Path;

use super::watch::{Operation, watched};

/// Gives a file or folder another name, over a file that has it. Lost power may undo it until
/// [the folder is on the disk](sync_folder).
///
/// # Errors
/// Those of the file system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    watched(Operation::Rename { from, to }, || std::fs::rename(from, to))
}

/// Takes a file away. Lost power may bring it back until [the folder is on the disk](sync_folder).
///
/// # Errors
/// Those of the file system.
pub fn remove_file(path: &Path) -> io::Result<()> {
    watched(Operation::RemoveFile(path), || std::fs::remove_file(path))
}

/// Takes an empty folder away.
///
/// # Errors
/// Those of the file system.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    watched(Operation::RemoveFolder(path), || std::fs::remove_dir(path))
}

/// Takes a folder away, and first what is in it.
///
/// # Errors
/// Those of the file system; what was not taken away yet stays.
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

/// Makes a folder, and those above it that are missing, each on the disk before the next.
///
/// # Errors
/// Those of the file system.
pub fn make_folders(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let above = folder_of(path);
    make_folders(above)?;
    match watched(Operation::MakeFolder(path), || std::fs::create_dir(path)) {
        // Another process made it meanwhile.
        Err(_) if path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(above),
    }
}

/// The folder that a path lies in.
pub(in crate::system) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns once the names in a folder are on the disk itself: what was made, renamed and taken away there.
///
/// # Errors
/// Those of the file system, but for that it cannot do this, or not for a folder that may not be read.
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

/// A folder is no file there.
#[cfg(not(unix))]
fn synced(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether an error says that folders cannot be put on the disk, as of some network file systems.
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
