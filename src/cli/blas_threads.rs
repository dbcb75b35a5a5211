//! OpenBLAS starts no threads.

use std::ffi::c_int;

/// What OpenBLAS asks at its own start, before `main`, and would answer from the environment: how many threads to start.
/// That of the program stands before the library's. The others are never used
/// ([`rank_study::numerics::prepare_process`]), take memory and addresses each, one for every core, and where they do not
/// get them (`ulimit -v`) it ends the process, or they try again without end.
// SAFETY: the name and the type are those of the function that OpenBLAS calls.
#[unsafe(no_mangle)]
extern "C" fn openblas_num_threads_env() -> c_int {
    1
}
