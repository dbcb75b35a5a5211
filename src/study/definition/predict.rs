//! A study of trained heads: runs × checkpoints × ε, each head held against what its attention needed.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::fit::{SEARCH_DEFAULTS_OF_HEADS, search_over};
use super::train::Run;
use super::{Preset, StudyDefinition, StudyWork, Top};
use crate::fit::SearchOptions;
use crate::lm::{Split, TrainDefinition};

/// Trained heads to be held against what their attention needed.
#[derive(Clone, Debug)]
pub struct PredictStudy {
    /// Whose heads.
    pub(crate) sources: Vec<RunSource>,
    /// The steps whose checkpoints are taken; where none is named, every one kept, or the last.
    pub(crate) steps: Vec<usize>,
    /// The errors ε, in nats.
    pub(crate) epsilons: Vec<f64>,
    /// Larger ranks at which each head is fitted, beside its own.
    pub(crate) ranks: Vec<usize>,
    /// Passages that a head's queries and keys are fitted to at once.
    pub(crate) passages: usize,
    /// How many times so many, at other places of the text, a row each.
    pub(crate) groups: usize,
    /// Tokens of a passage; the model's context where none are named.
    pub(crate) tokens: Option<usize>,
    /// Rows of a passage that are fitted at most.
    pub(crate) rows: Option<usize>,
    /// The part of the text that passages are of; none for all of it.
    pub(crate) split: Option<Split>,
    /// The layers; all where none is named.
    pub(crate) layers: Vec<usize>,
    /// Whether the factors found are kept, as certificates.
    pub(crate) factors: bool,
    /// How the fits search.
    pub(crate) search: SearchOptions,
}

impl PredictStudy {
    /// Whether its runs are those of other studies.
    pub(super) fn is_of_studies(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, RunSource::Study { .. }))
    }
}

/// Where trained models are.
#[derive(Clone, Debug)]
pub(crate) enum RunSource {
    /// A run of another study, at each of its seeds.
    Study { of: String, run: Box<Run> },
    /// The folder of one run, or of a model from elsewhere.
    Folder(PathBuf),
}

pub(super) const PREDICT_KEYS: &[&str] = &[
    "of", "runs", "folders", "steps", "epsilon", "ranks", "passages", "groups", "tokens", "rows",
    "split", "layers", "factors",
];

#[derive(Deserialize)]
pub(super) struct Predict {
    #[serde(default)]
    of: Vec<String>,
    #[serde(default)]
    runs: Vec<String>,
    #[serde(default)]
    folders: Vec<PathBuf>,
    #[serde(default)]
    steps: Vec<usize>,
    epsilon: Vec<f64>,
    #[serde(default)]
    ranks: Vec<usize>,
    #[serde(default = "two")]
    passages: usize,
    #[serde(default = "one")]
    groups: usize,
    tokens: Option<usize>,
    rows: Option<usize>,
    #[serde(default = "valid")]
    split: String,
    #[serde(default)]
    layers: Vec<usize>,
    #[serde(default)]
    factors: bool,
}

fn two() -> usize {
    2
}

fn one() -> usize {
    1
}

fn valid() -> String {
    "valid".to_owned()
}

/// `path` is the definition's own: other studies are defined beside it.
pub(super) fn read(top: &Top, path: &Path, preset: Preset) -> Result<PredictStudy, String> {
    let keys = top.predict.as_ref().ok_or("a study of trained heads needs a [predict]")?;
    let mut sources: Vec<RunSource> = keys.folders.iter().cloned().map(RunSource::Folder).collect();
    for of in &keys.of {
        sources.extend(runs_of(of, path, preset)?);
    }
    if !keys.runs.is_empty() {
        let known: Vec<String> = sources.iter().filter_map(RunSource::run).collect();
        if let Some(unknown) = keys.runs.iter().find(|run| !known.contains(run)) {
            return Err(format!("predict.runs has {unknown:?}; there are {}", known.join(", ")));
        }
        sources.retain(|source| source.run().is_none_or(|run| keys.runs.contains(&run)));
    }
    if sources.is_empty() {
        return Err("predict needs of, the studies of its runs, or folders of runs".to_owned());
    }
    for source in &sources {
        source.check(&keys.steps)?;
    }
    let positive = |e: &&f64| !(e.is_finite() && **e > 0.0);
    if keys.epsilon.is_empty() || keys.epsilon.iter().any(|e| positive(&e)) {
        return Err(format!(
            "predict.epsilon is {:?}; it needs errors in nats, finite and above 0",
            keys.epsilon
        ));
    }
    if [Some(keys.passages), Some(keys.groups), keys.tokens, keys.rows].contains(&Some(0)) {
        return Err("predict.passages, groups, tokens and rows must be at least 1".to_owned());
    }
    if keys.ranks.contains(&0) || !keys.ranks.is_sorted_by(|a, b| a < b) {
        return Err(format!("predict.ranks is {:?}; it needs ranks that ascend", keys.ranks));
    }
    let split =
        match keys.split.as_str() {
            "all" => None,
            name => Some(Split::ALL.into_iter().find(|split| split.name() == name).ok_or_else(
                || format!("predict.split is {name:?}; give all, train, valid or test"),
            )?),
        };
    Ok(PredictStudy {
        sources,
        steps: keys.steps.clone(),
        epsilons: keys.epsilon.clone(),
        ranks: keys.ranks.clone(),
        passages: keys.passages,
        groups: keys.groups,
        tokens: keys.tokens,
        rows: keys.rows,
        split,
        layers: keys.layers.clone(),
        factors: keys.factors,
        search: search_over(&top.search, SEARCH_DEFAULTS_OF_HEADS)?,
    })
}

/// The runs of study `of`, defined beside `path`.
fn runs_of(of: &str, path: &Path, preset: Preset) -> Result<Vec<RunSource>, String> {
    let other = path.with_file_name(format!("{of}.toml"));
    let wrong = |why: String| format!("predict.of {of:?}: {why}");
    let definition = StudyDefinition::read(&other, preset).map_err(|e| wrong(e.to_string()))?;
    let StudyWork::Train(study) = definition.work else {
        return Err(wrong("is no study of training runs".to_owned()));
    };
    let source = |run| RunSource::Study { of: of.to_owned(), run: Box::new(run) };
    Ok(study.runs.into_iter().map(source).collect())
}

impl RunSource {
    /// The run's name in its study.
    pub(super) fn run(&self) -> Option<String> {
        match self {
            Self::Study { run, .. } => Some(run.name.clone()),
            Self::Folder(_) => None,
        }
    }

    /// Refuses steps that the run keeps no weights of.
    fn check(&self, steps: &[usize]) -> Result<(), String> {
        let Self::Study { of, run } = self else { return Ok(()) };
        let kept = kept_steps(&run.definition);
        match steps.iter().find(|step| !kept.contains(step)) {
            None => Ok(()),
            Some(step) => Err(format!(
                "predict.steps has {step}, but run {} of {of} keeps the weights of {kept:?}; name it in its \
                 keep_checkpoints",
                run.name
            )),
        }
    }
}

/// The steps of a run whose weights are there in the end.
pub(crate) fn kept_steps(definition: &TrainDefinition) -> Vec<usize> {
    let mut kept = definition.keep_checkpoints.clone();
    kept.push(definition.steps);
    kept.sort_unstable();
    kept.dedup();
    kept
}
