//! What to set where OpenBLAS does not know the processor.

use std::sync::atomic::{AtomicBool, Ordering};

use rank_study::numerics::Machine;

/// Says, once a process and before matrices are decomposed, that OpenBLAS fell back to kernels of old
/// processors, where it did. What else is computed does not go through it, or not for long.
pub fn warn(say: impl FnOnce(&str)) {
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
