//! Settings of the process that are made once, at its start.

use super::blas::single_threaded_blas;

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

#[cfg(target_env = "gnu")]
fn keep_freed_memory() {
    use std::ffi::c_int;

    // Values from glibc's malloc.h.
    const M_TRIM_THRESHOLD: c_int = -1;
    const M_MMAP_THRESHOLD: c_int = -3;

    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    // SAFETY: glibc exports this symbol with this signature. If it rejects a value, only
    // speed is affected, so the result is ignored.
    unsafe {
        mallopt(M_TRIM_THRESHOLD, 1 << 30);
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
    }
}

#[cfg(not(target_env = "gnu"))]
fn keep_freed_memory() {}
