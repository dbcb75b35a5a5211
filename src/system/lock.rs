//! Folders that one process at a time writes to.

use std::fs::TryLockError;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::disk::{File, make_folders};
use super::error::FileError;

/// How long a lock that is held is waited for: a program that is being started holds the locks of whoever starts it until
/// it runs, also where that one was killed or has given them up meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Takes a folder, which is made where it is missing, for this process alone, as long as the file returned lives.
///
/// # Errors
/// A folder that cannot be made or written, or another process at work in it.
pub(crate) fn lock(folder: &Path) -> Result<File, FileError> {
    make_folders(folder).map_err(|e| FileError::write(folder, e))?;
    let path = folder.join(".lock");
    let lock = File::create(&path).map_err(|e| FileError::write(&path, e))?;
    let began = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err(FileError::Busy(folder.to_owned())),
            Err(TryLockError::Error(e)) => return Err(FileError::write(&path, e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_waited_for_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        assert!(matches!(lock(folder.path()), Err(FileError::Busy(_))), "it is held all the time");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                sleep(PATIENCE / 5);
                drop(held);
            });
            assert!(lock(folder.path()).is_ok(), "it was given up soon");
        });
    }
}
