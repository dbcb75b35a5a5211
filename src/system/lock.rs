//! Folders that one process at a time writes to.

use std::fs::TryLockError;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::aside;
use super::claim::Claim;
use super::disk::{File, make_folders};
use super::error::FileError;
use super::holder::Holder;
use super::machine;

/// How long a lock is waited for whose holder is at work: a program that is being started holds the locks of whoever starts
/// it until it runs, also where that one has given them up meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long where its holder was killed: the system takes a lock from it when what it was writing is on the disk, and from
/// a program that it was starting when that runs.
const PATIENCE_WITH_THE_KILLED: Duration = Duration::from_secs(60);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// A folder, as long as this lives for this process alone.
#[derive(Debug)]
pub struct Lock {
    _held: Held,
}

#[derive(Debug)]
enum Held {
    /// By a lock of the system's, which ends with the process however that ends.
    Locked { _file: File },
    /// By a claim, where the file system has no locks.
    Claimed { _claim: Claim },
}

/// Takes a folder, which is made where it is missing, for this process alone, as long as what is returned lives.
///
/// Where the file system refuses locks, as some servers of NFS do, a file in the folder says who has it, as in that of a
/// study's part.
///
/// # Errors
/// A folder that cannot be made or written, or another process at work in it.
pub fn lock(folder: &Path) -> Result<Lock, FileError> {
    lock_by(folder, File::try_lock)
}

/// [`lock`] with what asks the system for a lock.
fn lock_by(
    folder: &Path,
    try_lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<Lock, FileError> {
    make_folders(folder).map_err(|e| FileError::write(folder, e))?;
    let path = folder.join(".lock");
    let mut file = opened(&path).map_err(|e| FileError::write(&path, e))?;
    let began = Instant::now();
    loop {
        match try_lock(&file) {
            Ok(()) => break,
            Err(TryLockError::Error(e)) if machine::has_no_locks(&e) => {
                let claim = Claim::take(folder)?;
                return Ok(Lock { _held: Held::Claimed { _claim: claim } });
            }
            Err(TryLockError::Error(e)) => return Err(FileError::write(&path, e)),
            Err(TryLockError::WouldBlock) => {
                let words = std::fs::read_to_string(&path).unwrap_or_default();
                let is_ending = Holder::read(&words).is_ending();
                let patience = if is_ending { PATIENCE_WITH_THE_KILLED } else { PATIENCE };
                if began.elapsed() >= patience {
                    return Err(FileError::Busy(folder.to_owned()));
                }
                sleep(PAUSE);
            }
        }
    }
    // To a process that the server refused one it may grant the next.
    if let Some(by) = Claim::holder_of(folder) {
        return Err(FileError::Held { folder: folder.to_owned(), by });
    }
    // Who holds it is told for whoever waits; a full disk keeps nobody from work that fits.
    let _ = file.set_length(0).and_then(|()| file.write_all(Holder::here().written().as_bytes()));
    // Whoever had it before may have been killed after this process wrote here first.
    aside::clear(folder);
    Ok(Lock { _held: Held::Locked { _file: file } })
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
        assert!(matches!(lock(folder.path()), Err(FileError::Busy(_))), "it is held all the time");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                sleep(PATIENCE / 5);
                drop(held);
            });
            assert!(lock(folder.path()).is_ok(), "it was given up soon");
        });
    }

    /// As a process that was killed while it started another, which has not come to run: what it held is held on for a while.
    #[cfg(unix)]
    #[test]
    fn who_was_killed_is_waited_for_longer() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let killed = Holder::here().written();
        let here = format!("pid={} ", std::process::id());
        let killed = killed.replace(&here, &format!("pid={} ", child.id()));
        let held = lock(folder.path()).unwrap();
        std::fs::write(folder.path().join(".lock"), killed).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                sleep(2 * PATIENCE);
                drop(held);
            });
            assert!(lock(folder.path()).is_ok(), "its lock went");
        });
    }

    /// As NFS answers whose server has no locks, and others with a file system that has none.
    #[cfg(unix)]
    #[test]
    fn where_there_are_no_locks_a_folder_is_claimed() {
        use rustix::io::Errno;

        for errno in [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS] {
            let refuses = |_: &File| Err(TryLockError::Error(errno.into()));
            let folder = tempfile::tempdir().unwrap();
            let held = lock_by(folder.path(), refuses).unwrap();
            // Nobody else has it, with locks or without.
            for other in [lock_by(folder.path(), refuses), lock(folder.path())] {
                let error = other.unwrap_err();
                assert!(matches!(error, FileError::Held { .. }), "{errno}: {error}");
            }
            drop(held);
            drop(lock_by(folder.path(), refuses).unwrap());
            drop(lock(folder.path()).unwrap());
        }
        let broken = |_: &File| Err(TryLockError::Error(Errno::IO.into()));
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(lock_by(folder.path(), broken), Err(FileError::Write { .. })));
    }
}
