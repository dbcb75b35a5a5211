//! OpenBLAS settings: no threads of its own, and a warning if it does not recognise the processor.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use rank_study::numerics::Machine;

/// OpenBLAS calls this function when it is loaded, before `main`, to get the number of threads to start. The linker
/// prefers the program's definition to the library's, which reads the environment. More threads would not be used
/// ([`rank_study::numerics::prepare_process`]), but each takes memory and addresses, one per core. If `ulimit -v`
/// denies these, OpenBLAS ends the process or retries without end.
// SAFETY: name and type match the function that OpenBLAS calls.
#[unsafe(no_mangle)]
extern "C" fn openblas_num_threads_env() -> c_int {
    1
}

/// Warns once per process, before matrices are decomposed, if OpenBLAS fell back to kernels for old processors. Other
/// computations use OpenBLAS little or not at all.
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
