//! Folders that one process of many machines at a time writes to, where they share nothing but files.
//!
//! NFS keeps what this rests on: that a file is created by one of several who try (`O_EXCL`), that a rename is whole, and one
//! clock, the server's, which dates what any of them writes. It does not keep `flock` everywhere, so that is not asked.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant, SystemTime};

use super::aside;
use super::disk::{self, File};
use super::error::FileError;
use super::files::now_in;
use super::holder::Holder;

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

impl Claim {
    /// Takes a folder, which is made where it is missing. One that is held is waited for until its holder is gone: at once where
    /// that was this job, begun anew, or a process of this machine that is there no more, and after a minute's silence of any
    /// other.
    ///
    /// # Errors
    /// A folder that cannot be made or written, or a holder who is there.
    pub fn take(folder: &Path) -> Result<Self, FileError> {
        Self::take_after(folder, SILENCE)
    }

    /// [`take`](Self::take) after another silence.
    fn take_after(folder: &Path, silence: Duration) -> Result<Self, FileError> {
        let path = folder.join(CLAIM);
        let here = Holder::here();
        // What the claim said first, and since when by this process's own clock, which does not jump.
        let mut seen: Option<(SystemTime, Instant)> = None;
        loop {
            disk::make_folders(folder).map_err(|e| FileError::write(folder, e))?;
            match Self::create(&path, &here) {
                Ok(()) => {
                    // Whoever had it before may have been killed after this process looked at the claim.
                    aside::clear(folder);
                    return Ok(Self::beating(path, here));
                }
                // Whoever tidies up took the folder away just now.
                Err(e) if e.kind() == ErrorKind::NotFound && !folder.is_dir() => continue,
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(FileError::write(&path, e)),
            }
            let Some(Look { holder, age, at }) = look(&path)? else { continue };
            let (first, since) = *seen.get_or_insert_with(|| (at, Instant::now()));
            // A claim of tomorrow is no fresher than one of now.
            let silent = age.unwrap_or_default().max(since.elapsed());
            if (first == at && silent > silence) || holder.is_gone(&here) {
                release(&path, &holder)?;
                seen = None;
                continue;
            }
            // It has said something since it was looked at first.
            if first != at || holder.is_alive() {
                return Err(FileError::Held { folder: folder.to_owned(), by: holder.describe() });
            }
            sleep(PAUSE);
        }
    }

    /// Who holds a folder, in words; none where nobody does or they are gone.
    pub fn holder_of(folder: &Path) -> Option<String> {
        let look = look(&folder.join(CLAIM)).ok()??;
        (!look.is_of_nobody()).then(|| look.holder.describe())
    }

    /// Takes away the claim of a holder who is gone, where there is one.
    ///
    /// # Errors
    /// A file that cannot be read or taken away.
    pub fn clear(folder: &Path) -> Result<(), FileError> {
        let path = folder.join(CLAIM);
        match look(&path)? {
            Some(look) if look.is_of_nobody() => release(&path, &look.holder),
            _ => Ok(()),
        }
    }

    /// One of several who try makes the file. Until its words are written it is nobody's in particular, who was there just now:
    /// so one that got none goes again, or whoever comes next would wait for nobody.
    fn create(path: &Path, holder: &Holder) -> std::io::Result<()> {
        let mut file = File::create_new(path)?;
        let written = file.write_all(holder.written().as_bytes()).and_then(|()| file.sync());
        written.inspect_err(|_| drop(disk::remove_file(path)))
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
            Ok(Some(look)) => look.holder.describe(),
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

/// What a claim says when it is looked at.
struct Look {
    holder: Holder,
    /// How long ago the holder said so; none where the claim is dated ahead of now, as a clock leaves it that was put back.
    age: Option<Duration>,
    /// When, by the file system's clock.
    at: SystemTime,
}

impl Look {
    /// Whether the holder cannot be at work any more, by what one look tells. Who is there dates the claim anew by any clock,
    /// so one that is dated far ahead is an old one.
    fn is_of_nobody(&self) -> bool {
        self.age.is_none_or(|age| age > SILENCE) || self.holder.is_gone_for_all()
    }
}

/// Looks at a claim; none where it was given up meanwhile.
fn look(path: &Path) -> Result<Option<Look>, FileError> {
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
    let ahead = at.duration_since(now).unwrap_or_default();
    let age = (ahead <= SILENCE).then(|| now.duration_since(at).unwrap_or_default());
    Ok(Some(Look { holder: Holder::read(&words), age, at }))
}

fn holds(path: &Path, holder: &Holder) -> bool {
    fs::read_to_string(path).is_ok_and(|words| Holder::read(&words) == *holder)
}

/// Takes away the claim of someone who is gone. Of several who try, one renames it; whoever finds that it renamed another's, as
/// one was faster and has it by now, gives that back.
fn release(path: &Path, gone: &Holder) -> Result<(), FileError> {
    let aside = path.with_extension(Holder::here().word());
    match disk::rename(path, &aside) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        renamed => renamed.map_err(|e| FileError::write(path, e))?,
    }
    if !holds(&aside, gone) && !path.exists() {
        return disk::rename(&aside, path).map_err(|e| FileError::write(path, e));
    }
    disk::remove_file(&aside).map_err(|e| FileError::write(&aside, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::machine;

    fn write(folder: &Path, words: &str, age: Duration) {
        write_at(folder, words, SystemTime::now() - age);
    }

    fn write_at(folder: &Path, words: &str, at: SystemTime) {
        fs::write(folder.join(CLAIM), words).unwrap();
        date(folder, at);
    }

    /// As a beat does, which leaves the words there all the time.
    fn date(folder: &Path, at: SystemTime) {
        let file = fs::File::options().write(true).open(folder.join(CLAIM)).unwrap();
        file.set_modified(at).unwrap();
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
        let host: String = machine::name().split_whitespace().collect();
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

    /// A clock that was put back leaves claims of tomorrow.
    #[test]
    fn a_claim_of_tomorrow_is_no_fresher_than_one_of_now() {
        let folder = tempfile::tempdir().unwrap();
        let tomorrow = SystemTime::now() + Duration::from_secs(24 * 60 * 60);
        let write = || write_at(folder.path(), "host=elsewhere pid=1 job=7 number=0\n", tomorrow);
        write();
        assert_eq!(Claim::holder_of(folder.path()), None);
        Claim::clear(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        write();
        let taken = Claim::take_after(folder.path(), Duration::from_millis(1)).unwrap();
        taken.check().unwrap();
    }

    /// Who is there goes on saying so, by whatever clock.
    #[test]
    fn who_says_something_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let words = "host=elsewhere pid=1 job=7 number=0\n";
        write(folder.path(), words, Duration::ZERO);
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| Claim::take(folder.path()));
            let mut age = Duration::from_secs(1);
            while !taker.is_finished() {
                date(folder.path(), SystemTime::now() - age);
                age += Duration::from_secs(1);
                sleep(PAUSE / 4);
            }
            let error = taker.join().unwrap().unwrap_err().to_string();
            assert!(error.contains("job 7, process 1 on elsewhere"), "{error}");
        });
    }
}
