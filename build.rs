//! Links the system's OpenBLAS, and compiles the CUDA kernels to PTX where the feature `cuda` asks for them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const KERNELS: &str = "src/lm/cuda/kernels";
const UNITS: [&str; 2] = ["attention", "rows"];
/// Ampere: the first with bfloat16 products. The driver compiles PTX on for later ones.
const ARCHITECTURE: &str = "compute_80";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Its LAPACK is what `ndarray-linalg` calls. The crates that look for it could also download and compile it,
    // and bring a whole TLS stack for that.
    if let Err(error) = pkg_config::probe_library("openblas") {
        panic!(
            "OpenBLAS was not found; on Debian and Ubuntu: apt-get install libopenblas-dev pkg-config\n{error}"
        );
    }
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed={KERNELS}");
    for variable in ["CUDA_HOME", "PATH", "NVCC_CCBIN"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for unit in UNITS {
        compile(unit, &out);
    }
}

fn compile(unit: &str, out: &Path) {
    let nvcc = match env::var_os("CUDA_HOME") {
        Some(home) => Path::new(&home).join("bin").join("nvcc"),
        None => "nvcc".into(),
    };
    let ran = Command::new(&nvcc)
        .args(["--ptx", "-O3", "-std=c++17", "-arch", ARCHITECTURE, "-o"])
        .arg(out.join(unit).with_extension("ptx"))
        .arg(Path::new(KERNELS).join(unit).with_extension("cu"))
        .status();
    match ran {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} failed on {unit}.cu: {status}", nvcc.display()),
        Err(e) => panic!("the feature `cuda` needs nvcc; {}: {e}", nvcc.display()),
    }
}
