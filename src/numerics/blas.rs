//! OpenBLAS: how many threads one call may use, and which library it is.

use std::ffi::{CStr, c_char, c_int};

// Its decompositions are what the library is linked for (build.rs).
use ndarray_linalg as _;

unsafe extern "C" {
    fn openblas_set_num_threads(threads: c_int);
    fn openblas_get_config() -> *const c_char;
    fn openblas_get_corename() -> *const c_char;
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
