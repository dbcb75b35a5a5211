//! A study of inference: runs' models × cache lengths × rounds.

use serde::Deserialize;
use toml::Table;

use super::keys;
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
) -> Result<LatencyStudy, String> {
    let grid: Grid = keys::read(grid.ok_or("a study of latency needs a [grid] with n")?, "grid")?;
    let models = runs(train, run)?.into_iter().map(|run| (run.name, run.definition)).collect();
    Ok(LatencyStudy { models, n: lengths(grid.n)?, rounds: seeds(grid.seed)? })
}
