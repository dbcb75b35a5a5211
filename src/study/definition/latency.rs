//! A study of inference: runs' models × cache lengths × rounds.

use super::Top;
use super::fit::{grid_lengths, grid_seeds};
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

pub(super) fn read(top: &Top) -> Result<LatencyStudy, String> {
    let grid = top.grid.as_ref().ok_or("a study of latency needs a [grid] with n")?;
    let models = runs(top)?.into_iter().map(|run| (run.name, run.definition)).collect();
    Ok(LatencyStudy { models, n: grid_lengths(grid)?, rounds: grid_seeds(grid)? })
}
