//! Initial weights of a training run that come from another run.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use crate::experiment::{Preset, RawDefinition, check_run_name, check_study_name, read_table};

/// The weights of a run of another study with the same seed and text.
#[derive(Clone, Debug)]
pub(crate) struct StartsFrom {
    /// The study.
    pub study: String,
    /// The run.
    pub run: String,
    /// The step of the weights; by default the run's last.
    pub(super) step: Option<usize>,
    /// The definition's file; the definition of the other study is in the same folder.
    pub(super) path: PathBuf,
    /// The size of the other study.
    pub(super) preset: Preset,
}

/// The key of the table with the initial weights.
const START: &str = "start";
#[derive(Deserialize, JsonSchema)]
pub(super) struct Keys {
    /// The study.
    study: String,
    /// The run.
    run: String,
    /// Step whose weights are taken; default the last.
    step: Option<usize>,
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
    let Keys { study, run, step } = keys;
    check_study_name("start.study", &study)?;
    check_run_name(&run).map_err(|why| format!("start: {why}"))?;
    Ok(Some(StartsFrom { study, run, step, path: raw.path.clone(), preset: raw.preset }))
}
