//! The rank-study binary: the command line, its allocator, and OpenBLAS without threads of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_int;
use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: nothing has started a thread yet.
    unsafe { rank_study::numerics::prepare_process() };
    ExitCode::from(rank_study::run_command_line(std::env::args_os()))
}

/// OpenBLAS calls this function when it is loaded, before `main`, to get the number of threads to start. The linker
/// prefers the program's definition to the library's, which reads the environment. More threads would not be used
/// ([`rank_study::numerics::prepare_process`]), but each takes memory and addresses, one per core. If `ulimit -v`
/// denies these, OpenBLAS ends the process or retries without end.
// SAFETY: name and type match the function that OpenBLAS calls.
#[unsafe(no_mangle)]
extern "C" fn openblas_num_threads_env() -> c_int {
    1
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
    // SAFETY: `_exit` ends the process and may be called at any time.
    unsafe { libc::_exit(1) }
}

fn write(part: &[u8]) {
    // SAFETY: the pointer and the length belong to one slice.
    unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
}
