//! Ctrl-C, SIGTERM and SIGHUP: what is under way is kept, and the command can be run again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::streams::tell;

/// The exit code of a command that was stopped, whichever signal did it.
pub const STOPPED: u8 = 4;
/// What the first signal leads to where cells are measured.
pub const AFTER_CELLS: &str = "stopping after the configurations that are running";

/// A command that was stopped before its end, with how to go on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Stopped(pub String);

/// What comes so soon after the first signal is the same stop told twice: a terminal that closes and the
/// shell in it both send SIGHUP, `make` passes on a SIGTERM that its whole group was sent.
const SAME_STOP: Duration = Duration::from_secs(1);

/// A flag that Ctrl-C, SIGTERM and SIGHUP set; another of them, later, ends the process at once.
/// `what` tells what the first one leads to; where it is empty, another process tells.
///
/// A SIGHUP that was ignored when the process began, as `nohup` has it, stays ignored.
pub fn stop_at_signal(what: &'static str) -> Result<&'static AtomicBool> {
    static STOP: AtomicBool = AtomicBool::new(false);
    let hangups_ignored = hangup::is_ignored();
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || match first {
        None => {
            first = Some(Instant::now());
            STOP.store(true, Ordering::Relaxed);
            match GRACE.get() {
                _ if what.is_empty() => {}
                None => tell(&format!("{what}; press Ctrl-C again to stop at once")),
                Some(&grace) => {
                    tell(&format!("{what}, or in {} s", grace.as_secs()));
                    std::thread::spawn(move || {
                        std::thread::sleep(grace);
                        end_at_once(STOPPED)
                    });
                }
            }
        }
        Some(first) if first.elapsed() < SAME_STOP => {}
        Some(_) => end_at_once(STOPPED),
    })
    .context("cannot listen for signals")?;
    if hangups_ignored {
        hangup::ignore();
    }
    Ok(&STOP)
}

/// How long after the first signal the process ends, whatever is under way.
static GRACE: OnceLock<Duration> = OnceLock::new();

/// Has the process end so soon after the first signal to stop: a scheduler kills it soon after.
pub fn end_after(grace: Duration) {
    let _ = GRACE.set(grace);
}

/// Ends the process without running what is registered for its end: other threads are still inside
/// of the libraries that would be taken down.
pub fn end_at_once(code: u8) -> ! {
    #[cfg(unix)]
    // SAFETY: this ends the process and may be called at any time.
    unsafe {
        libc::_exit(code.into())
    }
    #[cfg(not(unix))]
    std::process::exit(code.into())
}

#[cfg(unix)]
mod hangup {
    use std::mem::MaybeUninit;

    pub fn is_ignored() -> bool {
        let mut now = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: with no new action the call only writes the present one, for which there is room;
        // all zeros are a valid one where it fails.
        unsafe {
            libc::sigaction(libc::SIGHUP, std::ptr::null(), now.as_mut_ptr());
            now.assume_init().sa_sigaction == libc::SIG_IGN
        }
    }

    pub fn ignore() {
        // SAFETY: to ignore a signal runs no code in its place.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
}

#[cfg(not(unix))]
mod hangup {
    pub fn is_ignored() -> bool {
        false
    }

    pub fn ignore() {}
}
