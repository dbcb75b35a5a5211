//! A warning if OpenBLAS does not recognise the processor.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::numerics::Machine;

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
