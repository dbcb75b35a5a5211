//! Settings of the process that are made once, at its start.

use super::blas::single_threaded_blas;

/// Sets the process up for training and fitting at full speed; results do not depend on it.
///
/// - OpenBLAS and the tensor library compute on the thread that calls them. The tensor library
///   otherwise adds large tensors on a pool of its own that waits by spinning and serves one caller
///   at a time, so that two trainings side by side would wait for each other; its size can be set
///   through the environment only.
/// - With glibc, memory that a step frees is kept for the next step rather than handed back and
///   cleared anew, which takes a tenth of a training step.
///
/// # Safety
/// No other thread may run yet, since this writes to the process's environment.
pub unsafe fn prepare_process() {
    // SAFETY: the caller promises that no other thread reads the environment meanwhile.
    unsafe { std::env::set_var("CANDLE_NUM_THREADS", "1") };
    single_threaded_blas();
    keep_freed_memory();
}

#[cfg(target_env = "gnu")]
fn keep_freed_memory() {
    use std::ffi::c_int;

    // Their values in glibc's malloc.h.
    const M_TRIM_THRESHOLD: c_int = -1;
    const M_MMAP_THRESHOLD: c_int = -3;

    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    // SAFETY: glibc exports this symbol with this signature. Whether it accepts a value decides
    // about speed only, so what it returns is of no interest.
    unsafe {
        mallopt(M_TRIM_THRESHOLD, 1 << 30);
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
    }
}

#[cfg(not(target_env = "gnu"))]
fn keep_freed_memory() {}
