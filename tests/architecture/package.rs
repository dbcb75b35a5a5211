//! What the package holds, and what goes with the program: licences, citation, completions.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::binary::Folder;

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_package_has_what_builds_and_nothing_that_was_measured() {
    let ran = Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline"])
        .current_dir(home())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let list = String::from_utf8(ran.stdout).unwrap();
    let files: Vec<&str> = list.lines().collect();
    let needed = [
        "Cargo.toml", "Cargo.lock", "build.rs", "src/lib.rs", "src/main.rs", "README.md",
        "LICENSE-MIT", "LICENSE-APACHE", "CITATION.cff", "SECURITY.md",
        "analysis/logit-growth.toml", "examples/fit_one_matrix.rs",
    ];
    for needed in needed.into_iter().chain(["src/lm/cuda/kernels/attention.cu"]) {
        assert!(files.contains(&needed), "{needed} is not in the package");
    }
    let other = |file: &&&str| {
        let folder = file.split('/').next().unwrap_or_default();
        let is_code = ["src", "benches", "examples", "analysis", "python"].contains(&folder);
        file.contains('/') && !is_code || file.starts_with('.') && !file.starts_with(".cargo_vcs")
    };
    let others: Vec<_> = files.iter().filter(other).collect();
    assert!(others.is_empty(), "{others:?}");
    // Every file that the code includes is there.
    let rust = files.iter().filter(|file| file.ends_with(".rs") && file.starts_with("src/"));
    let mut included = 0;
    for file in rust {
        let text = std::fs::read_to_string(home().join(file)).unwrap();
        for rest in text.split("include_str!(\"").skip(1) {
            let name = rest.split('"').next().unwrap();
            let path = Path::new(file).parent().unwrap().join(name);
            let of_tests = file.ends_with("tests.rs") || file.contains("/tests/");
            let is_there = !name.starts_with("../..") && files.contains(&path.to_str().unwrap());
            assert!(of_tests || is_there || name == "../../Cargo.lock", "{file} includes {name}");
            included += 1;
        }
    }
    assert!(included >= 10, "{included}");
}

#[test]
fn licences_and_citation_are_those_of_the_manifest() {
    let read = |name: &str| std::fs::read_to_string(home().join(name)).unwrap();
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let package = manifest["package"].as_table().unwrap();
    assert_eq!(package["license"].as_str(), Some("MIT OR Apache-2.0"));
    assert!(read("LICENSE-MIT").contains("Permission is hereby granted, free of charge"));
    assert!(read("LICENSE-APACHE").contains("Version 2.0, January 2004"));
    let citation = read("CITATION.cff");
    let version = format!("\nversion: {}\n", package["version"].as_str().unwrap());
    assert!(citation.starts_with("cff-version: 1.2.0\n") && citation.contains(&version));
    assert!(citation.contains("arXiv:2505.15548"));
}

#[test]
fn every_shell_has_completions() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.done(&["completions", shell]);
        for name in ["reproduce", "max-logit"] {
            assert!(script.contains(name), "{shell} does not know {name}");
        }
    }
    assert_eq!(folder.run(&["completions", "tcsh"]).code, Some(2));
}
