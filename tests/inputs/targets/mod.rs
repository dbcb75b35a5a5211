//! What is read: a target each, which makes its whole files, and does with an altered one what the program does.

mod definitions;
mod matrices;
mod models;
mod rows;
mod runs;
mod texts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use definitions::{definitions, manifests, training_definitions};
use matrices::{csv, npy, npz, parquet, safetensors, torch};
use models::{exported_heads, gguf, model_configurations, model_weights, tokenizers};
use rows::{parts, rows};
use runs::{checkpoints, run_logs, shown_runs};
use texts::{texts, token_files};

use super::forms::Form;
use super::target::{Prepare, Whole};

/// Every target by its key, and a test of each, with how many inputs docs/reliability.md tells of.
macro_rules! targets {
    ($($key:literal, $name:ident, $whole:literal;)+) => {
        pub const TARGETS: &[(&str, Prepare)] = &[$(($key, $name)),+];

        #[cfg(test)]
        mod promises {
            use crate::promise::keeps;
            $(
                #[test]
                fn $name() {
                    keeps(concat!("inputs-", $key), $key, $whole);
                }
            )+
        }
    };
}

targets! {
    "npy", npy, 200_000;
    "npz", npz, 100_000;
    "torch", torch, 100_000;
    "csv", csv, 150_000;
    "parquet", parquet, 40_000;
    "safetensors", safetensors, 150_000;
    "definitions", definitions, 100_000;
    "training-definitions", training_definitions, 100_000;
    "manifests", manifests, 80_000;
    "rows", rows, 10_000;
    "config", model_configurations, 100_000;
    "tokenizer", tokenizers, 100_000;
    "model-weights", model_weights, 100_000;
    "gguf", gguf, 100_000;
    "exported", exported_heads, 100_000;
    "checkpoints", checkpoints, 30_000;
    "run-logs", run_logs, 10_000;
    "shown-runs", shown_runs, 10_000;
    "texts", texts, 30_000;
    "token-files", token_files, 1_000;
    "parts", parts, 10_000;
}

/// A path of this repository.
fn here(path: &str) -> PathBuf {
    Path::new(super::ROOT).join(path)
}

/// Every file below a folder, if there is such a folder, in order.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Whole files of one form.
fn all(form: Form, files: impl IntoIterator<Item = Vec<u8>>) -> Vec<Whole> {
    files.into_iter().map(|bytes| Whole { bytes, form }).collect()
}

/// The program, which must do what it is asked to, at work in a folder.
fn program(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(super::binary());
    let output = command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// Files and folders as they were, to be put back before every input.
struct Kept {
    folder: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Kept {
    fn of(folder: &Path) -> Self {
        let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
        Self {
            folder: folder.to_owned(),
            files: files_below(folder).into_iter().map(read).collect(),
        }
    }

    /// The file whose path ends so.
    fn place(&self, name: &str) -> usize {
        let found = self.files.iter().position(|(path, _)| path.ends_with(name));
        found.unwrap_or_else(|| panic!("no {name}"))
    }

    /// Everything as it was, but one file.
    fn put_back(&self, altered: usize, bytes: &[u8]) {
        fs::remove_dir_all(&self.folder).unwrap();
        for (at, (path, whole)) in self.files.iter().enumerate() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, if at == altered { bytes } else { whole }).unwrap();
        }
    }
}
