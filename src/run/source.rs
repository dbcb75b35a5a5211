//! Whose heads are looked at: a training run's, in its folder, or a published model's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::RunError;
use super::files::kept_steps;
use super::manifest::{MANIFEST, Manifest};
use super::run_manifest::{self, corpus_entropy_nats};
use super::trained::TrainedRun;
use crate::lm::{ForeignModel, LmError, Outcome, Probed, TrainDefinition};
use crate::pattern::HeadKind;
use crate::system::sha256;

/// A model whose heads can be probed once its weights are read.
#[derive(Clone)]
pub enum ModelSource {
    /// A training run, in its folder.
    Run {
        /// The folder, which need not be there yet.
        folder: PathBuf,
        /// What the run was or will be trained by.
        definition: Box<TrainDefinition>,
    },
    /// A model from elsewhere.
    Published {
        /// The model, read once for all who look at it.
        model: Arc<ForeignModel>,
        /// What tells it from others of its name.
        identity: String,
    },
}

impl ModelSource {
    /// Whether it has no tokens but those of a text: a published model, or a run that was trained on one.
    pub fn reads_a_text(&self) -> bool {
        match self {
            Self::Published { .. } => true,
            Self::Run { folder, .. } => Manifest::read(&folder.join(MANIFEST))
                .is_ok_and(|manifest| corpus_entropy_nats(&manifest).is_none()),
        }
    }

    /// What a folder holds, and the steps whose weights are there, in order; a published model has no steps.
    ///
    /// # Errors
    /// A folder that holds neither, a model of another type, or a run under way that has kept no weights.
    pub fn in_folder(folder: &Path) -> Result<(Self, Vec<Option<usize>>), RunError> {
        if ForeignModel::is_in(folder) {
            let model = Arc::new(ForeignModel::read(folder)?);
            let identity = published_identity(folder)?;
            return Ok((Self::Published { model, identity }, vec![None]));
        }
        let path = folder.join(MANIFEST);
        let definition = TrainedRun::definition_in(folder)?;
        let mut steps = kept_steps(folder);
        // The last weights are those of the last step only where the run came to it.
        let whole = run_manifest::result(&Manifest::read(&path)?)
            .is_some_and(|result| result.summary.outcome == Outcome::Completed);
        if whole {
            steps.push(definition.steps);
        } else if steps.is_empty() {
            let why = format!(
                "the run there has not come to its step {}, and keeps the weights of none before; go on with it by \
                 train --resume, or name steps in keep_checkpoints",
                definition.steps
            );
            return Err(RunError::Unusable { path, why });
        }
        steps.sort_unstable();
        steps.dedup();
        let source = Self::Run { folder: folder.to_owned(), definition: Box::new(definition) };
        Ok((source, steps.into_iter().map(Some).collect()))
    }

    /// The model with its weights after `step`, or with the last ones.
    ///
    /// # Errors
    /// Weights that are not there or cannot be read.
    pub fn weights(&self, step: Option<usize>) -> Result<Arc<dyn Probed>, RunError> {
        match self {
            Self::Run { folder, definition } => Ok(Arc::new(read(folder, definition, step)?)),
            Self::Published { model, .. } => Ok(model.clone()),
        }
    }

    /// The training run with its weights after `step`, or with the last ones; none of a model from elsewhere.
    ///
    /// # Errors
    /// Weights that are not there or cannot be read.
    pub fn run(&self, step: Option<usize>) -> Result<Option<TrainedRun>, RunError> {
        match self {
            Self::Run { folder, definition } => read(folder, definition, step).map(Some),
            Self::Published { .. } => Ok(None),
        }
    }

    /// How many blocks the model has.
    pub fn layers(&self) -> usize {
        match self {
            Self::Run { definition, .. } => definition.layers,
            Self::Published { model, .. } => model.layers(),
        }
    }

    /// The longest passage that it reads, in tokens.
    pub fn context(&self) -> usize {
        match self {
            Self::Run { definition, .. } => definition.context,
            Self::Published { model, .. } => model.context(),
        }
    }

    /// What the heads of a layer see.
    pub fn head_kinds(&self, layer: usize) -> Vec<HeadKind> {
        match self {
            Self::Run { definition, .. } => {
                definition.head_kinds().into_iter().nth(layer).unwrap_or_default()
            }
            Self::Published { model, .. } => vec![HeadKind::Global; model.heads()],
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

/// What a published model's configuration hashes to, and how long its weights are.
fn published_identity(folder: &Path) -> Result<String, LmError> {
    let failed = |path: PathBuf| move |source| LmError::Io { path, source };
    let config = folder.join("config.json");
    let text = std::fs::read(&config).map_err(failed(config))?;
    let weights = folder.join("model.safetensors");
    let length = std::fs::metadata(&weights).map_err(failed(weights))?.len();
    Ok(format!("{} {length}", sha256(&text)))
}
