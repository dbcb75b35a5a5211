//! A panic is told in a line, as every error is.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

/// Where the last one was. The line takes the place of what Rust prints, but with `RUST_BACKTRACE=full`.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// The work of a command; where it panics, as libraries do that can start no threads, an error that says so.
///
/// # Errors
/// Those of the work, and a panic.
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
            let why = text(&*panic);
            bail!("internal error: {why} ({place}); allow more memory, or report this as a bug")
        }
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
