//! Turns panics of libraries that read malformed files into errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught by [`caught`] and returned as an error.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which passes bytes from outside to a library, and returns a panic on this thread as an error. The panic
/// is not printed. The caller must drop any state that `work` has changed.
///
/// # Errors
/// The panic's message, in one line.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                before(panic);
            }
        }));
    });
    let outer = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(outer);
    done.map_err(|panic| panic_message(&*panic).split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the message of a panic that was caught.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::caught;

    #[test]
    fn a_panic_becomes_a_line_and_others_stay_what_they_are() {
        assert_eq!(caught(|| 7), Ok(7));
        let of = |count: usize| caught(|| panic!("{count}\n  of them"));
        assert_eq!(of(3), Err::<(), _>("3 of them".to_owned()));
        let within = caught(|| (caught(|| panic!("inner")), 1));
        assert_eq!(within, Ok((Err::<(), _>("inner".to_owned()), 1)));
        assert!(!super::IS_CAUGHT.get());
    }
}
