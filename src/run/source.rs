//! Sources of heads: a training run in its folder, a published model, or heads that another program exported.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::RunError;
use super::files::kept_steps;
use super::manifest::{MANIFEST, Manifest};
use super::run_manifest::{self, corpus_entropy_nats};
use super::trained::TrainedRun;
use crate::lm::{ExportedHeads, Matrices, Outcome, PretrainedModel, Probed, TrainDefinition};
use crate::targets::HeadKind;

/// A model whose heads can be probed after its weights are read.
#[derive(Clone)]
pub enum ModelSource {
    /// A training run, in its folder.
    Run {
        /// The folder, which need not exist yet.
        folder: PathBuf,
        /// Definition of the run.
        definition: Box<TrainDefinition>,
    },
    /// A published model.
    Published {
        /// The model, opened once and shared.
        model: Arc<PretrainedModel>,
    },
    /// Heads that another program exported, with its own passages.
    Exported {
        /// The file, opened once and shared.
        heads: Arc<ExportedHeads>,
    },
}

impl ModelSource {
    /// Whether tokens must come from a text: true for a published model and for a run that was trained on a text.
    pub fn reads_a_text(&self) -> bool {
        match self {
            Self::Published { .. } => true,
            Self::Exported { .. } => false,
            Self::Run { folder, .. } => Manifest::read(&folder.join(MANIFEST))
                .is_ok_and(|manifest| corpus_entropy_nats(&manifest).is_none()),
        }
    }

    /// Opens a folder or file, and lists the steps whose weights exist, in order. A published model has one entry,
    /// `None`. Exported heads have one entry: the step of their weights, if they have one.
    ///
    /// # Errors
    /// A folder with neither run nor model, a model of an unsupported type, an unfinished run without kept weights, or
    /// a file without heads.
    pub fn in_folder(folder: &Path) -> Result<(Self, Vec<Option<usize>>), RunError> {
        if ExportedHeads::is_in(folder) {
            let heads = Arc::new(ExportedHeads::read(folder)?);
            let step = heads.step();
            return Ok((Self::Exported { heads }, vec![step]));
        }
        if PretrainedModel::is_in(folder) {
            let model = Arc::new(PretrainedModel::read(folder)?);
            return Ok((Self::Published { model }, vec![None]));
        }
        if !folder.join(MANIFEST).is_file() {
            let what = match folder.exists() {
                true if folder.is_dir() => {
                    "has neither config.json (a model) nor manifest.toml (a run)"
                }
                true => "not a model",
                false => "no such file or folder",
            };
            let why = format!(
                "{what}; name the folder of a run or model, a .gguf file, or exported heads (.safetensors)"
            );
            return Err(RunError::unusable(folder, why));
        }
        let path = folder.join(MANIFEST);
        let definition = TrainedRun::definition_in(folder)?;
        let mut steps = kept_steps(folder);
        // The last weights belong to the last step only if the run completed.
        let whole = run_manifest::result(&Manifest::read(&path)?)
            .is_some_and(|result| result.outcome == Outcome::Completed);
        if whole {
            steps.push(definition.steps);
        } else if steps.is_empty() {
            let why = format!(
                "the run has not reached step {} and kept no earlier weights; continue it with train --resume, or set \
                 keep_checkpoints",
                definition.steps
            );
            return Err(RunError::unusable(&path, why));
        }
        steps.sort_unstable();
        steps.dedup();
        let source = Self::Run { folder: folder.to_owned(), definition: Box::new(definition) };
        Ok((source, steps.into_iter().map(Some).collect()))
    }

    /// Returns the model with its weights after `step`, or with the last weights if `None`.
    ///
    /// # Errors
    /// The weights do not exist or cannot be read.
    pub fn weights(
        &self,
        step: Option<usize>,
        bits: Option<usize>,
    ) -> Result<Arc<dyn Probed>, RunError> {
        match self {
            Self::Run { folder, definition } => {
                let run = read(folder, definition, step)?;
                Ok(match bits {
                    Some(bits) => Arc::new(run.rounded(bits, Matrices::All)?),
                    None => Arc::new(run),
                })
            }
            Self::Published { model } => Ok(model.clone()),
            Self::Exported { heads } => Ok(heads.clone()),
        }
    }

    /// Number of blocks of the model.
    pub fn layers(&self) -> usize {
        match self {
            Self::Run { definition, .. } => definition.layers,
            Self::Published { model } => model.layers(),
            Self::Exported { heads } => heads.layers(),
        }
    }

    /// The head dimension d.
    pub fn head_dimension(&self) -> usize {
        match self {
            Self::Run { definition, .. } => definition.head_dimension(),
            Self::Published { model } => model.head_dimension(),
            Self::Exported { heads } => heads.head_dimension(),
        }
    }

    /// Layers whose heads are available.
    pub fn held_layers(&self) -> Vec<usize> {
        match self {
            Self::Run { .. } | Self::Published { .. } => (0..self.layers()).collect(),
            Self::Exported { heads } => heads.held_layers(),
        }
    }

    /// Length of the longest passage that the model reads, in tokens.
    pub fn context(&self) -> usize {
        match self {
            Self::Run { definition, .. } => definition.context,
            Self::Published { model } => model.context(),
            Self::Exported { heads } => heads.context(),
        }
    }

    /// Kinds of the heads of a layer.
    pub fn head_kinds(&self, layer: usize) -> Vec<HeadKind> {
        match self {
            Self::Run { definition, .. } => {
                definition.head_kinds().into_iter().nth(layer).unwrap_or_default()
            }
            Self::Published { model } => model.head_kinds(layer),
            Self::Exported { heads } => heads.head_kinds(layer),
        }
    }
}

fn read(
    folder: &Path,
    definition: &TrainDefinition,
    step: Option<usize>,
) -> Result<TrainedRun, RunError> {
    TrainedRun::read(folder, step.filter(|&step| step != definition.steps))
}
