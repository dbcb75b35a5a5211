//! OpenBLAS and the process: limits the library's threads, describes it, and makes settings at the start.

use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

// The library is linked (build.rs) for its decompositions.
use ndarray_linalg as _;

unsafe extern "C" {
    fn openblas_get_num_threads() -> c_int;
    fn openblas_set_num_threads(threads: c_int);
    fn openblas_get_config() -> *const c_char;
    fn openblas_get_corename() -> *const c_char;
}

/// The callers that currently limit OpenBLAS to one thread; its setting applies to the whole process.
struct Holders {
    count: usize,
    /// The setting before the first caller, which the last caller restores.
    before: c_int,
    /// The largest number of threads that have run decompositions at once; OpenBLAS keeps one buffer for each.
    buffers: usize,
}

/// Memory in bytes that OpenBLAS maps for each concurrent thread, plus the same amount for the decompositions themselves.
/// Without this memory OpenBLAS retries forever.
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

/// Runs `decompose` with OpenBLAS limited to the calling thread, and restores its setting.
///
/// Runs of a study and starts of a search are parallel. Additional threads of OpenBLAS would oversubscribe the cores, and
/// the rounding of decompositions, and so the rows, would depend on their number.
/// If several calls overlap, the last one to end restores the setting that
/// the first one found.
///
/// # Panics
/// If OpenBLAS's memory cannot be allocated.
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

/// Checks that `bytes` of memory can be allocated.
///
/// # Panics
/// If it cannot be allocated. A program's own allocator may end it earlier.
fn check_memory(bytes: usize) {
    let mut room = Vec::<u8>::new();
    let had = room.try_reserve_exact(bytes);
    // Keeps the compiler from removing the allocation.
    std::hint::black_box(room.as_ptr());
    assert!(had.is_ok(), "out of memory: OpenBLAS needs {bytes} more bytes; use fewer threads");
}

/// Limits all later OpenBLAS calls to the calling thread. For binaries.
pub fn single_threaded_blas() {
    let mut holders = holders();
    holders.before = 1;
    set_threads(1);
}

/// The library's version and options, and the processor that it chose kernels for.
pub(crate) fn description() -> String {
    // SAFETY: OpenBLAS returns a NUL-terminated text that lives as long as the process.
    let text = unsafe { CStr::from_ptr(openblas_get_config()) };
    text.to_string_lossy().trim().to_owned()
}

/// The processor for which OpenBLAS chose its kernels: this one's type, or a fallback.
pub(crate) fn core() -> String {
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(openblas_get_corename()) };
    text.to_string_lossy().trim().to_owned()
}

/// Sets the process up for training and fitting at full speed; results are not affected.
///
/// - OpenBLAS and the tensor library compute on the calling thread. By default the tensor library
///   adds large tensors on its own thread pool, which waits by spinning and serves one caller
///   at a time, so two parallel trainings would wait for each other. The pool's size can only be set
///   through the environment.
/// - With glibc, memory freed in one step is kept for the next one. Returning and clearing it
///   takes a tenth of a training step.
///
/// # Safety
/// No other thread may be running, because this modifies the process's environment.
pub unsafe fn prepare_process() {
    // SAFETY: the caller guarantees that no other thread reads the environment meanwhile.
    unsafe { std::env::set_var("CANDLE_NUM_THREADS", "1") };
    single_threaded_blas();
    keep_freed_memory();
}

fn keep_freed_memory() {
    // Values from glibc's malloc.h.
    const M_TRIM_THRESHOLD: c_int = -1;
    const M_MMAP_THRESHOLD: c_int = -3;

    set_malloc(M_TRIM_THRESHOLD, 1 << 30);
    set_malloc(M_MMAP_THRESHOLD, 32 << 20);
}

/// Makes all threads allocate from one heap. By default glibc reserves 64 MiB of addresses for a thread's own, of which
/// other threads then have none left under a small `ulimit -v`.
#[cfg(feature = "cli")]
pub(crate) fn share_one_heap() {
    // From glibc's malloc.h.
    const M_ARENA_MAX: c_int = -8;

    set_malloc(M_ARENA_MAX, 1);
}

#[cfg(target_env = "gnu")]
fn set_malloc(parameter: c_int, value: c_int) {
    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    // SAFETY: glibc exports this symbol with this signature. If it rejects a value, only speed and
    // memory are affected, so the result is ignored.
    unsafe {
        mallopt(parameter, value);
    }
}

#[cfg(not(target_env = "gnu"))]
fn set_malloc(_: c_int, _: c_int) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets the thread count that applies without callers, and returns the previous one; other tests may run meanwhile.
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
