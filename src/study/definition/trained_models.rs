//! Which trained models a study looks at, and the passages that they read.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Table;

use super::keys;
use super::names;
use super::preset::Preset;
use crate::lm::Split;

/// Which trained models a study looks at, and the passages that they read.
#[derive(Clone, Debug)]
pub struct TrainedModels {
    /// The studies of whose runs the models are.
    pub(crate) of: Vec<String>,
    /// Their runs; all where none is named.
    pub(crate) runs: Vec<String>,
    /// Their seeds; all of a run where none is named.
    pub(crate) seeds: Vec<u64>,
    /// The folders of single runs, or of models from elsewhere, and files of exported heads.
    pub(crate) folders: Vec<PathBuf>,
    /// The command that fetches them where they are not there.
    pub(crate) fetch: Option<String>,
    /// The definition's file, which those of the other studies lie beside.
    pub(crate) path: PathBuf,
    /// The table of the definition that names all this.
    pub(crate) place: &'static str,
    /// The size at which the other studies are taken.
    pub(crate) preset: Preset,
    /// The steps whose checkpoints are taken; where none is named, every one kept, or the last.
    pub(crate) steps: Vec<usize>,
    /// The layers; all where none is named.
    pub(crate) layers: Vec<usize>,
    /// Passages of a group, which are looked at together; where no number is named, two, or all that a file of exported
    /// heads has.
    pub(crate) passages: Option<usize>,
    /// Groups, each at other places of the text.
    pub(crate) groups: usize,
    /// Tokens of a passage; the model's context where none are named.
    pub(crate) tokens: Option<usize>,
    /// The part of the text that passages are of; none for all of it.
    pub(crate) split: Option<Split>,
}

#[derive(Deserialize)]
struct Keys {
    #[serde(default)]
    of: Vec<String>,
    #[serde(default)]
    runs: Vec<String>,
    #[serde(default)]
    seeds: Vec<u64>,
    #[serde(default)]
    folders: Vec<PathBuf>,
    fetch: Option<String>,
    #[serde(default)]
    steps: Vec<usize>,
    #[serde(default)]
    layers: Vec<usize>,
    passages: Option<usize>,
    #[serde(default = "one")]
    groups: usize,
    tokens: Option<usize>,
    #[serde(default = "valid")]
    split: String,
}

fn one() -> usize {
    1
}

fn valid() -> String {
    "valid".to_owned()
}

/// The models that the table `[place]` names, and what it has beside: the fields of `T`. `path` is the definition's
/// own: other studies are defined beside it.
pub(super) fn read<T: DeserializeOwned>(
    table: Option<&Table>,
    place: &'static str,
    path: &Path,
    preset: Preset,
) -> Result<(TrainedModels, T), String> {
    let table = table.ok_or_else(|| format!("a study of trained models needs a [{place}]"))?;
    let (keys, own): (Keys, T) = keys::read_both(table, place)?;
    if keys.of.is_empty() && keys.folders.is_empty() {
        return Err(format!("{place} needs of (studies of runs) or folders (of runs)"));
    }
    keys.of.iter().try_for_each(|study| names::study(&format!("{place}.of"), study))?;
    if [keys.passages, Some(keys.groups), keys.tokens].contains(&Some(0)) {
        return Err(format!("{place}.passages, groups and tokens must be at least 1"));
    }
    let split =
        match keys.split.as_str() {
            "all" => None,
            name => Some(Split::ALL.into_iter().find(|split| split.name() == name).ok_or_else(
                || format!("{place}.split is {name:?}; give all, train, valid or test"),
            )?),
        };
    let models = TrainedModels {
        of: keys.of,
        runs: keys.runs,
        seeds: keys.seeds,
        folders: keys.folders,
        fetch: keys.fetch,
        path: path.to_owned(),
        place,
        preset,
        steps: keys.steps,
        layers: keys.layers,
        passages: keys.passages,
        groups: keys.groups,
        tokens: keys.tokens,
        split,
    };
    Ok((models, own))
}
