//! Ends the program with a one-line error when it panics or runs out of memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use rank_study::system::panic_message;

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

/// The system's allocator, except that a failed allocation ends the process with an error line; Rust would abort. Large
/// requests of known size are checked beforehand. This covers low estimates and the libraries.
struct OrALine;

#[global_allocator]
static ALLOCATOR: OrALine = OrALine;

// SAFETY: every call is passed to the system's allocator unchanged, and its result is returned, or the process ends.
unsafe impl GlobalAlloc for OrALine {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller meets the conditions of `alloc`.
        there(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller meets the conditions of `alloc_zeroed`.
        there(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller meets the conditions of `realloc`, and `block` came from the system's allocator.
        there(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller meets the conditions of `dealloc`, and `block` came from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

fn there(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        end(size);
    }
    block
}

/// Ends the process with an error line that is written without allocating memory.
#[cold]
fn end(size: usize) -> ! {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    let mut left = size;
    while left > 0 || first == digits.len() {
        first -= 1;
        digits[first] = b'0' + (left % 10) as u8;
        left /= 10;
    }
    for part in [
        &b"error: out of memory: "[..],
        &digits[first..],
        b" bytes more are not available; ask for less, lower --threads, or allow the process more memory\n",
    ] {
        write(part);
    }
    super::stop::end_at_once(1)
}

#[cfg(unix)]
fn write(part: &[u8]) {
    // SAFETY: the pointer and the length belong to one slice.
    unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
}

#[cfg(not(unix))]
fn write(part: &[u8]) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(part);
}
