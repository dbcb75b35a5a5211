//! The machine's name, and whether a process of it is there.

/// The name that the machine is known by to others; empty where it has none.
#[cfg(unix)]
pub(crate) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub(crate) fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Whether there is a process of this number, another user's too.
#[cfg(all(unix, feature = "study"))]
pub(crate) fn runs(pid: u32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// Not known: whoever is gone is found out by its silence.
#[cfg(all(not(unix), feature = "study"))]
pub(crate) fn runs(_pid: u32) -> bool {
    true
}
