//! A published model's weights, by name: of one `model.safetensors`, of several with their index, or of a `.gguf`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ndarray::Array1;
use serde::Deserialize;

use super::arithmetic::{Bias, Linear, Norm, NormKind};
use super::stored::{GgufFile, SafetensorsFile, Stored, TensorSource};
use crate::lm::LmError;

const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The weights of a model, whose names all begin with one prefix or none. What is asked for must be there and have the
/// shape asked for; matrices stay where they lie until they are multiplied by.
pub(super) struct Weights {
    /// By name.
    tensors: BTreeMap<String, Stored>,
    /// Names of types that are not read, with the type.
    unreadable: BTreeMap<String, String>,
    /// What is said to be wrong where a tensor is not there.
    all: Arc<dyn TensorSource>,
    prefix: &'static str,
}

/// What `model.safetensors.index.json` says.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Weights {
    /// The weights of a folder. Their names begin with the one of `prefixes` with which that called `first` does: a model
    /// with a head for some task is saved with it, the bare model without.
    pub(super) fn read(
        folder: &Path,
        prefixes: &[&'static str],
        first: &str,
    ) -> Result<Self, LmError> {
        let (whole, index) = (folder.join(WEIGHTS), folder.join(INDEX));
        let mut weights = match (whole.exists(), index.exists()) {
            (true, _) => Self::of_file(SafetensorsFile::open(&whole)?),
            (false, true) => Self::of_index(folder, &index)?,
            (false, false) => {
                let why = format!(
                    "is missing, and so is {INDEX}; save the model with save_pretrained as safetensors"
                );
                return Err(LmError::File { path: whole, why });
            }
        };
        let has = |prefix: &&&str| weights.has(&format!("{prefix}{first}"));
        weights.prefix = prefixes.iter().find(has).copied().unwrap_or("");
        Ok(weights)
    }

    fn of_file(file: SafetensorsFile) -> Self {
        let file = Arc::new(file);
        let names: Vec<String> = file.names().map(str::to_owned).collect();
        let mut weights = Self {
            tensors: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            all: file.clone(),
            prefix: "",
        };
        for name in names {
            weights.add(name, &file);
        }
        weights
    }

    fn of_index(folder: &Path, path: &Path) -> Result<Self, LmError> {
        let wrong = |why: String| LmError::File { path: path.to_owned(), why };
        let bytes =
            std::fs::read(path).map_err(|source| LmError::Io { path: path.to_owned(), source })?;
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
        let mut weights = Self {
            tensors: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            all: first.clone(),
            prefix: "",
        };
        for (name, shard) in &weight_map {
            let file = &files[shard.as_str()];
            if !file.has(name) {
                return Err(wrong(format!(
                    "places {name} in {shard}, which has no such tensor; use both files of one published \
                     model"
                )));
            }
            weights.add(name.clone(), file);
        }
        Ok(weights)
    }

    /// The weights of a `.gguf`, each with the name that `named` gives it; those without one are left.
    pub(super) fn of_gguf(file: &Arc<GgufFile>, named: impl Fn(&str) -> Option<String>) -> Self {
        let source: Arc<dyn TensorSource> = file.clone();
        let tensor = |name: &str| Some((named(name)?, Stored::find(&source, name)?));
        let tensors = file.names().filter_map(tensor).collect();
        Self { tensors, unreadable: BTreeMap::new(), all: source, prefix: "" }
    }

    fn add(&mut self, name: String, file: &Arc<SafetensorsFile>) {
        if let Some(dtype) = file.unreadable(&name) {
            self.unreadable.insert(name, format!("{dtype:?}"));
            return;
        }
        let source: Arc<dyn TensorSource> = file.clone();
        if let Some(stored) = Stored::find(&source, &name) {
            self.tensors.insert(name, stored);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name) || self.unreadable.contains_key(name)
    }

    /// Whether there is such a tensor, after the prefix.
    pub(super) fn has_own(&self, name: &str) -> bool {
        self.has(&format!("{}{name}", self.prefix))
    }

    /// A tensor, which must be there and have these dimensions.
    pub(super) fn tensor(&self, name: &str, dimensions: &[usize]) -> Result<Stored, LmError> {
        const WHOSE: &str = "use weights and config.json of one published model";
        let name = format!("{}{name}", self.prefix);
        if let Some(dtype) = self.unreadable.get(&name) {
            return Err(self.all.wrong(format!(
                "{name} has type {dtype}; save the model in float32, float16 or bfloat16"
            )));
        }
        let Some(found) = self.tensors.get(&name) else {
            return Err(self.all.wrong(format!("has no tensor {name}; {WHOSE}")));
        };
        if found.dimensions() != dimensions {
            let is = found.dimensions();
            return Err(found
                .wrong(format!("{name} is {is:?}, but the model needs {dimensions:?}; {WHOSE}")));
        }
        Ok(found.clone())
    }

    /// The dimensions of a tensor, where it is there.
    pub(super) fn dimensions(&self, name: &str) -> Option<&[usize]> {
        Some(self.tensors.get(&format!("{}{name}", self.prefix))?.dimensions())
    }

    pub(super) fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, LmError> {
        self.tensor(name, &[length])?.vector()
    }

    /// A projection that is stored as outputs × inputs, as most are.
    pub(super) fn linear(
        &self,
        name: &str,
        [inputs, outputs]: [usize; 2],
        bias: Bias,
    ) -> Result<Linear, LmError> {
        let weights = self.tensor(&format!("{name}.weight"), &[outputs, inputs])?;
        Ok(Linear { weights, transposed: true, bias: self.bias(name, outputs, bias)? })
    }

    /// A projection that is stored as inputs × outputs.
    pub(super) fn convolution(
        &self,
        name: &str,
        [inputs, outputs]: [usize; 2],
    ) -> Result<Linear, LmError> {
        let weights = self.tensor(&format!("{name}.weight"), &[inputs, outputs])?;
        Ok(Linear { weights, transposed: false, bias: self.bias(name, outputs, Bias::Always)? })
    }

    fn bias(&self, name: &str, outputs: usize, bias: Bias) -> Result<Option<Array1<f32>>, LmError> {
        let name = format!("{name}.bias");
        match bias {
            Bias::Always => self.vector(&name, outputs).map(Some),
            Bias::Never => Ok(None),
            Bias::WhereThere => {
                self.has_own(&name).then(|| self.vector(&name, outputs)).transpose()
            }
        }
    }

    /// A layer norm. Models converted from TensorFlow have `gamma` and `beta` in place of `weight` and `bias`.
    pub(super) fn layer_norm(
        &self,
        name: &str,
        channels: usize,
        epsilon: f32,
    ) -> Result<Norm, LmError> {
        let old = self.has_own(&format!("{name}.gamma"));
        let [gain, bias] = if old { ["gamma", "beta"] } else { ["weight", "bias"] };
        Ok(Norm {
            gain: self.vector(&format!("{name}.{gain}"), channels)?,
            kind: NormKind::Layer { bias: self.vector(&format!("{name}.{bias}"), channels)? },
            epsilon,
        })
    }

    /// A norm by the root mean square, whose gain is `offset` + the weight.
    pub(super) fn rms_norm(
        &self,
        name: &str,
        channels: usize,
        (epsilon, offset): (f32, f32),
    ) -> Result<Norm, LmError> {
        let gain = self.vector(&format!("{name}.weight"), channels)? + offset;
        Ok(Norm { gain, kind: NormKind::RootMeanSquare, epsilon })
    }
}
