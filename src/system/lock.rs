//! Folders that one process at a time writes to.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::error::FileError;

/// Takes a folder, which is made where it is missing, for this process alone, as long as the file returned lives.
///
/// # Errors
/// A folder that cannot be made or written, or another process at work in it.
pub(crate) fn lock(folder: &Path) -> Result<File, FileError> {
    std::fs::create_dir_all(folder).map_err(|e| FileError::write(folder, e))?;
    let path = folder.join(".lock");
    let lock = File::create(&path).map_err(|e| FileError::write(&path, e))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(FileError::Busy(folder.to_owned())),
        Err(TryLockError::Error(e)) => Err(FileError::write(&path, e)),
    }
}
