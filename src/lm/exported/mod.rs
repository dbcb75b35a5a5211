//! Heads exported by another program: queries and keys on passages that the program chose, read from a file.

mod about;
mod layer;
#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};
use std::path::Path;

use crate::lm::tensor_file::{SafetensorsFile, TensorSource as _};
use crate::lm::{HeadProbe, HeadsOfLayer, LmError, Probed, Split, Texts};
use crate::system::sha256_of_file;
use crate::targets::HeadKind;

use about::About;
use layer::ExportedLayer;

/// Heads of some layers of a model on fixed passages, as `python/rank_study/export.py` writes them after it ran the
/// model. `python/FORMAT.md` specifies the format. Tensors are read when the heads of a layer are requested.
///
/// Channels that are rotated together are adjacent in queries and keys, in any order of the file, and
/// channels that are not rotated come last. If cosines and sines have a length above 1, as with YaRN, this length is
/// part of the heads' scale.
pub struct ExportedHeads {
    file: SafetensorsFile,
    about: About,
    name: String,
    layers: Vec<ExportedLayer>,
    identity: String,
}

impl ExportedHeads {
    /// Reads the metadata of a file and checks the shapes of its tensors.
    ///
    /// # Errors
    /// A file that cannot be read, is not a file of exported heads, has another version, is truncated, or whose tensors are
    /// missing or inconsistent.
    pub fn read(path: &Path) -> Result<Self, LmError> {
        let file = SafetensorsFile::open(path)?;
        let mut about = About::read(&file)?;
        let passages = [about.tokens.len(), about.tokens[0].len()];
        let layers = std::mem::take(&mut about.heads)
            .into_iter()
            .map(|layer| ExportedLayer::find(&file, layer, passages))
            .collect::<Result<Vec<_>, _>>()?;
        let first = &layers[0];
        if let Some(other) = layers.iter().find(|layer| layer.heads != first.heads) {
            let [one, two] = [first, other].map(|layer| (layer.number(), layer.heads));
            return Err(file.wrong(format!(
                "layer {} has {} heads and layer {} has {}; export layers with equally many heads",
                one.0, one.1, two.0, two.1
            )));
        }
        let identity = sha256_of_file(path).map_err(LmError::io(path))?;
        let name = name_in_paths(&about.model);
        Ok(Self { file, about, name, layers, identity })
    }

    /// Whether a path is a file that may contain exported heads.
    pub fn is_in(path: &Path) -> bool {
        path.is_file() && path.extension().is_some_and(|end| end == "safetensors")
    }

    /// The model's name; of a path, the last part. Characters except letters, digits, `.`, `_` and `-` become `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The model's type, such as `llama`.
    pub fn model_type(&self) -> &str {
        &self.about.model_type
    }

    /// The training step of the exported weights, if known.
    pub fn step(&self) -> Option<usize> {
        self.about.step
    }

    /// A hash of the file, which identifies it.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The longest context of the model; the length of a passage if it is unknown.
    pub fn model_context(&self) -> usize {
        self.about.context.unwrap_or(0).max(self.context())
    }

    /// The number of passages.
    pub fn passages(&self) -> usize {
        self.about.tokens.len()
    }

    /// The layers whose heads are in the file.
    pub fn held_layers(&self) -> Vec<usize> {
        self.layers.iter().map(ExportedLayer::number).collect()
    }

    /// d_head.
    pub fn head_dimension(&self) -> usize {
        self.layers[0].d
    }

    /// The kinds of a layer's heads; empty if the layer is not in the file.
    pub fn head_kinds(&self, layer: usize) -> Vec<HeadKind> {
        self.layer(layer).map_or_else(Vec::new, |layer| vec![layer.kind(); layer.heads])
    }

    fn layer(&self, number: usize) -> Option<&ExportedLayer> {
        self.layers.iter().find(|layer| layer.number() == number)
    }

    /// The index of the passage that begins with this one.
    fn place(&self, passage: &[u32]) -> Result<usize, LmError> {
        let found = self.about.tokens.iter().position(|own| own.starts_with(passage));
        found.filter(|_| !passage.is_empty()).ok_or_else(|| {
            let count = self.about.tokens.len();
            self.file.wrong(format!("has only the heads of its own {count} passages"))
        })
    }
}

/// For causal heads a prefix of a passage is allowed, because its heads are the same as within the whole passage. For
/// other heads only whole passages are.
impl Probed for ExportedHeads {
    fn context(&self) -> usize {
        self.about.tokens[0].len()
    }

    fn own_passages(&self) -> Option<&[Vec<u32>]> {
        Some(&self.about.tokens)
    }

    fn layers(&self) -> usize {
        self.about.layers
    }

    fn heads(&self) -> usize {
        self.layers[0].heads
    }

    /// The tokens of the file's passages, concatenated; texts are ignored.
    fn tokens(
        &self,
        _texts: Option<&Texts>,
        _split: Option<Split>,
        most: usize,
    ) -> Result<Vec<u32>, LmError> {
        Ok(self.about.tokens.iter().flatten().copied().take(most).collect())
    }

    fn probe_layers(
        &self,
        passages: &[Vec<u32>],
        layers: Range<usize>,
        each: &mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>,
    ) -> Result<(), LmError> {
        let places = passages.iter().map(|passage| Ok((self.place(passage)?, passage.len())));
        let places = places.collect::<Result<Vec<_>, LmError>>()?;
        for number in layers {
            let layer = self.layer(number);
            let of_passage =
                |&(place, tokens): &(usize, usize)| -> Result<Vec<HeadProbe>, LmError> {
                    layer.map_or(Ok(Vec::new()), |layer| layer.heads_on(&self.file, place, tokens))
                };
            let heads = places.iter().map(of_passage).collect::<Result<HeadsOfLayer, _>>()?;
            if each(heads).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// A model name that can be used in paths.
fn name_in_paths(name: &str) -> String {
    let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let kept = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = last.trim_start_matches('.').chars().map(kept).collect();
    if name.is_empty() { "model".to_owned() } else { name }
}
