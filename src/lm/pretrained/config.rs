//! `config.json`: a published model's sizes and settings.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::layers::Activation;
use crate::lm::LmError;

/// More of anything than a model has: what is made of a size is made before the weights are held to it.
const MOST: usize = 1 << 24;

/// The keys and values of one `config.json`, or of a part of it.
#[derive(Clone)]
pub(super) struct Config {
    path: PathBuf,
    /// The key that the part has, where it is one.
    part: Option<String>,
    values: Map<String, Value>,
}

impl Config {
    pub(super) fn read(path: &Path) -> Result<Self, LmError> {
        let bytes = std::fs::read(path).map_err(LmError::io(path))?;
        match serde_json::from_slice(&bytes) {
            Ok(values) => Ok(Self::from_values(path, values)),
            Err(e) => {
                let why = format!("{e}; use the config.json published with the model");
                Err(LmError::file(path, why))
            }
        }
    }

    /// What a file of another form says, in the same words.
    pub(super) fn from_values(path: &Path, values: Map<String, Value>) -> Self {
        Self { path: path.to_owned(), part: None, values }
    }

    /// The model's type, one of `known`.
    pub(super) fn model_type(&self, known: &[&'static str]) -> Result<&'static str, LmError> {
        let (last, others) = known.split_last().expect("some types are known");
        let all = format!("{} and {last}", others.join(", "));
        let Some(found) = self.value("model_type") else {
            return Err(self.wrong(format!("has no model_type; supported types are {all}")));
        };
        known.iter().find(|&&known| found == known).copied().ok_or_else(|| {
            self.wrong(format!(
                "has model_type {found}; supported are {all}. Export its heads from PyTorch \
                         instead: python/rank_study_export.py, docs/diagnose.md"
            ))
        })
    }

    /// The keys and values of one key, where it is there.
    pub(super) fn part(&self, key: &str) -> Result<Option<Self>, LmError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(values)) => {
                let part = Some(key.to_owned());
                Ok(Some(Self { path: self.path.clone(), part, values: values.clone() }))
            }
            Some(found) => {
                Err(self.wrong(format!("{key} is {found}; it must be keys with values")))
            }
        }
    }

    /// A part without any key.
    pub(super) fn nothing(&self) -> Self {
        Self { path: self.path.clone(), part: None, values: Map::new() }
    }

    /// A number of things, of which there is at least one.
    pub(super) fn count(&self, key: &str) -> Result<usize, LmError> {
        self.count_if_there(key)?.ok_or_else(|| self.not_there(key))
    }

    /// The same of a key that may be absent or null.
    pub(super) fn count_if_there(&self, key: &str) -> Result<Option<usize>, LmError> {
        let Some(found) = self.value(key) else { return Ok(None) };
        let count = found.as_u64().and_then(|count| usize::try_from(count).ok());
        match count {
            Some(count) if count > MOST => {
                Err(self.wrong(format!("{key} is {count}; it must be at most {MOST}")))
            }
            Some(count) if count > 0 => Ok(Some(count)),
            _ => {
                Err(self
                    .wrong(format!("{key} is {found}; it must be a whole number of at least 1")))
            }
        }
    }

    /// What is added to a variance, or `usual` where nothing is said.
    pub(super) fn epsilon(&self, key: &str, usual: f32) -> Result<f32, LmError> {
        let Some(found) = self.value(key) else { return Ok(usual) };
        match found.as_f64() {
            Some(epsilon) if epsilon > 0.0 && epsilon < 1.0 => Ok(epsilon as f32),
            _ => Err(self.wrong(format!("{key} is {found}; it must be between 0 and 1"))),
        }
    }

    /// A number above 0.
    pub(super) fn above_zero(&self, key: &str) -> Result<f64, LmError> {
        let found = self.value(key).ok_or_else(|| self.not_there(key))?;
        match found.as_f64() {
            Some(number) if number > 0.0 && number.is_finite() => Ok(number),
            _ => Err(self.wrong(format!("{key} is {found}; it must be a number above 0"))),
        }
    }

    /// The same, or `usual` where nothing is said.
    pub(super) fn above_zero_or(&self, key: &str, usual: f64) -> Result<f64, LmError> {
        if self.value(key).is_some() { self.above_zero(key) } else { Ok(usual) }
    }

    pub(super) fn flag(&self, key: &str, usual: bool) -> Result<bool, LmError> {
        let Some(found) = self.value(key) else { return Ok(usual) };
        found
            .as_bool()
            .ok_or_else(|| self.wrong(format!("{key} is {found}; it must be true or false")))
    }

    /// Words in a list, where it is there.
    pub(super) fn words(&self, key: &str) -> Result<Option<Vec<String>>, LmError> {
        let Some(found) = self.value(key) else { return Ok(None) };
        let words = found.as_array().and_then(|all| {
            all.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        words.map(Some).ok_or_else(|| self.wrong(format!("{key} must be a list of words")))
    }

    /// Whether a key is there, be it null.
    pub(super) fn names(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// What is between the matrices of an MLP, or `usual` where nothing is said.
    pub(super) fn activation(&self, key: &str, usual: Activation) -> Result<Activation, LmError> {
        let Some(found) = self.value(key) else { return Ok(usual) };
        match found.as_str() {
            Some("gelu") => Ok(Activation::Gelu),
            Some("gelu_new" | "gelu_pytorch_tanh") => Ok(Activation::TanhGelu),
            Some("silu" | "swish") => Ok(Activation::Silu),
            _ => Err(self.wrong(format!(
                "{key} is {found}; only gelu, gelu_new, gelu_pytorch_tanh and silu are supported"
            ))),
        }
    }

    /// Refuses a model that has anything but `usual` for a key. Absent and null mean `usual`.
    /// `usual` is in JSON.
    pub(super) fn only(&self, key: &str, usual: &str) -> Result<(), LmError> {
        match self.value(key).map(Value::to_string) {
            Some(found) if found != usual => {
                Err(self.wrong(format!("{key} is {found}; only {usual} is supported")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses channels that heads cannot share equally.
    pub(super) fn divides(&self, heads: &str, channels: &str) -> Result<(), LmError> {
        let (h, c) = (self.count(heads)?, self.count(channels)?);
        match c % h {
            0 => Ok(()),
            _ => {
                Err(self.wrong(format!("{channels} is {c}; it must be a multiple of {heads}, {h}")))
            }
        }
    }

    /// A value that is there and not null.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    fn not_there(&self, key: &str) -> LmError {
        self.wrong(format!("has no {key}; use the config.json published with the model"))
    }

    /// That it is wrong, and why.
    pub(super) fn wrong(&self, why: String) -> LmError {
        let within = self.part.as_ref().map_or_else(String::new, |part| format!("{part}: "));
        LmError::file(&self.path, format!("{within}{why}"))
    }
}
