//! A file under a name of its own, beside the one whose name it is to have.

use std::collections::BTreeSet;
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::disk::{self, File};
use super::machine;

// `.rank-study-HOST-PID-NUMBER.tmp`
const BEGINNING: &str = ".rank-study-";
const ENDING: &str = ".tmp";
/// After how long a file of another machine is nobody's: a lock may not hold between machines.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A file that goes away when it is dropped, unless it was given its name.
#[derive(Debug)]
pub(super) struct Aside {
    pub file: File,
    path: PathBuf,
    is_named: bool,
}

impl Aside {
    /// Makes one in a folder that is there. Those that killed processes left in it are taken away first.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new(folder: &Path) -> io::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        clear_once(folder);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}{}-{number}{ENDING}", of_this_machine(), std::process::id());
            let path = folder.join(name);
            let file = match File::create_new(&path) {
                // Of a process of the same number, before.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // The lock says that somebody is at work on it. Between the two lines above and below another process may
            // have taken the file for one that was left.
            let is_others = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !is_others && file.is_named() {
                return Ok(Self { file, path, is_named: false });
            }
        }
    }

    /// Gives the file its name, for good: what it holds is on the disk before, and the name after.
    ///
    /// # Errors
    /// Those of the file system: what had the name before has it still, unless only putting the name on the disk failed.
    pub fn take_name(mut self, path: &Path) -> io::Result<()> {
        // Or lost power could leave an empty file under it.
        self.file.sync()?;
        disk::rename(&self.path, path)?;
        self.is_named = true;
        disk::sync_folder(disk::folder_of(path))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.is_named {
            // One that cannot be taken away is by the next process.
            let _ = disk::remove_file(&self.path);
        }
    }
}

/// How the names of this machine's files begin.
fn of_this_machine() -> String {
    let host = machine::name();
    let of_a_name = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("{BEGINNING}{}-", host.chars().map(of_a_name).collect::<String>())
}

/// [`clear`], once in the life of a process.
fn clear_once(folder: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    // What a panicking thread left is whole.
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
        clear(folder);
    }
}

/// Takes away the files that killed processes left in a folder. Whoever is alive holds a lock on theirs. What cannot be
/// taken away does no harm.
pub(super) fn clear(folder: &Path) {
    let here = of_this_machine();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_ours = name.starts_with(BEGINNING) && name.ends_with(ENDING);
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        let age = file.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        let is_left = name.starts_with(&here) || age.is_some_and(|age| age > ABANDONED);
        if is_left && file.try_lock().is_ok() {
            let _ = disk::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_left_goes_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let here = of_this_machine();
        let held = format!("{here}1-1.tmp");
        let elsewhere = format!("{BEGINNING}elsewhere-1-1.tmp");
        let older = format!("{BEGINNING}elsewhere-1-2.tmp");
        let folder = format!("{here}1-9.tmp");
        for name in [&held, &format!("{here}1-0.tmp"), &elsewhere, &older] {
            std::fs::write(place.path().join(name), "half of it").unwrap();
        }
        for name in ["rows.csv", ".tmpAbCdEf", ".rank-study-notes"] {
            std::fs::write(place.path().join(name), "somebody's").unwrap();
        }
        std::fs::create_dir(place.path().join(&folder)).unwrap();
        let long_ago = SystemTime::now() - 2 * ABANDONED;
        let file = std::fs::File::options().write(true).open(place.path().join(&older)).unwrap();
        file.set_modified(long_ago).unwrap();
        drop(file);
        let lock = File::open(&place.path().join(&held)).unwrap();
        lock.try_lock().unwrap();

        drop(Aside::new(place.path()).unwrap());
        let mut left = [".rank-study-notes", ".tmpAbCdEf", &held, &folder, &elsewhere, "rows.csv"];
        left.sort_unstable();
        assert_eq!(names(place.path()), left);
    }

    /// Also what was left after this process wrote there first.
    #[cfg(feature = "study")]
    #[test]
    fn what_was_left_goes_when_a_folder_is_taken() {
        let place = tempfile::tempdir().unwrap();
        drop(Aside::new(place.path()).unwrap());
        let left = place.path().join(format!("{}1-0.tmp", of_this_machine()));
        std::fs::write(&left, "half of it").unwrap();
        drop(crate::system::lock(place.path()).unwrap());
        assert!(!left.exists());
    }

    #[test]
    fn one_that_gets_no_name_goes() {
        let place = tempfile::tempdir().unwrap();
        let aside = Aside::new(place.path()).unwrap();
        assert_eq!(names(place.path()).len(), 1);
        assert!(aside.take_name(&place.path().join("no").join("folder")).is_err());
        assert_eq!(names(place.path()).len(), 0);
        let aside = Aside::new(place.path()).unwrap();
        aside.take_name(&place.path().join("named")).unwrap();
        assert_eq!(names(place.path()), ["named"]);
    }
}
