//! Metadata of a file of exported heads (python/FORMAT.md).

use serde::Deserialize;
use serde_json::Value;

use crate::lm::LmError;
use crate::lm::pretrained::{NormOver, Pairs};
use crate::lm::tensor_file::{SafetensorsFile, TensorSource as _};

/// The key of the metadata in the file's header.
const NOTE: &str = "rank-study-heads";
const VERSION: u64 = 1;

/// The metadata of the whole file: model, passages and layers.
#[derive(Deserialize)]
pub(super) struct About {
    pub(super) model: String,
    #[serde(rename = "type")]
    pub(super) model_type: String,
    pub(super) step: Option<usize>,
    /// Number of blocks of the model; the file holds some of them.
    pub(super) layers: usize,
    /// The longest context of the model, if known.
    pub(super) context: Option<usize>,
    /// The tokens of each passage.
    pub(super) tokens: Vec<Vec<u32>>,
    pub(super) heads: Vec<AboutLayer>,
}

/// How the heads of one layer compute their logits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AboutLayer {
    pub(super) layer: usize,
    /// The scale s of the logits s·QKᵀ.
    pub(super) scale: f64,
    pub(super) causal: bool,
    pub(super) window: Option<usize>,
    pub(super) softcap: Option<f32>,
    /// Whether the projections of queries and keys have biases.
    pub(super) bias: bool,
    /// Which channels form pairs for rotary positions, if the layer has them.
    pub(super) pairs: Option<Pairs>,
    pub(super) norm: Option<AboutNorm>,
}

/// The normalisation of queries and keys.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AboutNorm {
    pub(super) over: NormOver,
    pub(super) centred: bool,
    pub(super) epsilon: f32,
}

impl About {
    /// Reads the metadata and checks its consistency.
    pub(super) fn read(file: &SafetensorsFile) -> Result<Self, LmError> {
        let wrong = |why: String| file.wrong(why);
        let Some(text) = file.note(NOTE) else {
            return Err(wrong(format!(
                "is not a file of exported heads (its header has no {NOTE:?}); write one with \
                 python/rank_study/export.py, or name a model's folder"
            )));
        };
        let unreadable = |e: serde_json::Error| {
            wrong(format!("has a header that cannot be read: {e}; export it again"))
        };
        let values: Value = serde_json::from_str(text).map_err(unreadable)?;
        match values.get("version") {
            Some(found) if *found == VERSION => {}
            found => {
                let found = found.map_or("none".to_owned(), Value::to_string);
                return Err(wrong(format!(
                    "has export version {found}, but this program reads version {VERSION}; export it again \
                     with this program's rank_study.export"
                )));
            }
        }
        let about: Self = serde_json::from_value(values).map_err(unreadable)?;
        about.check().map_err(|why| wrong(format!("{why}; export it again")))?;
        Ok(about)
    }

    fn check(&self) -> Result<(), String> {
        let length = self.tokens.first().map_or(0, Vec::len);
        if length == 0 {
            return Err("has no passage, or an empty one".to_owned());
        }
        for (at, passage) in self.tokens.iter().enumerate() {
            if passage.len() != length {
                let other = passage.len();
                return Err(format!(
                    "has passages of {length} and of {other} tokens; they must be equally long"
                ));
            }
            if let Some(before) = self.tokens[..at].iter().position(|other| other == passage) {
                return Err(format!("passages {before} and {at} have the same tokens"));
            }
        }
        if self.heads.is_empty() {
            return Err("has no layer".to_owned());
        }
        for (at, layer) in self.heads.iter().enumerate() {
            let number = layer.layer;
            if number >= self.layers {
                return Err(format!("names layer {number}, but the model has {}", self.layers));
            }
            if self.heads[..at].iter().any(|other| other.layer == number) {
                return Err(format!("has layer {number} twice"));
            }
            layer.check().map_err(|why| format!("layer {number} has {why}"))?;
        }
        Ok(())
    }
}

impl AboutLayer {
    fn check(&self) -> Result<(), String> {
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return Err(format!("scale {}; it must be above 0", self.scale));
        }
        if self.window == Some(0) {
            return Err("window 0; it must be at least 1".to_owned());
        }
        if let Some(cap) = self.softcap.filter(|cap| !(cap.is_finite() && *cap > 0.0)) {
            return Err(format!("softcap {cap}; it must be above 0"));
        }
        match self.norm {
            Some(AboutNorm { epsilon, .. }) if !(0.0..1.0).contains(&epsilon) => {
                Err(format!("epsilon {epsilon}; it must be from 0 to 1"))
            }
            Some(AboutNorm { over: NormOver::Layer, centred: true, .. }) => {
                Err("a norm over all heads that subtracts the mean, which is not supported"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }
}
