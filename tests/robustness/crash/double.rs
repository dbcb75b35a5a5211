//! The disk as a double of it has it: every operation noted, or one that fails.
//!
//! The program under test has no door for this. Each test crate is a second program with the same commands, which puts a
//! double under them where its environment says so, and is started by the tests as the program itself would be.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rank_study::system::disk::{Answer, Operation, Watch, watch_with};

use crate::common::binary::{Ended, Folder};

/// The arguments, one a line, that the child runs, ...
const ARGUMENTS: &str = "CRASH_ARGUMENTS";
/// ... the file that it notes its operations in, ...
const JOURNAL: &str = "CRASH_JOURNAL";
/// ... or which operation fails, and how.
const FAULT: &str = "CRASH_FAULT";

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub struct Step {
    pub thread: String,
    pub done: Done,
}

#[derive(Clone, Debug, PartialEq, Eq)]
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
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let arguments = std::iter::once("rank-study").chain(arguments.lines());
    let arguments = arguments.map(OsString::from).collect();
    let journal = std::env::var_os(JOURNAL).map(|to| (to, Arc::default()));
    match (&journal, std::env::var(FAULT)) {
        (Some((_, done)), _) => watch_with(Box::new(Noting(Arc::clone(done)))),
        (None, Ok(fault)) => watch_with(Box::new(Failing::read(&fault))),
        (None, Err(_)) => panic!("the child is told of no double"),
    }
    // SAFETY: the only other thread is the harness's, which waits for this one.
    unsafe { rank_study::numerics::prepare_process() };
    let code = command(arguments);
    if let Some((to, done)) = journal {
        let lines: Vec<u8> = done.lock().unwrap().concat();
        std::fs::write(to, lines).unwrap();
    }
    std::process::exit(i32::from(code));
}

/// Runs a command under a double in `folder`.
fn run(folder: &Folder, arguments: &[&str], variable: &str, value: &std::ffi::OsStr) -> Ended {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "crash::child", "--nocapture", "--test-threads=1"])
        .env(ARGUMENTS, arguments.join("\n"))
        .env(variable, value)
        .current_dir(folder.path(""))
        .stdin(Stdio::null());
    Ended::of(&command.output().unwrap())
}

/// The operations of a command that must succeed, in order.
pub fn journal(folder: &Folder, arguments: &[&str]) -> Vec<Step> {
    let notes = tempfile::NamedTempFile::new().unwrap();
    let Ended { code, stderr, .. } = run(folder, arguments, JOURNAL, notes.path().as_os_str());
    assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    read(&std::fs::read(notes.path()).unwrap())
}

/// What a command comes to whose operation of this number fails.
pub fn failing(folder: &Folder, arguments: &[&str], at: usize, fault: Fault) -> Ended {
    let place = FAULTS.iter().position(|&one| one == fault).unwrap();
    run(folder, arguments, FAULT, format!("{at} {place}").as_ref())
}

/// Notes what is done.
struct Noting(Arc<Mutex<Vec<Vec<u8>>>>);

impl Watch for Noting {
    fn before(&self, _: &Operation<'_>) -> Answer {
        Answer::GoOn
    }

    fn done(&self, operation: &Operation<'_>) {
        self.0.lock().unwrap().push(written(operation));
    }
}

/// Has one operation fail.
struct Failing {
    at: usize,
    fault: Fault,
    count: AtomicUsize,
}

impl Failing {
    fn read(text: &str) -> Self {
        let (at, place) = text.split_once(' ').unwrap();
        let fault = FAULTS[place.parse::<usize>().unwrap()];
        Self { at: at.parse().unwrap(), fault, count: AtomicUsize::new(0) }
    }
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

/// A line of what was done: kind, thread, number, how many bytes follow the line, paths.
fn written(operation: &Operation<'_>) -> Vec<u8> {
    let none = (0, &[][..], Path::new(""));
    let (kind, path, (number, bytes, to)) = match *operation {
        Operation::Create(path) | Operation::CreateNew(path) => ("create", path, none),
        Operation::Write { path, offset, bytes } => ("write", path, (offset, bytes, none.2)),
        Operation::SetLength { path, length } => ("length", path, (length, none.1, none.2)),
        Operation::Sync(path) => ("sync", path, none),
        Operation::Rename { from, to } => ("rename", from, (0, none.1, to)),
        Operation::RemoveFile(path) | Operation::RemoveFolder(path) => ("remove", path, none),
        Operation::MakeFolder(path) => ("folder", path, none),
        Operation::SyncFolder(path) => ("names", path, none),
    };
    let mut line = Vec::new();
    let (path, to) = (path.display(), to.display());
    let thread = std::thread::current().id();
    writeln!(line, "{kind}\t{thread:?}\t{number}\t{}\t{path}\t{to}", bytes.len()).unwrap();
    line.extend_from_slice(bytes);
    line
}

fn read(mut lines: &[u8]) -> Vec<Step> {
    let mut all = Vec::new();
    while let Some(end) = lines.iter().position(|&byte| byte == b'\n') {
        let line = str::from_utf8(&lines[..end]).unwrap();
        let [kind, thread, number, length, path, to] =
            line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let [number, length] = [number, length].map(|field| field.parse::<usize>().unwrap());
        let [path, to] = [path, to].map(PathBuf::from);
        let bytes = lines[end + 1..end + 1 + length].to_vec();
        lines = &lines[end + 1 + length..];
        let done = match kind {
            "create" => Done::Create(path),
            "write" => Done::Write { path, offset: number, bytes },
            "length" => Done::SetLength { path, length: number },
            "sync" => Done::Sync(path),
            "rename" => Done::Rename { from: path, to },
            "remove" => Done::Remove(path),
            "folder" => Done::MakeFolder(path),
            "names" => Done::SyncFolder(path),
            _ => panic!("{line}"),
        };
        all.push(Step { thread: thread.to_owned(), done });
    }
    all
}
