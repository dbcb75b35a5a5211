//! A file of exported heads as a model whose heads can be looked at.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use super::about::About;
use super::layer::ExportedLayer;
use crate::lm::pretrained::{SafetensorsFile, TensorSource as _};
use crate::lm::{HeadProbe, HeadsOfLayer, LmError, Probed, Split, Texts};
use crate::system::sha256_of_file;
use crate::targets::HeadKind;

/// Heads of a model that another program ran, as `python/rank_study_export.py` writes them: of some layers, on passages
/// of its own. The format is that of `python/FORMAT.md`. Tensors are read when a layer's heads are asked for.
///
/// Channels that positions turn together are neighbours in queries and keys, whatever their order in the file, and
/// those that they do not turn come last. Where cosines and sines are longer than 1, as with YaRN, their length is in
/// the heads' scale.
pub struct ExportedHeads {
    file: SafetensorsFile,
    about: About,
    name: String,
    layers: Vec<ExportedLayer>,
    identity: String,
}

impl ExportedHeads {
    /// Reads what a file holds, and holds the shapes of its tensors to one another.
    ///
    /// # Errors
    /// A file that cannot be read or is none of exported heads, of another version, cut short, or whose tensors are
    /// missing or do not fit together.
    pub fn read(path: &Path) -> Result<Self, LmError> {
        let file = SafetensorsFile::open(path)?;
        let mut about = About::read(&file)?;
        let passages = [about.tokens.len(), about.tokens[0].len()];
        let layers = std::mem::take(&mut about.heads)
            .into_iter()
            .map(|layer| ExportedLayer::find(&file, layer, passages))
            .collect::<Result<Vec<_>, _>>()?;
        let first = &layers[0];
        if let Some(other) = layers.iter().find(|layer| layer.heads() != first.heads()) {
            let [one, two] = [first, other].map(|layer| (layer.number(), layer.heads()));
            return Err(file.wrong(format!(
                "layer {} has {} heads and layer {} has {}; export layers with equally many heads",
                one.0, one.1, two.0, two.1
            )));
        }
        let identity =
            sha256_of_file(path).map_err(|source| LmError::Io { path: path.to_owned(), source })?;
        let name = name_in_paths(&about.model);
        Ok(Self { file, about, name, layers, identity })
    }

    /// Whether a path is a file that may hold exported heads.
    pub fn is_in(path: &Path) -> bool {
        path.is_file() && path.extension().is_some_and(|end| end == "safetensors")
    }

    /// The model's name: the last part of it where it is a path, without what would not do in one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The model's type, as `llama`.
    pub fn model_type(&self) -> &str {
        &self.about.model_type
    }

    /// The step of the training that the heads are of, where they are of one.
    pub fn step(&self) -> Option<usize> {
        self.about.step
    }

    /// What tells the file from others: what it hashes to.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The most tokens that the model reads: those of a passage where it does not say.
    pub fn model_context(&self) -> usize {
        self.about.context.unwrap_or(0).max(self.context())
    }

    /// How many passages it has.
    pub fn passages(&self) -> usize {
        self.about.tokens.len()
    }

    /// The layers whose heads are in the file.
    pub fn held_layers(&self) -> Vec<usize> {
        self.layers.iter().map(ExportedLayer::number).collect()
    }

    /// Channels of a head.
    pub fn head_dimension(&self) -> usize {
        self.layers[0].head_dimension()
    }

    /// Channels of what queries and keys are made of.
    pub fn channels(&self) -> usize {
        self.layers[0].width()
    }

    /// What the heads of a layer see; none of a layer that is not in the file.
    pub fn head_kinds(&self, layer: usize) -> Vec<HeadKind> {
        self.layer(layer).map_or_else(Vec::new, |layer| vec![layer.kind(); layer.heads()])
    }

    fn layer(&self, number: usize) -> Option<&ExportedLayer> {
        self.layers.iter().find(|layer| layer.number() == number)
    }

    /// The place of the passage that begins as this one.
    fn place(&self, passage: &[u32]) -> Result<usize, LmError> {
        let found = self.about.tokens.iter().position(|own| own.starts_with(passage));
        found.filter(|_| !passage.is_empty()).ok_or_else(|| {
            let count = self.about.tokens.len();
            self.file.wrong(format!("has only the heads of its own {count} passages"))
        })
    }
}

/// The heads on the beginning of a passage are those on all of it where nothing sees what comes after it; others have
/// whole passages alone.
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
        self.layers[0].heads()
    }

    /// Those of its passages, one after another: it reads no texts.
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

/// A name that is part of the path of a cell.
fn name_in_paths(name: &str) -> String {
    let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let kept = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = last.trim_start_matches('.').chars().map(kept).collect();
    if name.is_empty() { "model".to_owned() } else { name }
}
