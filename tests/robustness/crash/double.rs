//! The disk as a double of it has it: every operation noted, or one that fails.
//!
//! The program under test has no door for this. Each test crate is a second program with the same commands, which puts a
//! double under them where its environment says so, and is started by the tests as the program itself would be.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rank_study::system::disk::{Answer, Operation, Watch, watch_with};
use serde::{Deserialize, Serialize};

use crate::common::binary::{Ended, Folder, words};

/// The variable that tells the child what it is asked to do.
const ASKED: &str = "CRASH_ASKED";

/// The arguments that the child runs, and the double under them.
#[derive(Serialize, Deserialize)]
struct Asked(Vec<String>, Double);

#[derive(Serialize, Deserialize)]
enum Double {
    /// Notes its operations in a file.
    Journal(PathBuf),
    /// Has the operation of this number fail.
    Fault(usize, Fault),
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The disk is full, for this write alone or from then on. What takes no room is done.
    Full { for_good: bool },
    /// The disk is full after half of a write, and from then on.
    FullInside,
    /// The disk fails, for this operation alone or from then on.
    Broken { for_good: bool },
}

pub const FAULTS: [Fault; 5] = [
    Fault::Full { for_good: false },
    Fault::Full { for_good: true },
    Fault::FullInside,
    Fault::Broken { for_good: false },
    Fault::Broken { for_good: true },
];

/// One operation that was done, and by which thread.
#[derive(Serialize, Deserialize)]
pub struct Step {
    pub thread: String,
    pub done: Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    Create(PathBuf),
    Write { path: PathBuf, offset: usize, bytes: Vec<u8> },
    SetLength { path: PathBuf, length: usize },
    Sync(PathBuf),
    Rename { from: PathBuf, to: PathBuf },
    Remove(PathBuf),
    MakeFolder(PathBuf),
    SyncFolder(PathBuf),
}

/// What runs in the child; nothing where the tests themselves run.
pub fn child(command: impl FnOnce(Vec<OsString>) -> u8) {
    let Ok(asked) = std::env::var(ASKED) else { return };
    let Asked(arguments, double) = serde_json::from_str(&asked).unwrap();
    let done = Arc::default();
    match double {
        Double::Journal(_) => watch_with(Box::new(Noting(Arc::clone(&done)))),
        Double::Fault(at, fault) => {
            watch_with(Box::new(Failing { at, fault, count: AtomicUsize::new(0) }));
        }
    }
    // SAFETY: the only other thread is the harness's, which waits for this one.
    unsafe { rank_study::numerics::prepare_process() };
    let code = command(
        ["rank-study".to_owned()].into_iter().chain(arguments).map(OsString::from).collect(),
    );
    if let Double::Journal(to) = double {
        std::fs::write(to, serde_json::to_vec(&*done.lock().unwrap()).unwrap()).unwrap();
    }
    std::process::exit(i32::from(code));
}

/// Runs a command under a double in `folder`.
fn run(folder: &Folder, line: &str, double: Double) -> Ended {
    let arguments = words(line).into_iter().map(str::to_owned).collect();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "crash::child", "--nocapture", "--test-threads=1"])
        .env(ASKED, serde_json::to_string(&Asked(arguments, double)).unwrap())
        .current_dir(folder.path(""))
        .stdin(Stdio::null());
    Ended::of(&command.output().unwrap())
}

/// The operations of a command that must succeed, in order.
pub fn journal(folder: &Folder, line: &str) -> Vec<Step> {
    let notes = tempfile::NamedTempFile::new().unwrap();
    let Ended { code, stderr, .. } = run(folder, line, Double::Journal(notes.path().to_owned()));
    assert_eq!(code, Some(0), "{line}: {stderr}");
    serde_json::from_slice(&std::fs::read(notes.path()).unwrap()).unwrap()
}

/// What a command comes to whose operation of this number fails.
pub fn failing(folder: &Folder, line: &str, at: usize, fault: Fault) -> Ended {
    run(folder, line, Double::Fault(at, fault))
}

/// Notes what is done.
struct Noting(Arc<Mutex<Vec<Step>>>);

impl Watch for Noting {
    fn before(&self, _: &Operation<'_>) -> Answer {
        Answer::GoOn
    }

    fn done(&self, operation: &Operation<'_>) {
        let done = match *operation {
            Operation::Create(path) | Operation::CreateNew(path) => Done::Create(path.into()),
            Operation::Write { path, offset, bytes } => {
                Done::Write { path: path.into(), offset: offset as usize, bytes: bytes.into() }
            }
            Operation::SetLength { path, length } => {
                Done::SetLength { path: path.into(), length: length as usize }
            }
            Operation::Sync(path) => Done::Sync(path.into()),
            Operation::Rename { from, to } => Done::Rename { from: from.into(), to: to.into() },
            Operation::RemoveFile(path) | Operation::RemoveFolder(path) => {
                Done::Remove(path.into())
            }
            Operation::MakeFolder(path) => Done::MakeFolder(path.into()),
            Operation::SyncFolder(path) => Done::SyncFolder(path.into()),
        };
        let thread = format!("{:?}", std::thread::current().id());
        self.0.lock().unwrap().push(Step { thread, done });
    }
}

/// Has one operation fail.
struct Failing {
    at: usize,
    fault: Fault,
    count: AtomicUsize,
}

/// "No space left on device".
const NO_SPACE: i32 = 28;
/// "Input/output error".
const BROKEN: i32 = 5;

impl Watch for Failing {
    fn before(&self, operation: &Operation<'_>) -> Answer {
        let now = self.count.fetch_add(1, Ordering::Relaxed);
        let (is_it, is_after) = (now == self.at, now >= self.at);
        let takes_room = !matches!(
            operation,
            Operation::RemoveFile(_) | Operation::RemoveFolder(_) | Operation::SyncFolder(_)
        );
        let error = io::Error::from_raw_os_error;
        match self.fault {
            Fault::Full { for_good } if takes_room && (is_it || for_good && is_after) => {
                Answer::Fail(error(NO_SPACE))
            }
            Fault::FullInside if takes_room && is_after => match operation {
                Operation::Write { bytes, .. } if is_it => {
                    Answer::Cut(bytes.len() / 2, error(NO_SPACE))
                }
                _ => Answer::Fail(error(NO_SPACE)),
            },
            Fault::Broken { for_good } if is_it || for_good && is_after => {
                Answer::Fail(error(BROKEN))
            }
            _ => Answer::GoOn,
        }
    }

    fn done(&self, _: &Operation<'_>) {}
}
