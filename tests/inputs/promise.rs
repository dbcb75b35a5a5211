//! One promise: starts the process that reads inputs, watches it, and starts it again after one that ended it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::child::{ACCEPTED, Asked, FAILURES, PREPARING, at};
use crate::common::tries::{Tries, share_of};

/// How long one input may take, several times over what the slowest takes on a machine that has other work: it hangs.
const HANGS: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
/// Ends after so many inputs that ended the process.
const MOST_ENDED: usize = 20;

/// Tries a target with its share of `whole` inputs.
pub fn keeps(promise: &'static str, target: &str, whole: usize) {
    let mut tries = Tries::of(promise);
    let folder = in_memory();
    let count = share_of(whole) as u64;
    let (mut first, mut failures) = (0, Vec::new());
    while first < count && failures.len() < MOST_ENDED {
        let asked =
            Asked { target: target.to_owned(), first, count, folder: folder.path().to_owned() };
        let stderr = folder.path().join("stderr");
        let mut command = asked.command();
        command.stdout(Stdio::null()).stderr(fs::File::create(&stderr).unwrap());
        let ended = watch(&mut command.spawn().unwrap(), folder.path());
        let at = at(folder.path());
        match ended {
            Ok(()) => first = count,
            Err(why) => {
                let said = fs::read_to_string(&stderr).unwrap_or_default();
                let said: Vec<&str> = said.lines().rev().take(4).collect();
                assert_ne!(at, PREPARING, "{target}: not ready: {why}; {said:?}");
                failures.push(format!("{at}\t{why}; {said:?}"));
                first = at + 1;
            }
        }
    }
    let told = fs::read_to_string(folder.path().join(FAILURES)).unwrap_or_default();
    failures.extend(told.lines().map(str::to_owned));
    let accepted = fs::read_to_string(folder.path().join(ACCEPTED)).unwrap_or_default();
    println!("{promise}: {} inputs were read to their end", accepted.lines().count());
    let failures: Vec<String> = failures.iter().map(|failure| kept(target, failure)).collect();
    tries.add(first as usize, failures);
    tries.end();
}

/// Waits for the process, and ends one that stands still; an error where it did not end well.
fn watch(child: &mut Child, folder: &Path) -> Result<(), String> {
    let (mut seen, mut since) = (at(folder), Instant::now());
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let why = format!("the process ended with {status}");
            return status.success().then_some(()).ok_or(why);
        }
        let now = at(folder);
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        if since.elapsed() > HANGS {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(format!("took more than {} s", HANGS.as_secs()));
        }
        sleep(PAUSE);
    }
}

/// Says of a failure which input it was, and keeps that one where a build keeps what tests leave.
fn kept(target: &str, failure: &str) -> String {
    let number: u64 = failure.split('\t').next().unwrap_or_default().parse().unwrap();
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}-{number}"));
    let asked =
        Asked { target: target.to_owned(), first: number, count: number, folder: file.clone() };
    let written = asked.command().stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_kept = written.is_ok_and(|status| status.success());
    format!("{target}, input {failure}; kept: {is_kept}, as {}", file.display())
}

/// A folder in memory where there is such.
fn in_memory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

impl Asked {
    fn command(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture"]).stdin(Stdio::null());
        // One thread: several share the machine.
        for threads in ["RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"] {
            command.env(threads, "1");
        }
        self.to(&mut command);
        command
    }
}
