//! Selection of trained models and passages by a study.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::training::{StudyRun, check_kept_step, check_known_run, runs_of};
use crate::experiment::{
    ModelReferences, Preset, RawDefinition, StudyError, check_study_name, read_both,
};
use crate::lm::Split;
use crate::solver::Precision;

/// The trained models that a study measures, and the passages that they read.
#[derive(Clone, Debug)]
pub struct TrainedModels {
    /// What the definition says.
    pub(super) keys: ModelKeys,
    /// The definition's file; the definitions of other studies are in the same folder.
    pub(crate) path: PathBuf,
    /// The table of the definition that has these keys.
    pub(crate) place: &'static str,
    /// The size of the other studies.
    pub(crate) preset: Preset,
    /// The part of the text from which passages are taken; `None` for all of it.
    pub(crate) split: Option<Split>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct ModelKeys {
    /// Studies whose trained runs are read.
    #[serde(default)]
    pub(super) of: Vec<String>,
    /// Runs of these studies; default all.
    #[serde(default)]
    pub(super) runs: Vec<String>,
    /// Seeds; default all of each run.
    #[serde(default)]
    pub(super) seeds: Vec<u64>,
    /// Folders of single runs or published models, and files of exported heads.
    #[serde(default)]
    pub(super) folders: Vec<PathBuf>,
    /// Command that fetches the folders where they are missing.
    pub(super) fetch: Option<String>,
    /// Steps whose checkpoints are read; default all kept ones, or the last.
    #[serde(default)]
    pub(super) steps: Vec<usize>,
    /// Layers; default all.
    #[serde(default)]
    pub(super) layers: Vec<usize>,
    /// Passages per group; default 2, or all of an exported file.
    pub(super) passages: Option<usize>,
    /// Groups of passages, each from another part of the text.
    #[serde(default = "one")]
    pub(super) groups: usize,
    /// Tokens per passage; default the context of the model.
    pub(super) tokens: Option<usize>,
    /// Bits to which the matrices of blocks are rounded first; default none.
    pub(super) bits: Option<usize>,
    /// Part of the text: `all`, `train`, `valid` or `test`.
    #[serde(default = "valid")]
    pub(super) split: String,
}

fn one() -> usize {
    1
}

fn valid() -> String {
    "valid".to_owned()
}

/// Reads the models from the table `[place]`, and its other keys as the fields of `T`.
pub(super) fn read<T: DeserializeOwned>(
    raw: &RawDefinition,
    place: &'static str,
) -> Result<(TrainedModels, T), String> {
    let table =
        raw.table(place)?.ok_or_else(|| format!("a study of trained models needs a [{place}]"))?;
    let (keys, own): (ModelKeys, T) = read_both(table, place)?;
    if keys.of.is_empty() && keys.folders.is_empty() {
        return Err(format!("{place} needs of (studies of runs) or folders (of runs)"));
    }
    keys.of.iter().try_for_each(|study| check_study_name(&format!("{place}.of"), study))?;
    if [keys.passages, Some(keys.groups), keys.tokens].contains(&Some(0)) {
        return Err(format!("{place}.passages, groups and tokens must be at least 1"));
    }
    if let Some(bits) = keys.bits.filter(|bits| !(2..=8).contains(bits)) {
        return Err(format!("{place}.bits is {bits}; give 2 to 8"));
    }
    let split =
        match keys.split.as_str() {
            "all" => None,
            name => Some(Split::ALL.into_iter().find(|split| split.name() == name).ok_or_else(
                || format!("{place}.split is {name:?}; give all, train, valid or test"),
            )?),
        };
    let models = TrainedModels { keys, path: raw.path.clone(), place, preset: raw.preset, split };
    Ok((models, own))
}

impl TrainedModels {
    /// The runs of other studies as they are now defined, each with its study, at the seeds that are read.
    ///
    /// # Errors
    /// A study that is not defined beside this one or that trains nothing, with the nearest name. A run that no named
    /// study has. A step whose weights a run does not keep.
    pub(crate) fn runs(&self) -> Result<Vec<(String, StudyRun)>, StudyError> {
        self.named().map_err(|why| StudyError::Definition { path: self.path.clone(), why })
    }

    fn named(&self) -> Result<Vec<(String, StudyRun)>, String> {
        let Self { keys: ModelKeys { runs, seeds, steps, .. }, place, .. } = self;
        let mut found = Vec::new();
        for of in &self.keys.of {
            let all = runs_of(of, &self.path, self.preset)
                .map_err(|why| format!("{place}.of {of:?}: {why}"))?;
            found.extend(all.into_iter().map(|run| (of.clone(), run)));
        }
        if !runs.is_empty() {
            let known: Vec<&str> = found.iter().map(|(_, run)| run.name.as_str()).collect();
            for run in runs {
                check_known_run(run, &known).map_err(|why| format!("{place}.runs has {why}"))?;
            }
            found.retain(|(_, run)| runs.contains(&run.name));
        }
        if !seeds.is_empty() {
            found.iter_mut().for_each(|(_, run)| run.seeds.retain(|seed| seeds.contains(seed)));
            let is_used = |seed: &&u64| found.iter().any(|(_, run)| run.seeds.contains(seed));
            if let Some(seed) = seeds.iter().find(|seed| !is_used(seed)) {
                return Err(format!("{place}.seeds has {seed}, which none of these runs uses"));
            }
        }
        for (of, run) in &found {
            for &step in steps {
                check_kept_step(step, of, run).map_err(|why| format!("{place}.steps has {why}"))?;
            }
        }
        Ok(found)
    }
}

impl ModelReferences for TrainedModels {
    fn are_of_studies(&self) -> bool {
        !self.keys.of.is_empty()
    }

    fn check(&self) -> Result<(), StudyError> {
        self.runs().map(|_| ())
    }
}

/// The name of the floating-point type in which fits of trained heads compute.
pub(super) fn dtype_of(precision: Precision) -> String {
    match precision {
        Precision::F32 => "float32".to_owned(),
        Precision::F64 => "float64".to_owned(),
    }
}

/// The default limit on measured rows per passage: all rows of a context of this length.
pub(super) const MOST_ROWS: usize = 1024;

/// Returns an error unless there are `least` errors ε or more, all finite and above 0.
pub(super) fn check_errors(place: &str, epsilons: &[f64], least: usize) -> Result<(), String> {
    match epsilons.len() >= least && epsilons.iter().all(|e| e.is_finite() && *e > 0.0) {
        true => Ok(()),
        false => {
            Err(format!("{place}.epsilon is {epsilons:?}; it needs finite errors above 0, in nats"))
        }
    }
}
