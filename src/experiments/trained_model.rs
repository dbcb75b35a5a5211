//! A trained model at one step: its weights, the run that it needs, and the passages that it reads.

use std::path::Path;
use std::sync::Arc;

use toml::{Table, Value};

use super::model_key::ModelKey;
use super::trained_models::{ModelKeys, RunSource, TrainedModels};
use super::training::{TrainCell, TrainingKey, kept_steps};
use crate::experiment::{
    CellContext, Measure as _, Needs, StudyError, TextSource, check_model_name, model_settings,
};
use crate::heads::Passages;
use crate::lm::{ExportedHeads, LmError, Probed, Split, TrainDefinition};
use crate::run::{ModelSource, RunError, TrainedRun};
use crate::targets::HeadKind;

/// The number of passages of a group if the definition gives none.
const PASSAGES_OF_A_GROUP: usize = 2;

/// A trained model at one step, and the passages that it reads.
#[derive(Clone)]
pub(crate) struct TrainedModel {
    model: Model,
    /// The step; `None` for a published model.
    step: Option<usize>,
    text: Option<TextSource>,
    among: Arc<TrainedModels>,
}

/// One model of a study.
#[derive(Clone)]
struct Model {
    /// The name of the run in its study, or of the folder.
    name: String,
    source: ModelSource,
    /// The run of another study that trains it, if any.
    of: Option<Box<OfStudy>>,
}

/// A training run of another study.
#[derive(Clone)]
struct OfStudy {
    study: String,
    cell: String,
    trained: TrainCell,
}

impl TrainedModel {
    /// The models of a study by run, seed and step, each with the prefix of its cells' keys. `data` holds the runs of
    /// other studies.
    ///
    /// # Errors
    /// A folder that holds no run, or that lacks a requested step or layer.
    pub fn all(
        among: &TrainedModels,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, Self)>, StudyError> {
        let shared = Arc::new(among.clone());
        let sources = among.sources()?;
        let mut studies: Vec<&str> = Vec::new();
        for source in &sources {
            if let RunSource::Study { of, .. } = source
                && !studies.contains(&of.as_str())
            {
                studies.push(of);
            }
        }
        let mut all = Vec::new();
        for source in &sources {
            if let RunSource::Folder(folder) = source
                && !folder.exists()
            {
                let path = folder.clone();
                return Err(match among.keys.fetch.clone() {
                    Some(fetch) => StudyError::NotFetched { path, fetch },
                    None => {
                        let why = "no such folder or file; name another".to_owned();
                        StudyError::Definition { path, why }
                    }
                });
            }
            for (name, model, steps) in models(source, text, data, studies.len() > 1)? {
                let wrong = |why: String| StudyError::Definition { path: name.clone().into(), why };
                if let ModelSource::Exported { heads } = &model.source {
                    check_exported(heads, among, text).map_err(wrong)?;
                }
                if text.is_none() && model.of.is_none() && model.source.reads_a_text() {
                    return Err(StudyError::NoText { model: name });
                }
                let steps = match (&model.source, among.keys.steps.is_empty()) {
                    (ModelSource::Run { .. }, false) => {
                        let missing = among.keys.steps.iter().find(|s| !steps.contains(&Some(**s)));
                        if let (None, Some(step)) = (&model.of, missing) {
                            let kept: Vec<usize> = steps.into_iter().flatten().collect();
                            return Err(wrong(format!(
                                "has no weights of step {step}; it has those of {}",
                                ranges(&kept)
                            )));
                        }
                        among.keys.steps.iter().map(|&step| Some(step)).collect()
                    }
                    _ => steps,
                };
                let there = model.source.held_layers();
                if let Some(layer) = among.keys.layers.iter().find(|layer| !there.contains(layer)) {
                    return Err(wrong(format!("has layers {}, not {layer}", ranges(&there))));
                }
                let context = model.source.context();
                if let Some(tokens) = among.keys.tokens.filter(|&tokens| tokens > context) {
                    return Err(wrong(format!(
                        "reads at most {context} tokens ({tokens} asked for)"
                    )));
                }
                for step in steps {
                    let at = step.map_or_else(String::new, |step| format!("/step-{step}"));
                    let key = format!("{name}{at}");
                    if all.iter().any(|(other, _)| *other == key) {
                        return Err(wrong(format!(
                            "two of the models share the configurations {key}; rename one of them"
                        )));
                    }
                    let (model, text) = (model.clone(), text.cloned());
                    let one = Self { model, step, text, among: shared.clone() };
                    all.push((key, one));
                }
            }
        }
        Ok(all)
    }

    /// The selected layers.
    pub fn layers(&self) -> Vec<usize> {
        looked_at(&self.among, self.model.source.held_layers())
    }

    /// The source of its weights.
    pub fn source(&self) -> &ModelSource {
        &self.model.source
    }

    /// The number of tokens of a passage.
    pub fn tokens(&self) -> usize {
        self.among.keys.tokens.unwrap_or_else(|| self.model.source.context())
    }

    /// The number of passages of a group. The default is two, or an equal share of the passages of a file of exported heads.
    pub fn passages_of_a_group(&self) -> usize {
        self.among.keys.passages.unwrap_or_else(|| match &self.model.source {
            ModelSource::Exported { heads } => (heads.passages() / self.among.keys.groups).max(1),
            ModelSource::Run { .. } | ModelSource::Published { .. } => PASSAGES_OF_A_GROUP,
        })
    }

    /// The number of passages of all groups, for estimates; a float, so that it cannot overflow.
    pub fn passages(&self) -> f64 {
        self.passages_of_a_group() as f64 * self.among.keys.groups as f64
    }

    /// The part of a cell's settings that identifies the model, its text, its step and its passages.
    pub fn settings(&self) -> Table {
        let TrainedModels { keys: ModelKeys { groups, tokens, .. }, split, .. } = &*self.among;
        let mut table = Table::new();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        // The same run on another text is a different model.
        match (&self.model.of, &self.model.source) {
            (Some(of), _) => set("run", of.trained.settings().into()),
            (None, ModelSource::Run { definition, .. }) => {
                set("run", model_settings(definition).into())
            }
            (None, ModelSource::Published { model }) => set("published", model.identity().into()),
            (None, ModelSource::Exported { heads }) => set("exported", heads.identity().into()),
        };
        if let Some(text) = &self.text {
            set("text", text.hashes().settings().into());
        }
        if let Some(step) = self.step {
            set("step", (step as i64).into());
        }
        set("passages", (self.passages_of_a_group() as i64).into());
        set("groups", (*groups as i64).into());
        if let Some(tokens) = tokens {
            set("tokens", (*tokens as i64).into());
        }
        set("split", split.map_or("all", Split::name).into());
        table
    }

    /// The values of those keys if a definition does not give them.
    pub fn defaults() -> Table {
        let mut table = Table::new();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        set("run", TrainCell::defaults().into());
        set("groups", 1.into());
        set("split", Split::Valid.name().into());
        table
    }

    /// The columns that identify the model in rows.
    pub fn key(&self) -> ModelKey {
        let Model { name, source, of } = &self.model;
        match (of, source) {
            (Some(of), _) => ModelKey::of_run(Some(&of.study), &of.trained.key(), self.step),
            (None, ModelSource::Run { definition, .. }) => {
                let text = self.text.as_ref().map(|text| text.name.as_str());
                ModelKey::of_run(None, &TrainingKey::of(name, definition, text), self.step)
            }
            (None, ModelSource::Published { model }) => {
                let text = self.text.as_ref().map(|text| text.name.as_str());
                let sizes = [model.layers(), model.heads(), model.context()];
                ModelKey::of_published(name, model.name(), text, sizes, None)
            }
            (None, ModelSource::Exported { heads }) => {
                let sizes = [heads.layers(), heads.heads(), heads.model_context()];
                ModelKey::of_published(name, heads.model_type(), None, sizes, self.step)
            }
        }
    }

    /// The cell that trains its weights, if it is a run of another study.
    pub fn needs(&self) -> Option<Needs> {
        let of = self.model.of.as_ref()?;
        Some(Needs { study: of.study.clone(), cell: of.cell.clone() })
    }

    /// Whether the weights of another study's run are missing or belong to another run.
    pub fn lacks(&self) -> bool {
        match &self.model {
            Model { source: ModelSource::Run { folder, definition }, of: Some(of), .. } => {
                !of.trained.has_weights_in(folder, self.step.unwrap_or(definition.steps))
            }
            _ => false,
        }
    }

    /// Reads its weights.
    pub fn read(&self) -> Result<Arc<dyn Probed>, RunError> {
        self.model.source.weights(self.step)
    }

    /// Reads its weights as a training run; `None` for a published model.
    pub fn read_run(&self) -> Result<Option<TrainedRun>, RunError> {
        self.model.source.run(self.step)
    }

    /// The tokens of its passages, by group and passage. `model`, its weights, tokenises the texts.
    pub fn read_passages(
        &self,
        model: &dyn Probed,
        context: &CellContext<'_>,
    ) -> Result<Vec<Vec<Vec<u32>>>, LmError> {
        self.read_more_passages(model, context, 0)
    }

    /// As [`read_passages`](Self::read_passages), with `more` further groups at the end.
    pub fn read_more_passages(
        &self,
        model: &dyn Probed,
        context: &CellContext<'_>,
        more: usize,
    ) -> Result<Vec<Vec<Vec<u32>>>, LmError> {
        let TrainedModels { keys: ModelKeys { groups, .. }, split, .. } = *self.among;
        let passages = Passages {
            groups: groups + more,
            passages: self.passages_of_a_group(),
            tokens: self.tokens(),
            split,
        };
        passages.of(model, context.texts)
    }
}

/// The selected layers, or all of `there` if the definition names none.
fn looked_at(among: &TrainedModels, there: Vec<usize>) -> Vec<usize> {
    match among.keys.layers.is_empty() {
        true => there,
        false => among.keys.layers.clone(),
    }
}

/// Returns an error if a file of exported heads lacks something that the definition asks for.
fn check_exported(
    heads: &ExportedHeads,
    among: &TrainedModels,
    text: Option<&TextSource>,
) -> Result<(), String> {
    if text.is_some() {
        return Err("has its own passages; leave --text out".to_owned());
    }
    if !among.keys.steps.is_empty()
        && !heads.step().is_some_and(|step| among.keys.steps.contains(&step))
    {
        return Err("is of another step; name only files of those steps".to_owned());
    }
    let (found, needed) = (heads.passages(), among.keys.groups * among.keys.passages.unwrap_or(1));
    match needed > found {
        true => Err(LmError::too_few("the file", found, needed, "passages").to_string()),
        false => Ok(()),
    }
}

/// Writes layers as text: `0 to 11` if they are consecutive.
fn ranges(layers: &[usize]) -> String {
    let is_next = |pair: &[usize]| pair[1] == pair[0] + 1;
    match layers {
        [first, .., last] if layers.windows(2).all(is_next) => format!("{first} to {last}"),
        _ => layers.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The approximate number of pairs that the mask allows in `rows` rows of a head over `n` tokens.
pub(crate) fn visible_pairs(kind: HeadKind, rows: f64, n: f64) -> f64 {
    match kind.window() {
        None => rows * n / 2.0,
        Some(window) => rows * (window as f64).min(n),
    }
}

/// The prefix of its cells' keys, the model, and the steps at which weights are kept.
type Planned = (String, Model, Vec<Option<usize>>);

/// The models of a source.
fn models(
    source: &RunSource,
    text: Option<&TextSource>,
    data: &Path,
    with_study: bool,
) -> Result<Vec<Planned>, StudyError> {
    match source {
        RunSource::Study { of, run } => {
            let study = TextSource::name_of_study(data, of, text);
            let one = |&seed: &u64| {
                let definition = TrainDefinition { seed, ..run.definition.clone() };
                let steps = kept_steps(&definition).into_iter().map(Some).collect();
                let cell = format!("{}/s{seed}", run.name);
                let name = if with_study { format!("{of}/{cell}") } else { cell.clone() };
                let trained = TrainCell::of(run, seed, text);
                let folder = data.join(&study).join(&cell);
                let model = Model {
                    name: run.name.clone(),
                    source: ModelSource::Run { folder, definition: Box::new(definition) },
                    of: Some(Box::new(OfStudy { study: of.clone(), cell, trained })),
                };
                Ok((name, model, steps))
            };
            run.seeds.iter().map(one).collect()
        }
        RunSource::Folder(folder) => {
            let (source, steps) = ModelSource::in_folder(folder).map_err(|e| match e {
                // These errors name the faulty file themselves.
                RunError::Model(e @ (LmError::File { .. } | LmError::Io { .. })) => e.into(),
                other => StudyError::Definition { path: folder.clone(), why: other.to_string() },
            })?;
            let name = match &source {
                ModelSource::Exported { heads } => heads.name().to_owned(),
                _ => folder
                    .file_name()
                    .map_or("run".into(), |name| name.to_string_lossy())
                    .into_owned(),
            };
            check_model_name(&name)
                .map_err(|why| StudyError::Definition { path: folder.clone(), why })?;
            Ok(vec![(name.clone(), Model { name, source, of: None }, steps)])
        }
    }
}
