//! `config.json`: sizes and settings of a published model.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::layers::Activation;
use super::types::{ModelType, TYPES};
use crate::lm::LmError;

/// Upper bound for all sizes, above those of any model, because sizes are used before they are checked against the weights.
const MOST: usize = 1 << 24;

/// The keys and values of a `config.json`, or of one object in it.
#[derive(Clone)]
pub(super) struct Config {
    path: PathBuf,
    /// The key of the object, if it is not the whole file.
    part: Option<String>,
    values: Map<String, Value>,
}

impl Config {
    /// The configuration of a model; of one for texts and other things, that of its part for texts, with the sizes that its
    /// type leaves out.
    pub(super) fn read(path: &Path) -> Result<Self, LmError> {
        let bytes = std::fs::read(path).map_err(LmError::io(path))?;
        let whole = match serde_json::from_slice(&bytes) {
            Ok(values) => Self::from_values(path, values),
            Err(e) => {
                let why = format!("{e}; use the config.json published with the model");
                return Err(LmError::file(path, why));
            }
        };
        let Some(mut texts) = whole.part("text_config")? else { return Ok(whole) };
        let usual =
            texts.model_type()?.usual.iter().map(|(key, &size)| (key.as_str(), size.into()));
        let tied =
            whole.value("tie_word_embeddings").map(|tied| ("tie_word_embeddings", tied.clone()));
        for (key, value) in
            usual.filter(|(key, _)| !texts.names(key)).chain(tied).collect::<Vec<_>>()
        {
            texts.values.insert(key.to_owned(), value);
        }
        Ok(texts)
    }

    /// The configuration of a file in another format, with the keys of `config.json`.
    pub(super) fn from_values(path: &Path, values: Map<String, Value>) -> Self {
        Self { path: path.to_owned(), part: None, values }
    }

    pub(super) fn set(&mut self, key: &str, value: Value) {
        self.values.insert(key.to_owned(), value);
    }

    /// The model's type.
    pub(super) fn model_type(&self) -> Result<&'static ModelType, LmError> {
        let all = TYPES.iter().map(|of| of.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(found) = self.value("model_type") else {
            return Err(self.wrong(format!("has no model_type; supported types are {all}")));
        };
        found.as_str().and_then(ModelType::named).ok_or_else(|| {
            self.wrong(format!(
                "has model_type {found}; supported are {all}. Export its heads from PyTorch \
                         instead: python/rank_study/export.py, docs/diagnose.md"
            ))
        })
    }

    /// The object at a key; `None` if the key is absent or null.
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

    /// An object without any key.
    pub(super) fn nothing(&self) -> Self {
        Self { path: self.path.clone(), part: None, values: Map::new() }
    }

    /// A required integer of at least 1.
    pub(super) fn count(&self, key: &str) -> Result<usize, LmError> {
        self.count_if_there(key)?.ok_or_else(|| self.not_there(key))
    }

    /// As [`Self::count`]; `None` if the key is absent or null.
    pub(super) fn count_if_there(&self, key: &str) -> Result<Option<usize>, LmError> {
        let count = self.converted(key, "a whole number of at least 1", |found| {
            found.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0)
        })?;
        match count {
            Some(count) if count > MOST => {
                Err(self.wrong(format!("{key} is {count}; it must be at most {MOST}")))
            }
            count => Ok(count),
        }
    }

    /// The ε that is added to a variance; `usual` if the key is absent.
    pub(super) fn epsilon(&self, key: &str, usual: f32) -> Result<f32, LmError> {
        let within = |epsilon: &f64| *epsilon > 0.0 && *epsilon < 1.0;
        let found =
            self.converted(key, "between 0 and 1", |found| found.as_f64().filter(within))?;
        Ok(found.map_or(usual, |epsilon| epsilon as f32))
    }

    /// A required number above 0.
    pub(super) fn above_zero(&self, key: &str) -> Result<f64, LmError> {
        self.above_zero_if_there(key)?.ok_or_else(|| self.not_there(key))
    }

    /// As [`Self::above_zero`]; `usual` if the key is absent.
    pub(super) fn above_zero_or(&self, key: &str, usual: f64) -> Result<f64, LmError> {
        Ok(self.above_zero_if_there(key)?.unwrap_or(usual))
    }

    /// As [`Self::above_zero`]; `None` if the key is absent or null.
    pub(super) fn above_zero_if_there(&self, key: &str) -> Result<Option<f64>, LmError> {
        let is_right = |number: &f64| *number > 0.0 && number.is_finite();
        self.converted(key, "a number above 0", |found| found.as_f64().filter(is_right))
    }

    pub(super) fn flag(&self, key: &str, usual: bool) -> Result<bool, LmError> {
        Ok(self.converted(key, "true or false", Value::as_bool)?.unwrap_or(usual))
    }

    /// A list of words; `None` if the key is absent.
    pub(super) fn words(&self, key: &str) -> Result<Option<Vec<String>>, LmError> {
        self.converted(key, "a list of words", |found| {
            found.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
        })
    }

    /// A list of numbers; `None` if the key is absent.
    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, LmError> {
        self.converted(key, "a list of numbers", |found| {
            found.as_array()?.iter().map(Value::as_f64).collect()
        })
    }

    /// With the values of the keys that this object lacks and `other` has.
    pub(super) fn or_from(mut self, other: &Self, keys: &[&str]) -> Self {
        for &key in keys {
            if let (None, Some(value)) = (self.value(key), other.value(key)) {
                self.values.insert(key.to_owned(), value.clone());
            }
        }
        self
    }

    /// The value of a key as `convert` reads it; `None` if the key is absent or null. `wanted` says what a value must be.
    fn converted<T>(
        &self,
        key: &str,
        wanted: &str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, LmError> {
        let Some(found) = self.value(key) else { return Ok(None) };
        let wrong = || self.wrong(format!("{key} is {found}; it must be {wanted}"));
        convert(found).ok_or_else(wrong).map(Some)
    }

    /// Whether a key exists, even with the value null.
    pub(super) fn names(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The activation function of an MLP; `usual` if the key is absent.
    pub(super) fn activation(&self, key: &str, usual: Activation) -> Result<Activation, LmError> {
        let Some(found) = self.value(key) else { return Ok(usual) };
        match found.as_str() {
            Some("gelu") => Ok(Activation::Gelu),
            Some("gelu_new" | "gelu_pytorch_tanh") => Ok(Activation::TanhGelu),
            Some("silu" | "swish") => Ok(Activation::Silu),
            Some("relu") => Ok(Activation::Relu),
            Some("relu2") => Ok(Activation::SquaredRelu),
            _ => Err(self.wrong(format!(
                "{key} is {found}; only gelu, gelu_new, gelu_pytorch_tanh, silu, relu and relu2 are supported"
            ))),
        }
    }

    /// Refuses any value other than `usual` for a key. An absent key and null count as `usual`.
    /// `usual` is written in JSON.
    pub(super) fn only(&self, key: &str, usual: &str) -> Result<(), LmError> {
        match self.value(key).map(Value::to_string) {
            Some(found) if found != usual => {
                Err(self.wrong(format!("{key} is {found}; only {usual} is supported")))
            }
            _ => Ok(()),
        }
    }

    /// The value of a key; `None` if it is absent or null.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    fn not_there(&self, key: &str) -> LmError {
        self.wrong(format!("has no {key}; use the config.json published with the model"))
    }

    /// The error that the configuration is wrong, with the reason.
    pub(super) fn wrong(&self, why: String) -> LmError {
        let within = self.part.as_ref().map_or_else(String::new, |part| format!("{part}: "));
        LmError::file(&self.path, format!("{within}{why}"))
    }
}
