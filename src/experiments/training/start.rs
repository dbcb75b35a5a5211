//! Initial weights of a training run that come from another run.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use crate::experiment::{Preset, RawDefinition, check_run_name, check_study_name, read_table};
use crate::heads::{Edit, PredictError};
use crate::system::nearest::nearest;

/// The weights of a run of another study with the same seed and text, edited or not.
#[derive(Clone, Debug)]
pub(crate) struct StartsFrom {
    /// The study.
    pub study: String,
    /// The run.
    pub run: String,
    /// The step of the weights; by default the run's last.
    pub(super) step: Option<usize>,
    /// The edit of the weights, if any.
    pub edit: Option<StartEdit>,
    /// The definition's file; the definition of the other study is in the same folder.
    pub(super) path: PathBuf,
    /// The size of the other study.
    pub(super) preset: Preset,
}

/// An edit of weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartEdit {
    /// The edit.
    pub edit: Edit,
    /// The number of groups of passages that it is learned on.
    pub learned_on: usize,
}

/// The key of the table with the initial weights.
const START: &str = "start";
const EDITS: [&str; 2] = ["flat", "flat+slope"];
/// The default number of groups of passages that an edit is learned on.
const LEARNED_ON: usize = 16;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Keys {
    /// The study.
    study: String,
    /// The run.
    run: String,
    /// Step whose weights are taken; default the last.
    step: Option<usize>,
    /// Edit of the weights: `flat` or `flat+slope`.
    edit: Option<String>,
    /// Highest power of the position that the edit removes.
    degrees: Option<usize>,
    /// Groups of passages that the edit is learned on; default 16.
    learned_on: Option<usize>,
}

/// Removes `start = { … }` from the keys of a run, and reads it.
pub(super) fn take(table: &mut Table, raw: &RawDefinition) -> Result<Option<StartsFrom>, String> {
    let keys: Keys = match table.remove(START) {
        None => return Ok(None),
        Some(Value::Table(start)) => read_table(&start, START)?,
        Some(other) => {
            return Err(format!("start is {other}; write {{ study = \"STUDY\", run = \"RUN\" }}"));
        }
    };
    let edit = match (&keys.edit, keys.degrees, keys.learned_on) {
        (Some(name), degrees, learned_on) => Some(edit(name, degrees, learned_on)?),
        (None, None, None) => None,
        _ => {
            return Err(
                "start.degrees and start.learned_on need start.edit; name one, or leave them out"
                    .to_owned(),
            );
        }
    };
    let Keys { study, run, step, .. } = keys;
    check_study_name("start.study", &study)?;
    check_run_name(&run).map_err(|why| format!("start: {why}"))?;
    Ok(Some(StartsFrom { study, run, step, edit, path: raw.path.clone(), preset: raw.preset }))
}

fn edit(
    name: &str,
    degrees: Option<usize>,
    learned_on: Option<usize>,
) -> Result<StartEdit, String> {
    let Some(degree) = degrees.filter(|&degree| degree > 0) else {
        return Err(
            "start.edit needs start.degrees (powers of the position to remove), at least 1"
                .to_owned(),
        );
    };
    let Some(edit) = Edit::from_parts(name, None, Some(degree), None) else {
        return Err(format!("start.edit is {name:?}; did you mean {:?}?", nearest(name, &EDITS)));
    };
    if !edit.is_of_weights() {
        return Err(format!("start.edit: {}", PredictError::NotOfWeights { edit: edit.name() }));
    }
    match learned_on.unwrap_or(LEARNED_ON) {
        0 => Err("start.learned_on must be at least 1".to_owned()),
        learned_on => Ok(StartEdit { edit, learned_on }),
    }
}
