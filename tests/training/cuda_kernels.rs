//! The CUDA kernels of the trainer, compiled as plain C++ and run on an emulated device against
//! references in double precision: `tests/cuda`. No GPU and no CUDA toolkit is needed.

use std::path::Path;
use std::process::Command;

/// Runs a command that must succeed.
fn done(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{command:?}: {}\n{out}{error}", output.status);
}

#[test]
fn every_kernel_matches_its_reference() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda");
    let temporary = tempfile::tempdir().unwrap();
    let program = temporary.path().join("cuda-kernels");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let sources = ["attention", "rows", "host", "main"].map(|name| format!("{name}.cpp"));
    let mut compile = Command::new(compiler);
    compile.args(["-O2", "-std=c++17", "-I."]).args(sources).arg("-o").arg(&program);
    done(compile.current_dir(folder));
    done(&mut Command::new(program));
}
