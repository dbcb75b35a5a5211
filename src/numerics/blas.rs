//! OpenBLAS: how many threads one call may use, and which library it is.

use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

// Its decompositions are what the library is linked for (build.rs).
use ndarray_linalg as _;

unsafe extern "C" {
    fn openblas_get_num_threads() -> c_int;
    fn openblas_set_num_threads(threads: c_int);
    fn openblas_get_config() -> *const c_char;
    fn openblas_get_corename() -> *const c_char;
}

/// Who holds OpenBLAS to one thread: its setting is one for the whole process.
struct Holders {
    count: usize,
    /// The setting that the first of them found, and the last puts back.
    before: c_int,
    /// How many threads have decomposed at once: for each, OpenBLAS has and keeps a buffer.
    buffers: usize,
}

/// What OpenBLAS maps for each thread that computes at once, and as much again as decompositions take beside it. Where it
/// cannot have that, it asks again and again, without end.
const BUFFER: usize = 160 << 20;

static HOLDERS: Mutex<Holders> = Mutex::new(Holders { count: 0, before: 1, buffers: 0 });

fn holders() -> MutexGuard<'static, Holders> {
    HOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn threads() -> c_int {
    // SAFETY: OpenBLAS exports this symbol with this signature, and it may be called at any time.
    unsafe { openblas_get_num_threads() }
}

fn set_threads(threads: c_int) {
    // SAFETY: as above.
    unsafe { openblas_set_num_threads(threads) }
}

/// Runs `decompose` with OpenBLAS on the thread that calls it, and leaves its setting as it was.
///
/// Cells of a study and starts of a search are what runs in parallel here. Threads of OpenBLAS
/// nested inside those would oversubscribe the cores, and would make a decomposition's rounding, so
/// also a row, depend on how many there are. Where several run at once, the last to end puts back
/// what the first found.
///
/// # Panics
/// Where the memory that OpenBLAS takes is not to be had.
pub(crate) fn on_one_thread<R>(decompose: impl FnOnce() -> R) -> R {
    struct Hold;
    impl Drop for Hold {
        fn drop(&mut self) {
            let mut holders = holders();
            holders.buffers = holders.buffers.max(holders.count);
            holders.count -= 1;
            if holders.count == 0 {
                set_threads(holders.before);
            }
        }
    }
    {
        let mut holders = holders();
        let new = (holders.count + 1).saturating_sub(holders.buffers);
        check_memory(new * BUFFER);
        if holders.count == 0 {
            holders.before = threads();
            set_threads(1);
        }
        holders.count += 1;
    }
    let _hold = Hold;
    decompose()
}

/// Sees that so much memory is to be had.
///
/// # Panics
/// Where it is not: a program's allocator may have ended it before.
fn check_memory(bytes: usize) {
    let mut room = Vec::<u8>::new();
    let had = room.try_reserve_exact(bytes);
    // Or the compiler would take it for granted.
    std::hint::black_box(room.as_ptr());
    assert!(had.is_ok(), "out of memory: OpenBLAS needs {bytes} more bytes; use fewer threads");
}

/// Makes every later call into OpenBLAS run on the thread that calls it: for programs.
pub(crate) fn single_threaded_blas() {
    let mut holders = holders();
    holders.before = 1;
    set_threads(1);
}

/// The library's version, options and the kernels that it chose for this processor.
pub(crate) fn description() -> String {
    // SAFETY: OpenBLAS returns a NUL-terminated text that lives as long as the process.
    let text = unsafe { CStr::from_ptr(openblas_get_config()) };
    text.to_string_lossy().trim().to_owned()
}

/// The processor that it took its kernels for: this one's kind, or what it falls back to.
pub(crate) fn core() -> String {
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(openblas_get_corename()) };
    text.to_string_lossy().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets what holds outside of all holders, and returns what did: other tests decompose meanwhile.
    fn set_outside(wanted: c_int) -> c_int {
        let mut holders = holders();
        if holders.count > 0 {
            return std::mem::replace(&mut holders.before, wanted);
        }
        let found = threads();
        set_threads(wanted);
        found
    }

    #[test]
    #[should_panic(expected = "out of memory: OpenBLAS needs")]
    fn memory_that_is_not_there_is_not_waited_for() {
        check_memory(isize::MAX as usize);
    }

    #[test]
    fn holders_nested_and_at_once_leave_the_setting_as_it_was() {
        let found = set_outside(3);
        let decompose = || {
            for _ in 0..200 {
                let inner = on_one_thread(|| on_one_thread(threads).max(threads()));
                assert_eq!(inner, 1);
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(decompose))));
        assert!(std::panic::catch_unwind(|| on_one_thread(|| panic!("it fails"))).is_err());
        assert_eq!(set_outside(found), 3);
    }
}
