//! Turns a panic of a command into an error of one line.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

use crate::system::panic_message;

/// Location of the last panic. It is part of the error line, which replaces Rust's message unless
/// `RUST_BACKTRACE=full`.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// Runs a command and turns a panic into an error. Libraries panic, for example, when they cannot start threads.
///
/// # Errors
/// The error of `work`, or its panic.
pub fn told(work: impl FnOnce() -> Result<()>) -> Result<()> {
    if std::env::var_os("RUST_BACKTRACE").is_none_or(|how| how != "full") {
        set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
        }));
    }
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(panic) => {
            let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
            let why = panic_message(&*panic);
            bail!("internal error: {why} ({place}); allow more memory, or report this as a bug")
        }
    }
}
