//! The CUDA kernels of the trainer, compiled as plain C++ and run on an emulated device against
//! references in double precision: `tests/cuda`. No GPU and no CUDA toolkit is needed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const SOURCES: [&str; 4] = ["attention", "rows", "host", "main"];

/// Starts one run of the compiler.
fn start(compiler: &str, arguments: &[PathBuf]) -> Child {
    let mut command = Command::new(compiler);
    command.args(["-O2", "-std=c++17"]).args(arguments);
    match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => {
            panic!("no C++ compiler: `{compiler}` (set CXX to one) does not run: {error}")
        }
    }
}

fn assert_success(what: &str, output: &Output) {
    let [out, error] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{what}: {}\n{out}{error}", output.status);
}

#[test]
fn every_kernel_matches_its_reference() {
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda");
    let temporary = tempfile::tempdir().unwrap();
    let object = |name: &str| temporary.path().join(format!("{name}.o"));

    let compiling = SOURCES.map(|name| {
        let source = folder.join(format!("{name}.cpp"));
        let include = format!("-I{}", folder.display()).into();
        start(&compiler, &["-c".into(), include, source, "-o".into(), object(name)])
    });
    for (name, child) in SOURCES.iter().zip(compiling) {
        let output = child.wait_with_output().unwrap();
        assert_success(&format!("compiling {name}.cpp"), &output);
    }
    let program = temporary.path().join("cuda-kernels");
    let mut arguments: Vec<PathBuf> = SOURCES.map(object).into();
    arguments.extend(["-o".into(), program.clone()]);
    assert_success("linking", &start(&compiler, &arguments).wait_with_output().unwrap());

    let output = Command::new(&program).output().unwrap();
    assert_success("a kernel is off", &output);
}
