//! The machine's name, whether a process of it is there, and whether a file system of it has locks.

#[cfg(feature = "lm")]
use std::io;

/// The name that the machine is known by to others; empty where it has none.
#[cfg(unix)]
pub(crate) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub(crate) fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Whether an error says that a file system has no locks to give, as they do in more than one way.
#[cfg(feature = "lm")]
pub(crate) fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    let has_none = error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error());
    #[cfg(not(unix))]
    let has_none = false;
    has_none || error.kind() == io::ErrorKind::Unsupported
}

/// Whether a process does anything any more.
#[cfg(feature = "study")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs, or may.
    Runs,
    /// It was killed, and ends as soon as what it does within the system lets it.
    Ends,
    /// It is not there, or ended and is still listed.
    Gone,
}

/// What the process of this number does, another user's too.
#[cfg(all(unix, feature = "study"))]
pub(crate) fn state(pid: u32) -> State {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    match number.map(test_kill_process) {
        None | Some(Err(Errno::SRCH)) => State::Gone,
        // Where the system does not tell more, it runs.
        _ => linux::state(pid).unwrap_or(State::Runs),
    }
}

/// Not known: whoever is gone is found out by its silence.
#[cfg(all(not(unix), feature = "study"))]
pub(crate) fn state(_pid: u32) -> State {
    State::Runs
}

/// When the process of this number began, in a unit of the system's; empty where it does not say.
#[cfg(feature = "study")]
pub(crate) fn began(pid: u32) -> String {
    // The 22nd field, in clock ticks after the machine's start.
    linux::field(pid, 22).unwrap_or_default()
}

/// What Linux tells of a process in `/proc`; of other systems none is told.
#[cfg(feature = "study")]
mod linux {
    use super::State;

    /// Signal 9 among those that wait to be delivered.
    const KILL: u64 = 1 << 8;
    /// The process is taking itself down.
    const EXITING: u64 = 0x4;

    /// A field of `/proc/PID/stat`, numbered from 1 as its manual does, after the name of the program.
    pub fn field(pid: u32, number: usize) -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in brackets, and may have some itself.
        let (_, after) = stat.rsplit_once(')')?;
        after.split_whitespace().nth(number - 3).map(str::to_owned)
    }

    pub fn state(pid: u32) -> Option<State> {
        // Its first thread may have ended before others, which are still within the system.
        let is_alone = field(pid, 20)?.parse::<u32>().ok()? <= 1;
        match field(pid, 3)?.as_str() {
            "Z" | "X" if is_alone => return Some(State::Gone),
            "Z" | "X" => return Some(State::Ends),
            _ => {}
        }
        let is_exiting = field(pid, 9)?.parse::<u64>().ok()? & EXITING != 0;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"))?;
        let is_killed = u64::from_str_radix(pending.trim(), 16).ok()? & KILL != 0;
        Some(if is_exiting || is_killed { State::Ends } else { State::Runs })
    }
}
