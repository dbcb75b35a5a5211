//! Temporary files: a file is written under a temporary name and then renamed to its final name.

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
/// Age after which a temporary file of another machine is removed: file locks may not work between machines.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// Temporary file that is deleted on drop, unless [`Aside::take_name`] has renamed it.
#[derive(Debug)]
pub(super) struct Aside {
    pub file: File,
    path: PathBuf,
    is_named: bool,
}

impl Aside {
    /// Creates a temporary file in an existing folder. Removes files that killed processes left there first.
    ///
    /// # Errors
    /// I/O errors.
    pub fn new(folder: &Path) -> io::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        clear_once(folder);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}{}-{number}{ENDING}", of_this_machine(), std::process::id());
            let path = folder.join(name);
            let file = match File::create_new(&path) {
                // Left by an earlier process with the same process id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // The lock marks the file as in use. Before it is taken, another process may have removed the file as
            // abandoned.
            let is_others = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !is_others && file.is_named() {
                return Ok(Self { file, path, is_named: false });
            }
        }
    }

    /// Syncs the file to the disk, renames it to `path` and syncs the folder.
    ///
    /// # Errors
    /// I/O errors. An existing file at `path` is unchanged, unless only the sync of the folder failed.
    pub fn take_name(mut self, path: &Path) -> io::Result<()> {
        // Without this, a power failure could leave an empty file at `path`.
        self.file.sync()?;
        disk::rename(&self.path, path)?;
        self.is_named = true;
        disk::sync_folder(disk::folder_of(path))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.is_named {
            // If this fails, the next process removes the file.
            let _ = disk::remove_file(&self.path);
        }
    }
}

/// Prefix of the names of this machine's temporary files.
fn of_this_machine() -> String {
    let host = machine::name();
    let of_a_name = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("{BEGINNING}{}-", host.chars().map(of_a_name).collect::<String>())
}

/// Calls [`clear`] once per folder and process.
fn clear_once(folder: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    // The set stays valid when a thread panics while it holds the lock.
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
        clear(folder);
    }
}

/// Removes the files that killed processes left in a folder. A live process holds a lock on its files. Failures to
/// remove a file are ignored.
pub(crate) fn clear(folder: &Path) {
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

    /// Files that a killed process left after this process first wrote there are removed too.
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
