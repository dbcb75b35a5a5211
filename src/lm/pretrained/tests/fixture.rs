//! Copies of the small models of tests/reference/published, for tests that alter them.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

pub(super) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/published").join(name)
}

pub(super) fn copy_of(name: &str) -> TempDir {
    let copy = tempdir().unwrap();
    copy_to(name, copy.path());
    copy
}

fn copy_to(name: &str, copy: &Path) {
    for entry in fs::read_dir(folder(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
}

pub(super) fn change_json(path: &Path, edit: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    edit(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Gives every weight of a folder another name, or none.
pub(super) fn rename_weights(folder: &Path, name: impl Fn(&str) -> Option<String>) {
    let path = folder.join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let weights = SafeTensors::deserialize(&bytes).unwrap();
    let named = weights.iter().filter_map(|(old, view)| Some((name(old)?, view)));
    let all = safetensors::serialize(named.collect::<Vec<_>>(), None).unwrap();
    fs::write(path, all).unwrap();
}

/// A small published model, for the tests of studies.
#[cfg(feature = "study")]
pub(crate) struct Published(&'static str);

#[cfg(feature = "study")]
impl Published {
    pub(crate) fn gpt2() -> Self {
        Self("gpt2")
    }

    pub(crate) fn bert() -> Self {
        Self("bert")
    }

    pub(crate) fn write_with_tokenizer(&self, folder: &Path) {
        copy_to(self.0, folder);
    }
}
