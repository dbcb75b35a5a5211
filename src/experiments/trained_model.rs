//! A trained model at one step: its weights, the run that it needs, and the passages that it reads.

use std::path::Path;
use std::sync::Arc;

use toml::{Table, Value};

use super::model_key::ModelKey;
use super::trained_models::{ModelKeys, TrainedModels};
use super::training::{StudyRun, TrainCell, TrainingKey, cell_key, kept_steps};
use crate::experiment::{
    CellContext, Measure as _, Needs, StudyError, TextSource, check_model_name, model_settings,
    search_settings,
};
use crate::heads::Passages;
use crate::lm::{ExportedHeads, LmError, Probed, Split, TrainDefinition};
use crate::run::{ModelSource, RunError};
use crate::solver::SearchOptions;
use crate::table::distinct;

/// The number of passages of a group if the definition gives none.
pub(crate) const PASSAGES_OF_A_GROUP: usize = 2;

/// A trained model at one step, and the passages that it reads.
#[derive(Clone)]
pub(crate) struct TrainedModel {
    /// The name of the run in its study, or of the folder.
    name: String,
    /// The source of its weights.
    pub source: ModelSource,
    /// The run of another study that trains it, if any.
    of: Option<(Needs, TrainCell)>,
    /// The step; `None` for a published model.
    step: Option<usize>,
    text: Option<TextSource>,
    among: Arc<TrainedModels>,
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
        let runs = among.runs()?;
        let several = distinct(runs.iter().map(|(of, _)| of)).len() > 1;
        let folders =
            among.keys.folders.iter().map(|folder| Self::in_folder(folder, &shared, text));
        let mut models = folders.collect::<Result<Vec<_>, _>>()?;
        for (of, run) in &runs {
            for &seed in &run.seeds {
                let (model, steps) = Self::of_run(of, run, seed, &shared, text, data);
                let cell = cell_key(&run.name, seed);
                models.push((if several { format!("{of}/{cell}") } else { cell }, model, steps));
            }
        }
        let mut all: Vec<(String, Self)> = Vec::new();
        for (name, model, steps) in models {
            let wrong = |why: String| StudyError::Definition { path: name.clone().into(), why };
            if let ModelSource::Exported { heads } = &model.source {
                check_exported(heads, among, text).map_err(wrong)?;
            }
            if among.keys.bits.is_some() && !matches!(model.source, ModelSource::Run { .. }) {
                return Err(wrong("is no run trained here; leave the bits out".to_owned()));
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
                            "has no weights of step {step}; it has those of {kept:?}"
                        )));
                    }
                    among.keys.steps.iter().map(|&step| Some(step)).collect()
                }
                _ => steps,
            };
            let there = model.source.held_layers();
            if let Some(layer) = among.keys.layers.iter().find(|layer| !there.contains(layer)) {
                let there = match there[..] {
                    [first, .., last] if last - first + 1 == there.len() => {
                        format!("{first} to {last}")
                    }
                    _ => there.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
                };
                return Err(wrong(format!("has layers {there}, not {layer}")));
            }
            let context = model.source.context();
            if let Some(tokens) = among.keys.tokens.filter(|&tokens| tokens > context) {
                return Err(wrong(format!("reads at most {context} tokens ({tokens} asked for)")));
            }
            for step in steps {
                let at = step.map_or_else(String::new, |step| format!("/step-{step}"));
                let bits = among.keys.bits.map_or_else(String::new, |bits| format!("/{bits}-bit"));
                let key = format!("{name}{at}{bits}");
                if all.iter().any(|(other, _)| *other == key) {
                    return Err(wrong(format!(
                        "two of the models share the configurations {key}; rename one of them"
                    )));
                }
                all.push((key, Self { step, ..model.clone() }));
            }
        }
        Ok(all)
    }

    /// A run of the study `of` at a seed, and the steps at which its weights are kept.
    fn of_run(
        of: &str,
        run: &StudyRun,
        seed: u64,
        among: &Arc<TrainedModels>,
        text: Option<&TextSource>,
        data: &Path,
    ) -> (Self, Vec<Option<usize>>) {
        let definition = Box::new(TrainDefinition { seed, ..run.definition.clone() });
        let steps = kept_steps(&definition).into_iter().map(Some).collect();
        let cell = cell_key(&run.name, seed);
        let folder = data.join(TextSource::name_of_study(data, of, text)).join(&cell);
        let model = Self {
            name: run.name.clone(),
            source: ModelSource::Run { folder, definition },
            of: Some((Needs { study: of.to_owned(), cell }, TrainCell::of(run, seed, text))),
            step: None,
            text: text.cloned(),
            among: among.clone(),
        };
        (model, steps)
    }

    /// The model in a folder or file, its name, and the steps at which its weights are kept.
    fn in_folder(
        path: &Path,
        among: &Arc<TrainedModels>,
        text: Option<&TextSource>,
    ) -> Result<(String, Self, Vec<Option<usize>>), StudyError> {
        let wrong = |why: String| StudyError::Definition { path: path.to_owned(), why };
        if !path.exists() {
            return Err(match among.keys.fetch.clone() {
                Some(fetch) => StudyError::NotFetched { path: path.to_owned(), fetch },
                None => wrong("no such folder or file; name another".to_owned()),
            });
        }
        let (source, steps) = ModelSource::in_folder(path).map_err(|e| match e {
            // These errors name the faulty file themselves.
            RunError::Model(e @ (LmError::File { .. } | LmError::Io { .. })) => e.into(),
            other => wrong(other.to_string()),
        })?;
        let name = match &source {
            ModelSource::Exported { heads } => heads.name().to_owned(),
            _ => path.file_name().map_or("run".into(), |name| name.to_string_lossy()).into_owned(),
        };
        check_model_name(&name).map_err(wrong)?;
        let (text, among) = (text.cloned(), among.clone());
        let model = Self { name: name.clone(), source, of: None, step: None, text, among };
        Ok((name, model, steps))
    }

    /// The selected layers.
    pub fn layers(&self) -> Vec<usize> {
        match self.among.keys.layers.is_empty() {
            true => self.source.held_layers(),
            false => self.among.keys.layers.clone(),
        }
    }

    /// The number of passages of a group. The default is two, or an equal share of the passages of a file of exported heads.
    fn passages_of_a_group(&self) -> usize {
        self.among.keys.passages.unwrap_or_else(|| match &self.source {
            ModelSource::Exported { heads } => (heads.passages() / self.among.keys.groups).max(1),
            ModelSource::Run { .. } | ModelSource::Published { .. } => PASSAGES_OF_A_GROUP,
        })
    }

    /// The part of a cell's settings that identifies the model, its text, its step and its passages.
    pub fn settings(&self) -> Table {
        let TrainedModels { keys: ModelKeys { groups, tokens, bits, .. }, split, .. } =
            &*self.among;
        let mut table = Table::new();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        // The same run on another text is a different model.
        match (&self.of, &self.source) {
            (Some((_, trained)), _) => set("run", trained.settings().into()),
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
        if let Some(bits) = bits {
            set("bits", (*bits as i64).into());
        }
        set("split", split.map_or("all", Split::name).into());
        table
    }

    /// The values of those keys, and of a search, if a definition does not give them.
    pub fn defaults() -> Table {
        let mut table = Table::new();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        set("run", TrainCell::defaults().into());
        set("groups", 1.into());
        set("split", Split::Valid.name().into());
        set("search", search_settings(&SearchOptions::default()).into());
        table
    }

    /// The columns that identify the model in rows. A model with rounded matrices has them in the name of its run.
    pub fn key(&self) -> ModelKey {
        let of = self.unrounded_key();
        let run = match self.among.keys.bits {
            Some(bits) => format!("{}-{bits}-bit", of.run),
            None => of.run,
        };
        ModelKey { run, ..of }
    }

    fn unrounded_key(&self) -> ModelKey {
        let (name, text) = (&self.name, self.text.as_ref().map(|text| text.name.as_str()));
        match (&self.of, &self.source) {
            (Some((needs, trained)), _) => {
                ModelKey::of_run(Some(&needs.study), &trained.key(), self.step)
            }
            (None, ModelSource::Run { definition, .. }) => {
                ModelKey::of_run(None, &TrainingKey::of(name, definition, text), self.step)
            }
            (None, ModelSource::Published { model }) => {
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
        self.of.as_ref().map(|(needs, _)| needs.clone())
    }

    /// Whether the weights of another study's run are missing or belong to another run.
    pub fn lacks(&self) -> bool {
        match (&self.source, &self.of) {
            (ModelSource::Run { folder, definition }, Some((_, trained))) => {
                !trained.has_weights_in(folder, self.step.unwrap_or(definition.steps))
            }
            _ => false,
        }
    }

    /// Reads its weights, and rounds them if the study does.
    pub fn read(&self) -> Result<Arc<dyn Probed>, RunError> {
        self.source.weights(self.step, self.among.keys.bits)
    }

    /// The tokens of its passages, by group and passage, with `more` further groups at the end. `model`, its weights,
    /// tokenises the texts.
    pub fn read_passages(
        &self,
        model: &dyn Probed,
        context: &CellContext<'_>,
        more: usize,
    ) -> Result<Vec<Vec<Vec<u32>>>, LmError> {
        let TrainedModels { keys: ModelKeys { groups, tokens, .. }, split, .. } = *self.among;
        let passages = Passages {
            groups: groups + more,
            passages: self.passages_of_a_group(),
            tokens: tokens.unwrap_or_else(|| self.source.context()),
            split,
        };
        passages.of(model, context.texts)
    }

    /// At most `most` tokens from the start of the part of the text that passages are taken from.
    pub fn read_text(
        &self,
        model: &dyn Probed,
        context: &CellContext<'_>,
        most: usize,
    ) -> Result<Vec<u32>, LmError> {
        model.tokens(context.texts, self.among.split, most)
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
