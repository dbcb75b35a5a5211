//! A study of inference: runs' models × cache lengths × rounds.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::keys;
use super::preset::Preset;
use super::targets::{lengths, seeds};
use super::train::runs;
use crate::lm::TrainDefinition;

/// Models whose inference is timed, at their start: times do not depend on weights.
#[derive(Clone, Debug)]
pub struct LatencyStudy {
    /// Each model's name and definition.
    pub models: Vec<(String, TrainDefinition)>,
    /// How many tokens are read before one is timed.
    pub n: Vec<usize>,
    /// Rounds: each times every model once more.
    pub rounds: Vec<u64>,
}

#[derive(Deserialize)]
struct Grid {
    n: Vec<usize>,
    seed: Option<Vec<u64>>,
}

pub(super) fn read(
    grid: Option<&Table>,
    train: &Table,
    run: &[Table],
    path: &Path,
    preset: Preset,
) -> Result<LatencyStudy, String> {
    let grid: Grid = keys::read(grid.ok_or("a study of latency needs a [grid] with n")?, "grid")?;
    let runs = runs(train, run, path, preset)?;
    if let Some(run) = runs.iter().find(|run| run.starts_from_another()) {
        let why = "start: times do not depend on weights; leave it out";
        return Err(format!("run {}: {why}", run.name));
    }
    for run in &runs {
        let kinds = run.definition.layers_by_kinds();
        if !kinds.iter().flat_map(|(_, kinds)| kinds).all(|kind| kind.is_contiguous()) {
            let why = "patch: latency is measured for one-dimensional windows only; leave it out";
            return Err(format!("run {}: {why}", run.name));
        }
    }
    let models = runs.into_iter().map(|run| (run.name, run.definition)).collect();
    Ok(LatencyStudy { models, n: lengths(grid.n)?, rounds: seeds(grid.seed)? })
}
