//! The weights of a published model by name: from one `model.safetensors`, several with an index, or a `.gguf`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ndarray::Array1;
use serde::Deserialize;

use super::layers::{Linear, Norm};
use super::stored::{GgufFile, Stored};
use super::types::NormType;
use crate::lm::LmError;
use crate::lm::tensor_file::{SafetensorsFile, TensorSource};

const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Prefixes of the weights for texts in models that read images or sounds, too.
const WITHIN: [&str; 2] = ["language_model.model.", "model.language_model."];

/// The weights of a model; all names may share a prefix. A requested weight must exist and have the
/// given shape. Matrices stay on disk until they are used.
pub(super) struct Weights {
    /// Tensors of readable types, by name.
    tensors: BTreeMap<String, Stored>,
    /// The file to name in errors about missing tensors.
    all: Arc<dyn TensorSource>,
    prefix: &'static str,
}

/// The contents of `model.safetensors.index.json`.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Weights {
    /// Reads the weights of a folder. Names have the prefix `prefix`, or one of [`WITHIN`], if the weight `first` has it: a
    /// model saved with a head for a task has the prefix, the bare model does not.
    pub(super) fn read(folder: &Path, prefix: &'static str, first: &str) -> Result<Self, LmError> {
        let (whole, index) = (folder.join(WEIGHTS), folder.join(INDEX));
        let mut weights = match (whole.exists(), index.exists()) {
            (true, _) => {
                let file = Arc::new(SafetensorsFile::open(&whole)?);
                let names = file.names().into_iter().map(|name| (name, file.clone()));
                Self::from_files(file.clone(), names)
            }
            (false, true) => Self::from_index(folder, &index)?,
            (false, false) => {
                let why = format!(
                    "is missing, and so is {INDEX}; save the model with save_pretrained as safetensors"
                );
                return Err(LmError::file(&whole, why));
            }
        };
        let has = |prefix: &&&str| weights.tensors.contains_key(&format!("{prefix}{first}"));
        if let Some(&found) = [prefix].iter().chain(&WITHIN).find(has) {
            weights.prefix = found;
        }
        Ok(weights)
    }

    /// Collects tensors by name, each with its file; `first` is one of the files.
    fn from_files(
        first: Arc<SafetensorsFile>,
        named: impl Iterator<Item = (String, Arc<SafetensorsFile>)>,
    ) -> Self {
        let tensor = |(name, file): (String, Arc<SafetensorsFile>)| {
            let found = Stored::find(&(file as Arc<dyn TensorSource>), &name)?;
            Some((name, found))
        };
        Self { tensors: named.filter_map(tensor).collect(), all: first, prefix: "" }
    }

    fn from_index(folder: &Path, path: &Path) -> Result<Self, LmError> {
        let wrong = |why: String| LmError::file(path, why);
        let bytes = std::fs::read(path).map_err(LmError::io(path))?;
        let Index { weight_map } = serde_json::from_slice(&bytes)
            .map_err(|e| wrong(format!("{e}; use the file published with the model")))?;
        let mut files: BTreeMap<&str, Arc<SafetensorsFile>> = BTreeMap::new();
        for (name, shard) in &weight_map {
            if files.contains_key(shard.as_str()) {
                continue;
            }
            let is_plain = Path::new(shard).file_name().is_some_and(|file| file == shard.as_str());
            let there = folder.join(shard);
            if !is_plain || !there.is_file() {
                return Err(wrong(format!(
                    "places {name} in {shard}, which is missing; download every shard of the model"
                )));
            }
            files.insert(shard, Arc::new(SafetensorsFile::open(&there)?));
        }
        let Some(first) = files.values().next() else {
            return Err(wrong("names no tensor; use the file published with the model".to_owned()));
        };
        if let Some((name, shard)) =
            weight_map.iter().find(|(name, shard)| !files[shard.as_str()].has(name))
        {
            return Err(wrong(format!(
                "places {name} in {shard}, which has no such tensor; use both files of one published model"
            )));
        }
        let named =
            weight_map.iter().map(|(name, shard)| (name.clone(), files[shard.as_str()].clone()));
        Ok(Self::from_files(first.clone(), named))
    }

    /// The weights of a `.gguf`.
    pub(super) fn from_gguf(file: &Arc<GgufFile>) -> Self {
        let source: Arc<dyn TensorSource> = file.clone();
        let tensor = |name: &str| Some((name.to_owned(), Stored::find(&source, name)?));
        Self { tensors: file.names().filter_map(tensor).collect(), all: source, prefix: "" }
    }

    /// Whether there is a tensor of this name, without the prefix.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(&format!("{}{name}", self.prefix))
    }

    /// The tensor of this name beside those with the prefix; `None` if it is missing or unreadable.
    pub(super) fn beside(&self, name: &str) -> Option<Stored> {
        self.tensors
            .get(name)
            .or_else(|| self.tensors.get(&format!("language_model.{name}")))
            .cloned()
    }

    /// The tensor of this name; fails if it is missing or has other dimensions.
    pub(super) fn tensor(&self, name: &str, dimensions: &[usize]) -> Result<Stored, LmError> {
        const WHOSE: &str = "use weights and config.json of one published model";
        let name = format!("{}{name}", self.prefix);
        match self.tensors.get(&name) {
            Some(found) if found.dimensions() == dimensions => Ok(found.clone()),
            Some(found) => {
                let is = found.dimensions();
                Err(found.wrong(format!(
                    "{name} is {is:?}, but the model needs {dimensions:?}; {WHOSE}"
                )))
            }
            None => Err(self
                .all
                .wrong(format!("has no tensor {name} of float32, float16 or bfloat16; {WHOSE}"))),
        }
    }

    /// The dimensions of a tensor; `None` if it is missing or unreadable.
    pub(super) fn dimensions(&self, name: &str) -> Option<&[usize]> {
        Some(self.tensors.get(&format!("{}{name}", self.prefix))?.dimensions())
    }

    pub(super) fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, LmError> {
        self.tensor(name, &[length])?.whole()
    }

    /// A projection; its matrix is stored as outputs × inputs if it is `transposed`. Without a bias in the file it has none,
    /// unless it `needs_bias`.
    pub(super) fn linear(
        &self,
        name: &str,
        [inputs, outputs]: [usize; 2],
        transposed: bool,
        needs_bias: bool,
    ) -> Result<Linear, LmError> {
        let shape = if transposed { [outputs, inputs] } else { [inputs, outputs] };
        let weights = self.tensor(&format!("{name}.weight"), &shape)?;
        let bias = format!("{name}.bias");
        let bias = (needs_bias || self.has(&bias)).then(|| self.vector(&bias, outputs));
        Ok(Linear { weights, transposed, bias: bias.transpose()? })
    }

    /// A norm. Models converted from TensorFlow have `gamma` and `beta` instead of `weight` and `bias`.
    pub(super) fn norm(
        &self,
        name: &str,
        channels: usize,
        epsilon: f32,
        of: NormType,
    ) -> Result<Norm, LmError> {
        let old = self.has(&format!("{name}.gamma"));
        let names = if old { ["gamma", "beta"] } else { ["weight", "bias"] };
        let [gain, bias] = names.map(|part| format!("{name}.{part}"));
        let (offset, has_gain, bias) = match of {
            NormType::Rms { offset } => (offset, true, None),
            NormType::Layer { offset, has_gain, has_bias } => {
                let bias = match has_bias {
                    true => self.vector(&bias, channels)?,
                    false => Array1::zeros(channels),
                };
                (offset, has_gain, Some(bias))
            }
        };
        let gain = match has_gain {
            true => self.vector(&gain, channels)? + offset,
            false => Array1::ones(channels),
        };
        Ok(Norm { gain, bias, epsilon })
    }
}
