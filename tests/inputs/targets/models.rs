//! Published models and exported heads, as `predict` and studies read them: a folder's files one at a time.

use std::fs;
use std::path::{Path, PathBuf};

use rank_study::lm::{ExportedHeads, LmError, PretrainedModel, Probed};
use rank_study::run::ModelSource;

use super::super::forms::{Form, Headed};
use super::super::target::{Target, Whole};
use super::here;

const PUBLISHED: &str = "tests/reference/published";

/// A target that is one file, called so, of every published model that has it.
fn of_folders(place: &Path, file: &'static str, form: Form) -> Target {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(here(PUBLISHED)).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.join(file).is_file());
    folders.sort();
    let (mut files, mut copies) = (Vec::new(), Vec::new());
    for (at, folder) in folders.iter().enumerate() {
        let copy = place.join(at.to_string());
        fs::create_dir_all(&copy).unwrap();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            // Beside a `config.json` a `.gguf` would not be read.
            let is_beside = file == "model.gguf" && name != file;
            if name != "expected.safetensors" && !is_beside && path.is_file() {
                fs::copy(&path, copy.join(name)).unwrap();
            }
        }
        files.push(Whole { bytes: fs::read(folder.join(file)).unwrap(), form });
        copies.push(copy);
    }
    let read = move |of: usize, bytes: &[u8]| {
        fs::write(copies[of].join(file), bytes).unwrap();
        is_used(&copies[of])
    };
    Target { files, read: Box::new(read) }
}

/// Reads a model, and looks at its heads on a few tokens.
fn is_used(folder: &Path) -> bool {
    let used = || -> Result<(), LmError> {
        let model = PretrainedModel::read(folder)?;
        let mut passage = model.beginning();
        passage.extend(model.encode("The cat's 12 naïve\n hats").unwrap_or_default());
        passage.truncate(model.context().min(5));
        if passage.is_empty() {
            passage.push(0);
        }
        model.token_texts(&passage);
        for head in model.probe(&passage)? {
            head.attention();
        }
        Ok(())
    };
    if used().is_err() {
        return false;
    }
    let (source, _) = ModelSource::in_folder(folder).unwrap();
    source.head_kinds(0);
    true
}

pub fn model_configurations(place: &Path) -> Target {
    of_folders(place, "config.json", Form::Text)
}

pub fn tokenizers(place: &Path) -> Target {
    of_folders(place, "tokenizer.json", Form::Text)
}

pub fn model_weights(place: &Path) -> Target {
    of_folders(place, "model.safetensors", Form::Headed(Headed::Safetensors))
}

pub fn gguf(place: &Path) -> Target {
    of_folders(place, "model.gguf", Form::Bytes)
}

pub fn exported_heads(place: &Path) -> Target {
    let path = place.join("heads.safetensors");
    let form = Form::Headed(Headed::Safetensors);
    let files = ["bert", "gemma2", "gpt_oss", "llama-yarn", "t5"]
        .map(|name| here(&format!("tests/reference/exported/{name}.safetensors")))
        .map(|file| Whole { bytes: fs::read(file).unwrap(), form });
    let read = move |_, bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let used = || -> Result<(), LmError> {
            let heads = ExportedHeads::read(&path)?;
            let passage = heads.tokens(None, None, heads.context())?;
            for layer in heads.held_layers() {
                heads.head_kinds(layer);
                for head in heads.probe_layer(std::slice::from_ref(&passage), layer)?.concat() {
                    head.attention();
                }
            }
            Ok(())
        };
        used().is_ok()
    };
    Target { files: files.into(), read: Box::new(read) }
}
