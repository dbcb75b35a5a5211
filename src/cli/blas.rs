//! OpenBLAS starts no threads; and what to set where it does not know the processor.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use rank_study::numerics::Machine;

/// What OpenBLAS asks at its own start, before `main`, and would answer from the environment: how many threads to start.
/// That of the program stands before the library's. The others are never used
/// ([`rank_study::numerics::prepare_process`]), take memory and addresses each, one for every core, and where they do not
/// get them (`ulimit -v`) it ends the process, or they try again without end.
// SAFETY: the name and the type are those of the function that OpenBLAS calls.
#[unsafe(no_mangle)]
extern "C" fn openblas_num_threads_env() -> c_int {
    1
}

/// Says, once a process and before matrices are decomposed, that OpenBLAS fell back to kernels of old
/// processors, where it did. What else is computed does not go through it, or not for long.
pub fn warn_of_slow_blas(say: impl FnOnce(&str)) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let machine = Machine::here();
    let Some(better) = machine.better_blas_core() else { return };
    if !SAID.swap(true, Ordering::Relaxed) {
        say(&format!(
            "warning: OpenBLAS uses its kernels for {}, which can be 1.5 times slower here; set \
             OPENBLAS_CORETYPE={better} in the environment",
            machine.blas_core
        ));
    }
}
