//! Folders that one process of many machines at a time writes to, where they share nothing but files.
//!
//! NFS keeps what this rests on: that a file is created by one of several who try (`O_EXCL`), that a rename is whole, and one
//! clock, the server's, which dates what any of them writes. It does not keep `flock` everywhere, so that is not asked.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, SystemTime};

use super::disk::{self, File};
use super::error::FileError;
use super::files::now_in;
use super::machine;

/// How often the holder says that it is there, ...
const BEAT: Duration = Duration::from_secs(10);
/// ... and after how long a silence it is taken for gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How long between two looks at a claim that another holds.
const PAUSE: Duration = Duration::from_millis(500);
/// The file of a claim, in the folder that is claimed.
const CLAIM: &str = "claim";

/// A folder, as long as it lives for this process alone.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    holder: Holder,
    /// Ends the beats when it is dropped.
    beats: Option<(Sender<()>, JoinHandle<()>)>,
}

/// Who holds a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Holder {
    host: String,
    pid: u32,
    /// The job of a scheduler, which it starts anew under the same number after it has ended; empty where there is none.
    job: String,
    /// What tells this claim from another of the process.
    number: String,
}

impl Claim {
    /// Takes a folder, which is made where it is missing. One that is held is waited for until its holder is gone: at once where
    /// that was this job, begun anew, or a process of this machine that is there no more, and after a minute's silence of any
    /// other.
    ///
    /// # Errors
    /// A folder that cannot be made or written, or a holder who is there.
    pub fn take(folder: &Path) -> Result<Self, FileError> {
        disk::make_folders(folder).map_err(|e| FileError::write(folder, e))?;
        let path = folder.join(CLAIM);
        let here = Holder::here();
        let mut seen: Option<SystemTime> = None;
        loop {
            match Self::create(&path, &here) {
                Ok(()) => return Ok(Self::beating(path, here)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(FileError::write(&path, e)),
            }
            let Some((holder, age, at)) = look(&path)? else { continue };
            if age > SILENCE || holder.is_gone(&here) {
                release(&path, &holder)?;
                continue;
            }
            // It has said something since it was looked at first.
            if seen.is_some_and(|first| first != at) || holder.is_alive() {
                return Err(FileError::Held { folder: folder.to_owned(), by: holder.describe() });
            }
            seen = Some(at);
            sleep(PAUSE);
        }
    }

    /// Who holds a folder, in words, and how long ago they said so; none where nobody does or they are gone.
    pub fn holder_of(folder: &Path) -> Option<String> {
        let (holder, age, _) = look(&folder.join(CLAIM)).ok()??;
        (!holder.is_gone_for(age)).then(|| holder.describe())
    }

    /// Takes away the claim of a holder who is gone, where there is one.
    ///
    /// # Errors
    /// A file that cannot be read or taken away.
    pub fn clear(folder: &Path) -> Result<(), FileError> {
        let path = folder.join(CLAIM);
        match look(&path)? {
            Some((holder, age, _)) if holder.is_gone_for(age) => release(&path, &holder),
            _ => Ok(()),
        }
    }

    /// One of several who try makes the file. Until its words are written it is nobody's in particular, who was there just now.
    fn create(path: &Path, holder: &Holder) -> std::io::Result<()> {
        let mut file = File::create_new(path)?;
        file.write_all(holder.written().as_bytes())?;
        file.sync()
    }

    fn beating(path: PathBuf, holder: Holder) -> Self {
        let (sender, receiver) = channel();
        let (place, words) = (path.clone(), holder.clone());
        let beats = std::thread::spawn(move || {
            while receiver.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                // A beat that cannot be written is one that is missing: whoever waits finds out by its silence.
                if holds(&place, &words) {
                    let _ = File::open(&place).and_then(|mut file| {
                        file.write_all(words.written().as_bytes())?;
                        file.sync()
                    });
                }
            }
        });
        Self { path, holder, beats: Some((sender, beats)) }
    }

    /// Whether the folder is still this process's: who was silent for long, as a machine that slept, may have lost it.
    ///
    /// # Errors
    /// The one who has it now.
    pub fn check(&self) -> Result<(), FileError> {
        if holds(&self.path, &self.holder) {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(&self.path).to_owned();
        let by = match look(&self.path) {
            Ok(Some((holder, ..))) => holder.describe(),
            _ => "another process, which has ended".to_owned(),
        };
        Err(FileError::Held { folder, by })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((sender, beats)) = self.beats.take() {
            drop(sender);
            let _ = beats.join();
        }
        if holds(&self.path, &self.holder) {
            let _ = disk::remove_file(&self.path);
        }
    }
}

/// Who holds a claim, how long ago they said so, and when by the file system's clock; none where it was given up meanwhile.
fn look(path: &Path) -> Result<Option<(Holder, Duration, SystemTime)>, FileError> {
    let read = |path: &Path| -> std::io::Result<(String, SystemTime)> {
        let mut file = fs::File::open(path)?;
        let mut words = String::new();
        file.read_to_string(&mut words)?;
        Ok((words, file.metadata()?.modified()?))
    };
    let (words, at) = match read(path) {
        Ok(read) => read,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(FileError::read(path, e)),
    };
    let folder = path.parent().unwrap_or(path);
    // What it is now, by the clock that dated the claim.
    let now = now_in(folder).map_err(|e| FileError::write(folder, e))?;
    let age = now.duration_since(at).unwrap_or_default();
    Ok(Some((Holder::read(&words), age, at)))
}

fn holds(path: &Path, holder: &Holder) -> bool {
    fs::read_to_string(path).is_ok_and(|words| Holder::read(&words) == *holder)
}

/// Takes away the claim of someone who is gone. Of several who try, one renames it; whoever finds that it renamed another's, as
/// one was faster and has it by now, gives that back.
fn release(path: &Path, gone: &Holder) -> Result<(), FileError> {
    let Holder { host, pid, number, .. } = Holder::here();
    let aside = path.with_extension(format!("{host}-{pid}-{number}"));
    match disk::rename(path, &aside) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        renamed => renamed.map_err(|e| FileError::write(path, e))?,
    }
    if !holds(&aside, gone) && !path.exists() {
        return disk::rename(&aside, path).map_err(|e| FileError::write(path, e));
    }
    disk::remove_file(&aside).map_err(|e| FileError::write(&aside, e))
}

impl Holder {
    fn here() -> Self {
        static CLAIMS: AtomicUsize = AtomicUsize::new(0);
        Self {
            host: machine::name().split_whitespace().collect(),
            pid: std::process::id(),
            job: std::env::var("SLURM_JOB_ID").unwrap_or_default().split_whitespace().collect(),
            number: CLAIMS.fetch_add(1, Ordering::Relaxed).to_string(),
        }
    }

    fn written(&self) -> String {
        let Self { host, pid, job, number } = self;
        format!("host={host} pid={pid} job={job} number={number}\n")
    }

    /// Words that are none, as of a file that is only just made, are of nobody in particular.
    fn read(words: &str) -> Self {
        let of = |key: &str| {
            let found =
                words.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
            found.unwrap_or_default().to_owned()
        };
        Self {
            host: of("host"),
            pid: of("pid").parse().unwrap_or(0),
            job: of("job"),
            number: of("number"),
        }
    }

    /// Whether it cannot be at work any more, by what `here` knows of it: its process is not, or was of this job, which a
    /// scheduler runs once at a time, on another machine.
    fn is_gone(&self, here: &Self) -> bool {
        let was_this_job = !self.job.is_empty() && self.job == here.job;
        (self.host == here.host && !self.is_alive()) || (was_this_job && self.host != here.host)
    }

    /// Whether it cannot be at work any more, by its silence or by what any process of this machine knows of it.
    fn is_gone_for(&self, age: Duration) -> bool {
        age > SILENCE || self.is_gone(&Self { job: String::new(), ..Self::here() })
    }

    /// Whether it is a process of this machine that is at work.
    fn is_alive(&self) -> bool {
        self.host == Self::here().host && machine::runs(self.pid)
    }

    fn describe(&self) -> String {
        match (self.host.as_str(), self.job.as_str()) {
            ("", _) => "another process".to_owned(),
            (host, "") => format!("process {} on {host}", self.pid),
            (host, job) => format!("job {job}, process {} on {host}", self.pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, words: &str, age: Duration) {
        let path = folder.join(CLAIM);
        fs::write(&path, words).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn a_folder_is_one_process_s() {
        let folder = tempfile::tempdir().unwrap();
        let held = Claim::take(folder.path()).unwrap();
        held.check().unwrap();
        assert!(Claim::holder_of(folder.path()).is_some());
        let error = Claim::take(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(Claim::holder_of(folder.path()), None);
    }

    /// At once: a process of this machine that has ended; after a silence: any of another.
    #[test]
    fn who_is_gone_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let Holder { host, .. } = Holder::here();
        let ended = format!("host={host} pid={} job= number=0\n", child.id());
        for (words, age) in [
            (ended.as_str(), Duration::ZERO),
            ("host=elsewhere pid=1 job=7 number=0\n", 2 * SILENCE),
            ("", 2 * SILENCE),
        ] {
            write(folder.path(), words, age);
            assert_eq!(Claim::holder_of(folder.path()), None, "{words}");
            Claim::clear(folder.path()).unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{words}");
            write(folder.path(), words, age);
            let taken = Claim::take(folder.path()).unwrap();
            taken.check().unwrap();
        }
    }

    #[test]
    fn who_lost_a_folder_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut held = Claim::take(folder.path()).unwrap();
        held.beats = None;
        write(folder.path(), "host=elsewhere pid=1 job=7 number=0\n", Duration::ZERO);
        let error = held.check().unwrap_err().to_string();
        assert!(error.contains("job 7, process 1 on elsewhere"), "{error}");
        drop(held);
        assert!(folder.path().join(CLAIM).exists(), "it is the other's");
    }

    #[test]
    fn a_job_that_is_begun_anew_on_another_machine_goes_on() {
        let words = "host=elsewhere pid=1 job=7 number=0\n";
        let of_job = |job: &str| Holder { job: job.to_owned(), ..Holder::here() };
        assert!(Holder::read(words).is_gone(&of_job("7")));
        assert!(!Holder::read(words).is_gone(&of_job("8")));
        assert!(!Holder::read("").is_gone(&of_job("")));
    }
}
