//! How many threads one call into a library below this one may use: one.

use std::ffi::c_int;

// Naming this crate is what links the system's OpenBLAS, for ndarray's products too.
use ndarray_linalg as _;

unsafe extern "C" {
    fn openblas_set_num_threads(threads: c_int);
}

/// Makes every later call into OpenBLAS run on the thread that calls it.
///
/// Cells of a study and tiles of an operator are what runs in parallel here. Threads of OpenBLAS
/// nested inside those would oversubscribe the cores, and would make a product's rounding, so
/// also a row, depend on how many there are.
pub(crate) fn single_threaded_blas() {
    // SAFETY: OpenBLAS exports this symbol with this signature, and it may be called at any time.
    unsafe { openblas_set_num_threads(1) }
}

/// Makes OpenBLAS and the tensor library compute on the thread that calls them. A program calls
/// this first of all; without it results are the same, and training is slower.
///
/// The tensor library adds large tensors on a pool of its own that waits by spinning and serves
/// one caller at a time, so two trainings side by side would wait for each other; its size can
/// be set through the environment only.
///
/// # Safety
/// No other thread may run yet, since this writes to the process's environment.
pub unsafe fn single_threaded_kernels() {
    // SAFETY: the caller promises that no other thread reads the environment meanwhile.
    unsafe { std::env::set_var("CANDLE_NUM_THREADS", "1") };
    single_threaded_blas();
}
