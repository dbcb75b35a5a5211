//! Folders that one process at a time writes to.

use std::fs::TryLockError;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::disk::{self, File, make_folders};
use super::error::FileError;
use super::{aside, machine};

/// The file in a folder whose lock is the folder's, and which says who holds it.
const LOCK: &str = ".lock";
/// How long a lock is waited for. The system takes one from a killed process when what that was writing is on the disk,
/// and from a program that it was starting when that runs.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// A folder for this process alone, until this is dropped or the process ends, however that ends.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    /// None where the file system has no locks.
    file: Option<File>,
}

impl Lock {
    /// Whether other processes are kept out: not where the file system has no locks, as NFS and Lustre can be mounted.
    pub fn excludes_others(&self) -> bool {
        self.file.is_some()
    }

    /// Takes the lock's file away, before its folder goes. Who waits for it begins again with a folder of their own.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn remove(self) -> Result<(), FileError> {
        match disk::remove_file(&self.path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(FileError::write(&self.path, e)),
            _ => Ok(()),
        }
    }
}

/// Takes a folder, which is made where it is missing, for this process alone. One that is held is waited for, for two
/// seconds.
///
/// # Errors
/// A folder that cannot be made or written, or [`FileError::Busy`].
pub fn lock(folder: &Path) -> Result<Lock, FileError> {
    lock_within(folder, PATIENCE)
}

/// [`lock`] without waiting.
///
/// # Errors
/// As there.
pub(crate) fn lock_now(folder: &Path) -> Result<Lock, FileError> {
    lock_within(folder, Duration::ZERO)
}

/// Who holds a folder, in words; none where nobody does.
pub(crate) fn holder_of(folder: &Path) -> Option<String> {
    let path = folder.join(LOCK);
    let file = std::fs::File::open(&path).ok()?;
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_held.then(|| written_in(&path))
}

fn lock_within(folder: &Path, patience: Duration) -> Result<Lock, FileError> {
    let path = folder.join(LOCK);
    let began = Instant::now();
    loop {
        make_folders(folder).map_err(|e| FileError::write(folder, e))?;
        let mut file = match opened(&path) {
            // Another process took the folder away just now.
            Err(e) if e.kind() == ErrorKind::NotFound && !folder.is_dir() => continue,
            file => file.map_err(|e| FileError::write(&path, e))?,
        };
        match file.try_lock() {
            // It was taken away before the lock was there.
            Ok(()) if !file.is_named() => {}
            Ok(()) => {
                // A full disk keeps nobody from work that fits.
                let _ = file.set_length(0).and_then(|()| file.write_all(here().as_bytes()));
                // Whoever had it before may have been killed after this process wrote here first.
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

/// This process, as it stands in the file for others.
fn here() -> String {
    format!("process {} on {}", std::process::id(), machine::name())
}

fn written_in(path: &Path) -> String {
    let words = std::fs::read_to_string(path).unwrap_or_default();
    if words.is_empty() { "another process".to_owned() } else { words }
}

/// The file as it stands: whoever waits reads in it who holds it.
fn opened(path: &Path) -> io::Result<File> {
    let is = |error: &io::Error, kind| error.kind() == kind;
    match File::open(path) {
        Err(e) if is(&e, ErrorKind::NotFound) => match File::create_new(path) {
            // Another process made it meanwhile.
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
        assert_eq!(holder_of(folder.path()), Some(by));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                sleep(PATIENCE / 10);
                drop(held);
            });
            assert!(lock(folder.path()).is_ok(), "it was given up soon");
        });
        assert_eq!(holder_of(folder.path()), None);
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
