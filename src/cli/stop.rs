//! Handling of Ctrl-C, SIGTERM and SIGHUP: work in progress is saved, and the same command continues it.

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::streams::tell;

/// Exit code of a command that any signal stopped.
pub const STOPPED: u8 = 4;
/// Message after the first signal while cells are measured.
pub const AFTER_CELLS: &str = "stopping after the configurations that are running";

/// Error of a command that was stopped before its end; the message says how to continue.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Stopped(pub String);

/// A signal this soon after the first one belongs to the same stop. For example, a closing terminal and its shell both
/// send SIGHUP, and `make` repeats a SIGTERM that its whole process group received.
const SAME_STOP: Duration = Duration::from_secs(1);

/// Returns a flag that Ctrl-C, SIGTERM and SIGHUP set; a second signal, later, ends the process at once. `what` is the
/// message after the first signal. It is empty if another process prints the message.
///
/// If SIGHUP was ignored when the process began, as under `nohup`, it stays ignored.
pub fn stop_at_signal(what: &'static str) -> Result<&'static AtomicBool> {
    static STOP: AtomicBool = AtomicBool::new(false);
    let hangups_ignored = is_hangup_ignored();
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
        ignore_hangup();
    }
    Ok(&STOP)
}

/// Time from the first signal to the end of the process, even if work is still running.
static GRACE: OnceLock<Duration> = OnceLock::new();

/// Ends the process this long after the first signal, because a scheduler would kill it soon after.
pub fn end_after(grace: Duration) {
    let _ = GRACE.set(grace);
}

/// Ends the process without running exit handlers: other threads may still use the libraries that the handlers would
/// tear down.
pub fn end_at_once(code: u8) -> ! {
    // SAFETY: `_exit` ends the process and may be called at any time.
    unsafe { libc::_exit(code.into()) }
}

fn is_hangup_ignored() -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only writes the current one, into memory that fits it. If the call
    // fails, all zeros are a valid action.
    unsafe {
        libc::sigaction(libc::SIGHUP, std::ptr::null(), now.as_mut_ptr());
        now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

fn ignore_hangup() {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}
