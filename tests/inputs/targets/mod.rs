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

/// Every target by its key.
pub const TARGETS: &[(&str, Prepare)] = &[
    ("npy", npy),
    ("npz", npz),
    ("torch", torch),
    ("csv", csv),
    ("parquet", parquet),
    ("safetensors", safetensors),
    ("definitions", definitions),
    ("training-definitions", training_definitions),
    ("manifests", manifests),
    ("rows", rows),
    ("config", model_configurations),
    ("tokenizer", tokenizers),
    ("model-weights", model_weights),
    ("gguf", gguf),
    ("exported", exported_heads),
    ("checkpoints", checkpoints),
    ("run-logs", run_logs),
    ("shown-runs", shown_runs),
    ("texts", texts),
    ("token-files", token_files),
    ("parts", parts),
];

/// A path of this repository.
fn here(path: &str) -> PathBuf {
    Path::new(super::ROOT).join(path)
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
        let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((path.clone(), fs::read(path).unwrap())),
                }
            }
        }
        files.sort();
        Self { folder: folder.to_owned(), files }
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
