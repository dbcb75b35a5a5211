//! A study of trained heads: runs × checkpoints × ε, each head held against what its attention needed.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Table;

use super::preset::Preset;
use super::{keys, search};
use crate::fit::SearchOptions;
use crate::lm::Split;

/// Trained heads to be held against what their attention needed.
#[derive(Clone, Debug)]
pub struct PredictStudy {
    /// The studies of whose runs the heads are.
    pub(crate) of: Vec<String>,
    /// Their runs; all where none is named.
    pub(crate) runs: Vec<String>,
    /// The folders of single runs, or of models from elsewhere.
    pub(crate) folders: Vec<PathBuf>,
    /// The definition's file, which those of the other studies lie beside.
    pub(crate) path: PathBuf,
    /// The size at which they are taken.
    pub(crate) preset: Preset,
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

#[derive(Deserialize)]
struct Predict {
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
pub(super) fn read(
    predict: Option<&Table>,
    search: &Table,
    path: &Path,
    preset: Preset,
) -> Result<PredictStudy, String> {
    let table = predict.ok_or("a study of trained heads needs a [predict]")?;
    let keys: Predict = keys::read(table, "predict")?;
    if keys.of.is_empty() && keys.folders.is_empty() {
        return Err("predict needs of, the studies of its runs, or folders of runs".to_owned());
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
        of: keys.of,
        runs: keys.runs,
        folders: keys.folders,
        path: path.to_owned(),
        preset,
        steps: keys.steps,
        epsilons: keys.epsilon,
        ranks: keys.ranks,
        passages: keys.passages,
        groups: keys.groups,
        tokens: keys.tokens,
        rows: keys.rows,
        split,
        layers: keys.layers,
        factors: keys.factors,
        search: search::of_heads(search)?,
    })
}
