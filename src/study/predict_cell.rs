//! One cell of a study of trained heads: the heads of one layer of one checkpoint, and their rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use toml::{Table, Value};

use super::cell::{Measure, Needs, Within};
use super::definition::{PredictStudy, RunSource, kept_steps};
use super::fit_cell::write_factors;
use super::settings;
use super::text_source::TextSource;
use super::train_cell::TrainCell;
use super::{StudyError, TrainError};
use crate::fit::SearchOptions;
use crate::lm::{ForeignModel, HeadProbe, LmError, Split, Texts, TrainDefinition};
use crate::pattern::HeadKind;
use crate::predict::{Parts, PredictError, TrainedHead};
use crate::row::{HeadFound, HeadOf, TrainingOf};
use crate::run::TrainedRun;
use crate::run::files::{CHECKPOINT, kept_checkpoint, kept_steps as steps_in};
use crate::system::sha256;

/// Passages are this many of their lengths apart, where the text is long enough.
const STRIDE: usize = 4;

/// The heads of one layer of one checkpoint.
pub(super) struct PredictCell {
    source: Source,
    /// The step; none for a model from elsewhere.
    step: Option<usize>,
    layer: usize,
    text: Option<TextSource>,
    study: Arc<PredictStudy>,
}

/// Whose weights they are.
#[derive(Clone)]
enum Source {
    /// A training run, in its folder; of a study, what trains it.
    Run {
        name: String,
        folder: PathBuf,
        definition: Box<TrainDefinition>,
        of: Option<Box<OfStudy>>,
    },
    /// A model from elsewhere, read once for all cells, and what tells it from others of its name.
    Published { name: String, model: Arc<ForeignModel>, identity: String },
}

/// A model with its weights.
enum Weights<'a> {
    Run(Box<TrainedRun>),
    Published(&'a ForeignModel),
}

impl Weights<'_> {
    fn context(&self) -> usize {
        match self {
            Self::Run(run) => run.context(),
            Self::Published(model) => model.context(),
        }
    }

    /// The first tokens, `most` at most, of a text or its part.
    fn tokens(
        &self,
        texts: Option<&Texts>,
        split: Option<Split>,
        most: usize,
    ) -> Result<Vec<u32>, LmError> {
        match self {
            Self::Run(run) => run.tokens(texts, split, most),
            Self::Published(model) => {
                let text = texts.ok_or(LmError::NoText)?.beginning(most * BYTES_PER_TOKEN)?;
                let mut tokens = model.encode(&text)?;
                tokens.truncate(most);
                Ok(tokens)
            }
        }
    }

    fn probe(&self, passage: &[u32]) -> Result<Vec<HeadProbe>, LmError> {
        match self {
            Self::Run(run) => run.probe(passage),
            Self::Published(model) => model.probe(passage),
        }
    }
}

impl Source {
    fn weights(&self, step: Option<usize>) -> Result<Weights<'_>, TrainError> {
        match self {
            Self::Run { folder, definition, .. } => {
                let step = step.filter(|&step| step != definition.steps);
                Ok(Weights::Run(Box::new(TrainedRun::read(folder, step)?)))
            }
            Self::Published { model, .. } => Ok(Weights::Published(model)),
        }
    }

    fn layers(&self) -> usize {
        match self {
            Self::Run { definition, .. } => definition.layers,
            Self::Published { model, .. } => model.layers(),
        }
    }

    fn context(&self) -> usize {
        match self {
            Self::Run { definition, .. } => definition.context,
            Self::Published { model, .. } => model.context(),
        }
    }

    fn heads(&self) -> usize {
        match self {
            Self::Run { definition, .. } => definition.heads,
            Self::Published { model, .. } => model.heads(),
        }
    }
}

#[derive(Clone)]
struct OfStudy {
    study: String,
    cell: String,
    trained: TrainCell,
}

/// Why a cell of trained heads has no rows.
#[derive(Debug, thiserror::Error)]
enum CellError {
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(transparent)]
    Predict(#[from] PredictError),
}

impl From<LmError> for CellError {
    fn from(error: LmError) -> Self {
        Self::Train(error.into())
    }
}

impl From<StudyError> for CellError {
    fn from(error: StudyError) -> Self {
        Self::Train(error.into())
    }
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
        let mut studies: Vec<&str> = Vec::new();
        for source in &study.sources {
            if let RunSource::Study { of, .. } = source
                && !studies.contains(&of.as_str())
            {
                studies.push(of);
            }
        }
        let mut cells = Vec::new();
        for source in &study.sources {
            for (name, source, steps) in runs(source, text, data, studies.len() > 1)? {
                let wrong = |why: String| StudyError::Definition { path: name.clone().into(), why };
                let steps = match (&source, study.steps.is_empty()) {
                    (Source::Run { of, .. }, false) => {
                        let missing = study.steps.iter().find(|s| !steps.contains(&Some(**s)));
                        if let (None, Some(step)) = (of, missing) {
                            let kept: Vec<usize> = steps.into_iter().flatten().collect();
                            return Err(wrong(format!(
                                "keeps the weights of steps {kept:?}, not of {step}"
                            )));
                        }
                        study.steps.iter().map(|&step| Some(step)).collect()
                    }
                    _ => steps,
                };
                let there = source.layers();
                let layers: Vec<usize> = match study.layers.is_empty() {
                    true => (0..there).collect(),
                    false => study.layers.clone(),
                };
                if let Some(layer) = layers.iter().find(|&&layer| layer >= there) {
                    return Err(wrong(format!("has layers 0 to {}, not {layer}", there - 1)));
                }
                if let Some(tokens) = study.tokens.filter(|&tokens| tokens > source.context()) {
                    let context = source.context();
                    return Err(wrong(format!("reads {context} tokens at most, not {tokens}")));
                }
                for step in steps {
                    let at = step.map_or_else(String::new, |step| format!("/step-{step}"));
                    for &layer in &layers {
                        let cell = Self {
                            source: source.clone(),
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

    fn run(&self, within: &Within<'_>) -> Result<Option<Vec<HeadFound>>, CellError> {
        let run = self.source.weights(self.step)?;
        let study = &*self.study;
        let tokens = study.tokens.unwrap_or_else(|| run.context());
        let wanted = study.passages * study.groups;
        let read = run.tokens(within.texts, study.split, wanted * STRIDE * tokens)?;
        // A short text's passages follow one another.
        let stride = if read.len() == wanted * STRIDE * tokens { STRIDE * tokens } else { tokens };
        if read.len() < wanted * tokens {
            let needed = wanted * tokens;
            return Err(LmError::ShortText { found: read.len(), needed }.into());
        }
        let mut rows = Vec::new();
        let heads = self.source.heads();
        let fits = heads * study.epsilons.len() * (1 + study.ranks.len());
        let share = 1.0 / (study.groups * fits) as f64;
        for group in 0..study.groups {
            let firsts: Vec<usize> =
                (0..study.passages).map(|p| (group * study.passages + p) * stride).collect();
            let probes: Vec<Vec<HeadProbe>> = firsts
                .iter()
                .map(|&first| run.probe(&read[first..first + tokens]))
                .collect::<Result<_, _>>()?;
            for head in 0..heads {
                let of_head: Vec<&HeadProbe> = probes
                    .iter()
                    .flatten()
                    .filter(|probe| (probe.layer, probe.head) == (self.layer, head))
                    .collect();
                let most = study.rows.unwrap_or(MOST_ROWS);
                let trained = TrainedHead::new(&of_head, Some(most))?;
                let actual = trained.actual()?;
                let mut any_rank = Vec::new();
                if !study.ranks.is_empty() {
                    for &epsilon in &study.epsilons {
                        any_rank.push(trained.at_any_rank(epsilon, study.search)?);
                    }
                }
                let wider: Vec<TrainedHead> =
                    study.ranks.iter().map(|&r| trained.at_rank(r)).collect::<Result<_, _>>()?;
                for trained in [&trained].into_iter().chain(&wider) {
                    for (at, &epsilon) in study.epsilons.iter().enumerate() {
                        if within.stop.load(Ordering::Relaxed) {
                            return Ok(None);
                        }
                        let started = Instant::now();
                        let parts = trained.parts(&actual, epsilon, study.search)?;
                        if study.factors {
                            keep_factors(within.folder, trained, group, &parts)?;
                        }
                        let any_rank = any_rank.get(at).and_then(Option::as_ref);
                        let seconds = started.elapsed().as_secs_f64();
                        let group = (group, study.passages);
                        rows.push(HeadFound::of(
                            trained, group, &actual, &parts, any_rank, seconds,
                        ));
                        (within.advanced)(share);
                    }
                }
            }
        }
        Ok(Some(rows))
    }
}

/// A run's name, itself, and the steps whose weights it keeps.
type Planned = (String, Source, Vec<Option<usize>>);

/// The runs of a source.
fn runs(
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
                let source = Source::Run {
                    name: run.name.clone(),
                    folder: data.join(&study).join(&cell),
                    of: Some(Box::new(OfStudy {
                        study: of.clone(),
                        cell,
                        trained: TrainCell::new(&run.name, &definition, text)
                            .taught_by(run.teacher.clone()),
                    })),
                    definition: Box::new(definition),
                };
                (name, source, steps)
            };
            Ok(run.seeds.iter().map(one).collect())
        }
        RunSource::Folder(folder) if ForeignModel::is_in(folder) => {
            let model = Arc::new(ForeignModel::read(folder)?);
            let name = folder_name(folder);
            let identity = published_identity(folder)?;
            Ok(vec![(name.clone(), Source::Published { name, model, identity }, vec![None])])
        }
        RunSource::Folder(folder) => {
            let definition = TrainedRun::definition_in(folder)
                .map_err(|e| StudyError::Definition { path: folder.clone(), why: e.to_string() })?;
            let mut steps = steps_in(folder);
            if steps.is_empty() || folder.join(CHECKPOINT).exists() {
                steps.push(definition.steps);
            }
            steps.sort_unstable();
            steps.dedup();
            let name = folder_name(folder);
            let source = Source::Run {
                name: name.clone(),
                folder: folder.clone(),
                definition: Box::new(definition),
                of: None,
            };
            Ok(vec![(name, source, steps.into_iter().map(Some).collect())])
        }
    }
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// What tells a published model from others: what its configuration hashes to, and how long its weights are.
fn published_identity(folder: &Path) -> Result<String, StudyError> {
    let config = folder.join("config.json");
    let text = std::fs::read(&config).map_err(|e| StudyError::read(&config, e))?;
    let weights = folder.join("model.safetensors");
    let length = std::fs::metadata(&weights).map_err(|e| StudyError::read(&weights, e))?.len();
    Ok(format!("{} {length}", sha256(&text)))
}

/// Writes the factors that were found, where there are any, into folders named for head, passage, rank, ε and kind.
fn keep_factors(
    folder: &Path,
    head: &TrainedHead,
    group: usize,
    parts: &Parts,
) -> Result<(), StudyError> {
    for (kind, found) in [("free", &parts.needed), ("tied", &parts.needed_tied)] {
        if let Some(factors) = &found.factors {
            let (at, rank, epsilon) = (head.head, head.rank(), parts.epsilon);
            let name = format!("head-{at}-passage-{group}-rank-{rank}-e{epsilon}-{kind}");
            write_factors(&folder.join(name), factors)?;
        }
    }
    Ok(())
}

impl Measure for PredictCell {
    type Kind = HeadFound;

    fn settings(&self) -> Table {
        let PredictStudy { epsilons, ranks, passages, groups, tokens, rows, split, search, .. } =
            &*self.study;
        let mut table = Table::new();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        // The same run on another text is another.
        match &self.source {
            Source::Run { of: Some(of), .. } => set("run", of.trained.settings().into()),
            Source::Run { definition, .. } => set("run", settings::model(definition).into()),
            Source::Published { identity, .. } => set("published", identity.clone().into()),
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
        let (n, d, kinds) = match &self.source {
            Source::Run { definition, .. } => {
                let kinds = definition.head_kinds().into_iter().nth(self.layer).unwrap_or_default();
                (definition.context, definition.d_model / definition.heads, kinds)
            }
            Source::Published { model, .. } => {
                (model.context(), PUBLISHED_RANK, vec![HeadKind::Global; model.heads()])
            }
        };
        let n = study.tokens.unwrap_or(n) as f64;
        let rows = n.min(study.rows.unwrap_or(MOST_ROWS) as f64);
        let seen = |kind: &HeadKind| match kind {
            HeadKind::Global => rows * n / 2.0,
            HeadKind::Local { window } => rows * (*window as f64).min(n),
        };
        let pairs: f64 = kinds.iter().map(seen).sum();
        let fits = (study.passages * study.groups * study.epsilons.len()) as f64;
        let ranks = [d].into_iter().chain(study.ranks.iter().copied());
        let channels: f64 = ranks.map(|rank| rank as f64 + 16.0).sum();
        fits * pairs * channels * SECONDS_PER_PAIR
    }

    fn of(&self) -> HeadOf {
        match &self.source {
            Source::Run { of: Some(of), .. } => {
                HeadOf::of_run(Some(&of.study), &of.trained.of(), self.step, self.layer)
            }
            Source::Run { name, definition, .. } => {
                let text = self.text.as_ref().map(|text| text.name.as_str());
                let run = TrainingOf::of(name, definition, text);
                HeadOf::of_run(None, &run, self.step, self.layer)
            }
            Source::Published { name, model, .. } => HeadOf {
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
        let Source::Run { folder, definition, of: Some(of), .. } = &self.source else {
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
        self.run(within).map_err(|e| e.to_string())
    }
}

/// Rows of a passage that are fitted where the definition names no other number: all of a context of this length.
const MOST_ROWS: usize = 1024;
/// Seconds of one core that the fits of a head take, by visible pair and (rank + 16).
const SECONDS_PER_PAIR: f64 = 1.2e-6;
/// The head dimension of published models, for the estimate alone.
const PUBLISHED_RANK: usize = 64;
/// Bytes of text that a token of a published model is taken to need at most.
const BYTES_PER_TOKEN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lm::Published;
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
