//! One cell of a study of trained heads: the heads of one layer of one checkpoint, and their rows.

use std::path::Path;
use std::sync::Arc;

use toml::{Table, Value};

use super::StudyError;
use super::cell::{Measure, Needs, Within};
use super::definition::{PredictStudy, RunSource, kept_steps};
use super::settings;
use super::text_source::TextSource;
use super::train_cell::TrainCell;
use crate::fit::SearchOptions;
use crate::lm::{LmError, Probed, Split, TrainDefinition};
use crate::pattern::HeadKind;
use crate::predict::{LayerFit, Passages, PredictError};
use crate::row::{HeadFound, HeadOf, TrainingOf};
use crate::run::files::{CHECKPOINT, kept_checkpoint};
use crate::run::{ModelSource, RunError};

/// The heads of one layer of one checkpoint.
pub(super) struct PredictCell {
    model: Model,
    /// The step; none for a model from elsewhere.
    step: Option<usize>,
    layer: usize,
    text: Option<TextSource>,
    study: Arc<PredictStudy>,
}

/// One model of a study.
#[derive(Clone)]
struct Model {
    /// The run's name in its study, or the folder's.
    name: String,
    source: ModelSource,
    /// Where it is of another study.
    of: Option<Box<OfStudy>>,
}

/// What trains a run of another study.
#[derive(Clone)]
struct OfStudy {
    study: String,
    cell: String,
    trained: TrainCell,
}

impl PredictCell {
    /// Every cell of a study, by run, seed, step and layer. Other studies' runs are in `data`.
    ///
    /// # Errors
    /// A folder that holds no run, or lacks a step or layer that is asked for.
    pub fn all(
        study: &PredictStudy,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, Self)>, StudyError> {
        let shared = Arc::new(study.clone());
        let sources = study.sources()?;
        let mut studies: Vec<&str> = Vec::new();
        for source in &sources {
            if let RunSource::Study { of, .. } = source
                && !studies.contains(&of.as_str())
            {
                studies.push(of);
            }
        }
        let mut cells = Vec::new();
        for source in &sources {
            for (name, model, steps) in models(source, text, data, studies.len() > 1)? {
                let wrong = |why: String| StudyError::Definition { path: name.clone().into(), why };
                let steps = match (&model.source, study.steps.is_empty()) {
                    (ModelSource::Run { .. }, false) => {
                        let missing = study.steps.iter().find(|s| !steps.contains(&Some(**s)));
                        if let (None, Some(step)) = (&model.of, missing) {
                            let kept: Vec<usize> = steps.into_iter().flatten().collect();
                            return Err(wrong(format!(
                                "keeps the weights of steps {kept:?}, not of {step}"
                            )));
                        }
                        study.steps.iter().map(|&step| Some(step)).collect()
                    }
                    _ => steps,
                };
                let there = model.source.layers();
                let layers: Vec<usize> = match study.layers.is_empty() {
                    true => (0..there).collect(),
                    false => study.layers.clone(),
                };
                if let Some(layer) = layers.iter().find(|&&layer| layer >= there) {
                    return Err(wrong(format!("has layers 0 to {}, not {layer}", there - 1)));
                }
                let context = model.source.context();
                if let Some(tokens) = study.tokens.filter(|&tokens| tokens > context) {
                    return Err(wrong(format!("reads {context} tokens at most, not {tokens}")));
                }
                for step in steps {
                    let at = step.map_or_else(String::new, |step| format!("/step-{step}"));
                    for &layer in &layers {
                        let cell = Self {
                            model: model.clone(),
                            step,
                            layer,
                            text: text.cloned(),
                            study: shared.clone(),
                        };
                        cells.push((format!("{name}{at}/layer-{layer}"), cell));
                    }
                }
            }
        }
        Ok(cells)
    }

    fn run(
        &self,
        model: &dyn Probed,
        within: &Within<'_>,
    ) -> Result<Option<Vec<HeadFound>>, PredictError> {
        let study = &*self.study;
        let passages = Passages {
            groups: study.groups,
            passages: study.passages,
            tokens: study.tokens.unwrap_or_else(|| model.context()),
            split: study.split,
        };
        let groups = passages.of(model, within.texts)?;
        let fit = LayerFit {
            layer: self.layer,
            epsilons: &study.epsilons,
            ranks: &study.ranks,
            rows: study.rows.unwrap_or(MOST_ROWS),
            search: study.search,
        };
        let share = 1.0 / (study.groups * model.heads() * fit.fits_of_a_head()) as f64;
        let mut rows = Vec::new();
        let ended = fit.run(model, &groups, within.stop, |found| {
            if study.factors {
                found.keep_factors(within.folder)?;
            }
            rows.push(HeadFound::of(&found, study.passages));
            (within.advanced)(share);
            Ok(())
        })?;
        Ok(ended.then_some(rows))
    }
}

/// A model, the name of its cells, and the steps whose weights it keeps.
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
                let trained =
                    TrainCell::new(&run.name, &definition, text).taught_by(run.teacher.clone());
                let folder = data.join(&study).join(&cell);
                let model = Model {
                    name: run.name.clone(),
                    source: ModelSource::Run { folder, definition: Box::new(definition) },
                    of: Some(Box::new(OfStudy { study: of.clone(), cell, trained })),
                };
                (name, model, steps)
            };
            Ok(run.seeds.iter().map(one).collect())
        }
        RunSource::Folder(folder) => {
            let (source, steps) = ModelSource::in_folder(folder).map_err(|e| match e {
                // They name the file that is wrong.
                RunError::Model(e @ (LmError::File { .. } | LmError::Io { .. })) => e.into(),
                other => StudyError::Definition { path: folder.clone(), why: other.to_string() },
            })?;
            let name = folder.file_name().map_or("run".into(), |name| name.to_string_lossy());
            let model = Model { name: name.clone().into_owned(), source, of: None };
            Ok(vec![(name.into_owned(), model, steps)])
        }
    }
}

impl Measure for PredictCell {
    type Kind = HeadFound;

    fn settings(&self) -> Table {
        let PredictStudy { epsilons, ranks, passages, groups, tokens, rows, split, search, .. } =
            &*self.study;
        let mut table = Table::new();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        // The same run on another text is another.
        match (&self.model.of, &self.model.source) {
            (Some(of), _) => set("run", of.trained.settings().into()),
            (None, ModelSource::Run { definition, .. }) => {
                set("run", settings::model(definition).into())
            }
            (None, ModelSource::Published { identity, .. }) => {
                set("published", identity.clone().into())
            }
        };
        if let Some(text) = &self.text {
            set("text", text.hashes().settings().into());
        }
        let whole = |all: &[usize]| -> Value {
            all.iter().map(|&one| Value::from(one as i64)).collect::<Vec<_>>().into()
        };
        if let Some(step) = self.step {
            set("step", (step as i64).into());
        }
        set("layer", (self.layer as i64).into());
        set("epsilon", epsilons.clone().into());
        set("ranks", whole(ranks));
        set("passages", (*passages as i64).into());
        set("groups", (*groups as i64).into());
        for (key, value) in [("tokens", tokens), ("rows", rows)] {
            if let Some(value) = value {
                set(key, (*value as i64).into());
            }
        }
        set("split", split.map_or("all", Split::name).into());
        set("search", settings::search(search).into());
        table
    }

    fn defaults() -> Table {
        let mut table = Table::new();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        set("run", TrainCell::defaults().into());
        set("ranks", Value::Array(Vec::new()));
        set("groups", 1.into());
        set("split", Split::Valid.name().into());
        set("search", settings::search(&SearchOptions::default()).into());
        table
    }

    /// An evaluation costs about what its pairs do, and a head that sees all of them thousands of evaluations.
    fn cost_s(&self) -> f64 {
        let study = &*self.study;
        let source = &self.model.source;
        let d = match source {
            ModelSource::Run { definition, .. } => definition.d_model / definition.heads,
            ModelSource::Published { .. } => PUBLISHED_RANK,
        };
        let n = study.tokens.unwrap_or_else(|| source.context()) as f64;
        let rows = n.min(study.rows.unwrap_or(MOST_ROWS) as f64);
        let seen = |kind: &HeadKind| match kind {
            HeadKind::Global => rows * n / 2.0,
            HeadKind::Local { window } => rows * (*window as f64).min(n),
        };
        let pairs: f64 = source.head_kinds(self.layer).iter().map(seen).sum();
        let fits = (study.passages * study.groups * study.epsilons.len()) as f64;
        let ranks = [d].into_iter().chain(study.ranks.iter().copied());
        let channels: f64 = ranks.map(|rank| rank as f64 + 16.0).sum();
        fits * pairs * channels * SECONDS_PER_PAIR
    }

    fn of(&self) -> HeadOf {
        let Model { name, source, of } = &self.model;
        match (of, source) {
            (Some(of), _) => {
                HeadOf::of_run(Some(&of.study), &of.trained.of(), self.step, self.layer)
            }
            (None, ModelSource::Run { definition, .. }) => {
                let text = self.text.as_ref().map(|text| text.name.as_str());
                let run = TrainingOf::of(name, definition, text);
                HeadOf::of_run(None, &run, self.step, self.layer)
            }
            (None, ModelSource::Published { model, .. }) => HeadOf {
                of: None,
                run: name.clone(),
                arm: model.name().to_owned(),
                seed: None,
                corpus: self.text.as_ref().map(|text| text.name.clone()),
                layers: model.layers(),
                d_model: None,
                heads: model.heads(),
                global_heads: None,
                window: None,
                context: model.context(),
                batch: None,
                steps: None,
                learning_rate: None,
                recall: None,
                step: self.step,
                layer: self.layer,
            },
        }
    }

    fn needs(&self, _folder: &Path) -> Option<Needs> {
        let Model { source: ModelSource::Run { folder, definition }, of: Some(of), .. } =
            &self.model
        else {
            return None;
        };
        let weights = match self.step.filter(|&step| step != definition.steps) {
            Some(step) => kept_checkpoint(step),
            None => CHECKPOINT.to_owned(),
        };
        // Weights of another definition, or of a run that was stopped, are not those that the rows would name.
        let missing = !folder.join(weights).exists() || !of.trained.has_ended_in(folder);
        missing.then(|| Needs { study: of.study.clone(), cell: of.cell.clone() })
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<HeadFound>>, String> {
        let model = self.model.source.weights(self.step).map_err(|e| e.to_string())?;
        self.run(&*model, within).map_err(|e| e.to_string())
    }
}

/// Rows of a passage that are fitted where the definition names no other number: all of a context of this length.
const MOST_ROWS: usize = 1024;
/// Seconds of one core that the fits of a head take, by visible pair and (rank + 16).
const SECONDS_PER_PAIR: f64 = 1.2e-6;
/// The head dimension of published models, for the estimate alone.
const PUBLISHED_RANK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lm::{ForeignModel, Published};
    use crate::row::Rows;
    use crate::study::{Plan, Preset, StudyDefinition};

    /// Every head of a published model gets its rows, from its own tokenizer's tokens.
    #[test]
    fn published_models_are_held_against_what_they_needed_too() {
        for (published, visible) in [(Published::gpt2(), "gpt2"), (Published::bert(), "bert")] {
            let folder = tempfile::tempdir().unwrap();
            published.write_with_tokenizer(folder.path());
            let text = folder.path().join("text.txt");
            std::fs::write(&text, "the cat sat dog cat the sat ".repeat(40)).unwrap();
            let definition = format!(
                "study = \"published\"\nkind = \"predict\"\n[predict]\nfolders = [{:?}]\nepsilon = [0.1]\n\
                 passages = 2\ntokens = 6\nsplit = \"all\"\n",
                folder.path().display().to_string()
            );
            let path = Path::new("published.toml");
            let definition = StudyDefinition::parse(path, definition, Preset::Paper).unwrap();
            let data = folder.path().join("data");
            let plan = Plan::new(&definition, &data, None, Some(&text), None).unwrap();
            struct Nobody;
            impl crate::study::Observer for Nobody {}
            let sweep = crate::study::Sweep {
                threads: 1,
                stop: &std::sync::atomic::AtomicBool::new(false),
                device: crate::lm::Device::Cpu,
                observer: &Nobody,
            };
            let model = ForeignModel::read(folder.path()).unwrap();
            let summary = plan.run(&sweep).unwrap();
            assert!(summary.failed.is_empty(), "{:?}", summary.failed);
            let rows = Rows::<HeadFound>::read(&[data.join("published")]).unwrap().rows;
            assert_eq!(rows.len(), model.layers() * model.heads());
            assert!(rows.iter().all(|row| row.of.arm == visible && row.found.n == 6));
        }
    }
}
