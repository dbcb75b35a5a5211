//! Processor, instruction set and BLAS library that this process uses.

use serde::{Deserialize, Serialize};

use super::blas;
use super::extension::Extension;

/// The machine as used by this process or, in a manifest, by the process that wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// The instruction set, as in `RANK_STUDY_INSTRUCTIONS`; empty in manifests
    /// that do not record it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// The BLAS library, with its options and build target.
    pub blas: String,
    /// The processor for which the library chose its kernels; empty in manifests that do not record it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub blas_core: String,
}

impl Machine {
    /// Describes this machine.
    ///
    /// # Panics
    /// If `RANK_STUDY_INSTRUCTIONS` names an instruction set that is not available; call
    /// [`check_instructions`](crate::numerics::check_instructions) first.
    pub fn here() -> Self {
        Self {
            cpu: cpu(),
            instructions: Extension::widest().name().to_owned(),
            blas: blas::description(),
            blas_core: blas::core(),
        }
    }
}

fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::Machine;

    #[test]
    fn the_library_names_its_kernels() {
        let here = Machine::here();
        assert!(here.blas.starts_with("OpenBLAS"), "{here:?}");
        assert!(!here.blas_core.is_empty() && !here.cpu.is_empty(), "{here:?}");
    }
}
