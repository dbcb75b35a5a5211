//! Processor, instruction set and BLAS library that this process uses.

use serde::{Deserialize, Serialize};

use super::blas;
use super::extension::{Extension, instructions_there};

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

    /// A better value for `OPENBLAS_CORETYPE`, if OpenBLAS chose kernels without AVX on a processor
    /// that has AVX2 or AVX-512. Those kernels take 1.2 times as long as the Haswell ones for the singular values of n = 1,024
    /// and 2,048 (OpenBLAS 0.3.21, an AVX2 processor), and 1.5 times as long for the 512 leading ones of
    /// n = 8,192.
    pub fn better_blas_core(&self) -> Option<&'static str> {
        let (there, _) = instructions_there();
        better_core(&self.blas, &self.blas_core, there[0])
    }
}

/// OpenBLAS's kernels for x86-64 processors without AVX. The first of them is its fallback
/// for unknown processors.
const BEFORE_AVX: [&str; 11] = [
    "Prescott",
    "Core2",
    "Penryn",
    "Dunnington",
    "Nehalem",
    "Atom",
    "Opteron",
    "Opteron_SSE3",
    "Barcelona",
    "Nano",
    "Bobcat",
];

/// The better choice for a library with this description that chose the kernels of `core` on a processor whose widest
/// instruction set is `widest`; `None` if its choice was right.
fn better_core(library: &str, core: &str, widest: &str) -> Option<&'static str> {
    // A library built for one processor has no other kernels.
    if !library.contains("DYNAMIC_ARCH") || !BEFORE_AVX.contains(&core) {
        return None;
    }
    match widest {
        "avx512" => Some("SkylakeX"),
        "avx2" => Some("Haswell"),
        _ => None,
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
    use super::{Machine, better_core};

    #[test]
    fn kernels_of_before_avx_are_told_of_where_the_processor_has_more() {
        let dynamic = "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Prescott MAX_THREADS=64";
        assert_eq!(better_core(dynamic, "Prescott", "avx512"), Some("SkylakeX"));
        assert_eq!(better_core(dynamic, "Prescott", "avx2"), Some("Haswell"));
        assert_eq!(better_core(dynamic, "Nehalem", "portable"), None);
        assert_eq!(better_core(dynamic, "Haswell", "avx512"), None);
        assert_eq!(better_core("OpenBLAS 0.3.21 Prescott", "Prescott", "avx2"), None);
    }

    #[test]
    fn the_library_names_its_kernels() {
        let here = Machine::here();
        assert!(here.blas.starts_with("OpenBLAS"), "{here:?}");
        assert!(!here.blas_core.is_empty() && !here.cpu.is_empty(), "{here:?}");
    }
}
