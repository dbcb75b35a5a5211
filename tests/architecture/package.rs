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
    for needed in [
        "Cargo.toml",
        "Cargo.lock",
        "build.rs",
        "src/lib.rs",
        "src/main.rs",
        "src/report/page.js",
        "src/report/page.css",
        "src/cli/slurm/job.sh",
        "src/lm/cuda/kernels/attention.cu",
        "analysis/logit-growth.toml",
        "examples/fit_one_matrix.rs",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "CITATION.cff",
        "SECURITY.md",
    ] {
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
        for name in text.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next())
        {
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

/// The commands that help lists, `help` itself left out.
fn commands(folder: &Folder) -> Vec<String> {
    let text = folder.done(&["--help"]);
    let (list, _) = text.split_once("\nOptions:\n").unwrap();
    let (_, list) = list.split_once("[COMMAND]\n").unwrap();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_shell_completes_every_command() {
    let folder = Folder::new();
    let names = commands(&folder);
    assert!(names.len() >= 19, "{names:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.done(&["completions", shell]);
        for name in &names {
            assert!(script.contains(name.as_str()), "{shell} does not know {name}");
        }
        assert!(script.contains("max-logit"), "{shell} does not know flags");
        // A shell that is there reads it.
        folder.write("script", &script);
        if ["bash", "zsh", "fish"].contains(&shell)
            && let Ok(read) = Command::new(shell).args(["-n"]).arg(folder.path("script")).output()
        {
            assert!(read.status.success(), "{shell}: {}", String::from_utf8_lossy(&read.stderr));
        }
    }
    assert!(folder.run(&["completions", "tcsh"]).code == Some(2));
}
