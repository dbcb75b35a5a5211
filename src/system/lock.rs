//! Locks on folders that only one process at a time may write to.

use std::fs::TryLockError;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::disk::{File, make_folders};
use super::error::FileError;
use super::files::remove_if_there;
use super::{aside, machine};

/// Lock file in a folder. It contains the name of the process that holds the lock.
const LOCK: &str = ".lock";
/// How long to wait for a lock. The system releases the lock of a killed process only after that process's pending
/// writes. A child process that is being started holds the lock until it runs its own program.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Exclusive lock on a folder. It ends when this is dropped or when the process ends for any reason.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    /// `None` if the file system does not support locks.
    file: Option<File>,
}

impl Lock {
    /// Returns `false` if the file system does not support locks, which is possible with NFS and Lustre.
    pub fn excludes_others(&self) -> bool {
        self.file.is_some()
    }

    /// Removes the lock file, before its folder is removed. Processes that wait for the lock create the folder anew.
    ///
    /// # Errors
    /// I/O errors, except that the file does not exist.
    pub(crate) fn remove(self) -> Result<(), FileError> {
        remove_if_there(&self.path)
    }
}

/// Locks a folder for this process alone; creates the folder if it is missing. Waits up to two seconds for a lock that
/// another process holds.
///
/// # Errors
/// The folder cannot be created or written, or [`FileError::Busy`].
pub fn lock(folder: &Path) -> Result<Lock, FileError> {
    lock_within(folder, PATIENCE)
}

/// [`lock`] without waiting.
///
/// # Errors
/// As [`lock`].
pub(crate) fn lock_now(folder: &Path) -> Result<Lock, FileError> {
    lock_within(folder, Duration::ZERO)
}

fn lock_within(folder: &Path, patience: Duration) -> Result<Lock, FileError> {
    let path = folder.join(LOCK);
    let began = Instant::now();
    loop {
        make_folders(folder).map_err(|e| FileError::write(folder, e))?;
        let mut file = match opened(&path) {
            // Another process has just removed the folder.
            Err(e) if e.kind() == ErrorKind::NotFound && !folder.is_dir() => continue,
            file => file.map_err(|e| FileError::write(&path, e))?,
        };
        match file.try_lock() {
            // The lock file was removed before it was locked here: try again.
            Ok(()) if !file.is_named() => {}
            Ok(()) => {
                // Ignored, so that a full disk does not prevent work.
                let _ = file.set_length(0).and_then(|()| file.write_all(here().as_bytes()));
                // The previous holder may have been killed after this process first wrote to the folder.
                aside::clear(folder);
                return Ok(Lock { path, file: Some(file) });
            }
            Err(TryLockError::Error(e)) if machine::has_no_locks(&e) => {
                return Ok(Lock { path, file: None });
            }
            Err(TryLockError::Error(e)) => return Err(FileError::write(&path, e)),
            Err(TryLockError::WouldBlock) if began.elapsed() >= patience => {
                return Err(FileError::Busy { folder: folder.to_owned(), by: written_in(&path) });
            }
            Err(TryLockError::WouldBlock) => sleep(PAUSE),
        }
    }
}

/// Describes this process, for the lock file.
fn here() -> String {
    format!("process {} on {}", std::process::id(), machine::name())
}

fn written_in(path: &Path) -> String {
    let words = std::fs::read_to_string(path).unwrap_or_default();
    if words.is_empty() { "another process".to_owned() } else { words }
}

/// Opens or creates the lock file without truncating it: other processes read the holder in it.
fn opened(path: &Path) -> io::Result<File> {
    let is = |error: &io::Error, kind| error.kind() == kind;
    match File::open(path) {
        Err(e) if is(&e, ErrorKind::NotFound) => match File::create_new(path) {
            // Another process created it meanwhile.
            Err(e) if is(&e, ErrorKind::AlreadyExists) => File::open(path),
            made => made,
        },
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_waited_for_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        let Err(FileError::Busy { by, .. }) = lock_now(folder.path()) else { panic!("it is held") };
        assert!(by.contains(&std::process::id().to_string()), "{by}");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                sleep(PATIENCE / 10);
                drop(held);
            });
            assert!(lock(folder.path()).is_ok(), "it was given up soon");
        });
    }

    #[test]
    fn a_folder_that_goes_while_it_is_waited_for_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let shard = folder.path().join("1-of-2");
        let held = lock(&shard).unwrap();
        let again = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(&shard));
            sleep(4 * PAUSE);
            held.remove().unwrap();
            std::fs::remove_dir(&shard).unwrap();
            waiting.join().unwrap().unwrap()
        });
        assert!(again.excludes_others() && shard.join(LOCK).exists());
        assert!(lock_now(&shard).is_err(), "the folder that is there is held");
    }
}
