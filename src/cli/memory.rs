//! Memory that runs out ends the process with a line, as anything else does that fails.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, but for what it does where there is no more: Rust's own way is to abort. Requests whose size
/// is known are refused before they begin; this is for what was estimated too low, and for the libraries.
struct OrALine;

#[global_allocator]
static ALLOCATOR: OrALine = OrALine;

// SAFETY: every call is passed on to the system's allocator as it is, and what that returns is returned, or nothing is.
unsafe impl GlobalAlloc for OrALine {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps what `alloc` asks for.
        there(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps what `alloc_zeroed` asks for.
        there(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps what `realloc` asks for, and `block` came from the system's allocator.
        there(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps what `dealloc` asks for, and `block` came from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

fn there(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        end(size);
    }
    block
}

/// Ends the process with a line that is made without memory.
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
    // SAFETY: the pointer and the length are those of one slice.
    unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
}

#[cfg(not(unix))]
fn write(part: &[u8]) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(part);
}
