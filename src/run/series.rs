//! Summary of a finished training run's logs: a curve of about two hundred points, and measures of its stability.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::RunError;
use super::files::STEPS;
use super::heads_log::{HEADS, each_head};
use super::log_rows::{Course, CurveRow};
use super::spikes::{share_far_above_mean, spikes_above_median};
use crate::lm::StepRow;
use crate::record::{read_records, write_records};
use crate::system::FileError;

/// Name of the curve in a run's folder.
pub(crate) const CURVE: &str = "curve.csv";
/// Maximum number of points of the curve.
const POINTS: usize = 200;
/// Advice for a log that cannot be read.
const OF_LOGS: &str = "move the run's folder away and train it again";

/// Logged values of a run at each step; logits are the largest over the heads of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunSeries {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Step {
    row: StepRow,
    global: Option<f64>,
    local: Option<f64>,
}

impl Step {
    fn max_abs_logit(&self) -> Option<f64> {
        larger(self.global, self.local)
    }
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (one, other) => one.or(other),
    }
}

impl RunSeries {
    /// Reads `steps.csv` and `heads.parquet` of the run in `folder`.
    ///
    /// # Errors
    /// A file is missing or damaged.
    pub fn read(folder: &Path) -> Result<Self, RunError> {
        let heads = folder.join(HEADS);
        std::fs::metadata(&heads).map_err(|e| FileError::read(&heads, e))?;
        Self::so_far(folder, OF_LOGS)
    }

    /// Reads the logs of a run that may not have ended. Errors about an unreadable log end in `advice`.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn so_far(folder: &Path, advice: &str) -> Result<Self, RunError> {
        let rows: Vec<StepRow> = read_records(&folder.join(STEPS), advice)?;
        let logits = logits(folder)?;
        let of_row = |row: StepRow| {
            let (global, local) = logits.get(&row.step).copied().unwrap_or_default();
            Step { row, global, local }
        };
        Ok(Self { steps: rows.into_iter().map(of_row).collect() })
    }

    /// Writes the curve into `folder`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_curve(&self, folder: &Path) -> Result<(), FileError> {
        write_records(&folder.join(CURVE), &self.curve())
    }

    /// Divides the run into intervals of equal numbers of steps, one row each: last step, mean loss and gradient norm,
    /// largest logits.
    pub fn curve(&self) -> Vec<CurveRow> {
        let each = self.steps.len().div_ceil(POINTS).max(1);
        let stretch = |steps: &[Step]| {
            let last = &steps[steps.len() - 1].row;
            let mean =
                |of: fn(&Step) -> f64| steps.iter().map(of).sum::<f64>() / steps.len() as f64;
            let most = |of: fn(&Step) -> Option<f64>| steps.iter().map(of).fold(None, larger);
            CurveRow {
                step: last.step,
                tokens: last.tokens,
                wall_time_s: last.wall_time_s,
                loss_nats: short(mean(|s| s.row.loss_nats)),
                grad_norm: short(mean(|s| s.row.grad_norm)),
                max_abs_logit: most(Step::max_abs_logit).map(short),
                max_abs_logit_global: most(|s| s.global).map(short),
                max_abs_logit_local: most(|s| s.local).map(short),
            }
        };
        self.steps.chunks(each).map(stretch).collect()
    }

    /// The step and the loss of each loss spike.
    pub fn spikes(&self) -> Vec<(usize, f64)> {
        let losses: Vec<f64> = self.steps.iter().map(|s| s.row.loss_nats).collect();
        let spikes = spikes_above_median(&losses).into_iter();
        spikes.map(|at| (self.steps[at].row.step, losses[at])).collect()
    }

    /// Summarises the whole run.
    pub fn course(&self) -> Course {
        let losses: Vec<f64> = self.steps.iter().map(|s| s.row.loss_nats).collect();
        let norms: Vec<f64> = self.steps.iter().map(|s| s.row.grad_norm).collect();
        let logits: Vec<f64> = self.steps.iter().filter_map(Step::max_abs_logit).collect();
        let changes = logits.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let mean = (logits.len() > 1).then(|| changes.sum::<f64>() / (logits.len() - 1) as f64);
        Course {
            tokens: self.steps.last().map(|s| s.row.tokens),
            peak_max_abs_logit: logits.iter().copied().reduce(f64::max),
            loss_spike_score: share_far_above_mean(&losses),
            grad_spike_score: share_far_above_mean(&norms),
            loss_spikes: self.spikes().len(),
            logit_change_per_step: mean,
        }
    }
}

/// Rounds to seven digits, because the curve is only for figures.
fn short(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// Largest |logit| over the global heads and over the local heads.
type ByKind = (Option<f64>, Option<f64>);

/// Returns the [`ByKind`] of each step.
fn logits(folder: &Path) -> Result<BTreeMap<usize, ByKind>, RunError> {
    let mut by_step: BTreeMap<usize, ByKind> = BTreeMap::new();
    each_head(folder, |head| {
        let (global, local) = by_step.entry(head.step).or_default();
        let largest = if head.window.is_none() { global } else { local };
        // NaN is ignored, so that the largest of the other heads remains.
        *largest = larger(*largest, Some(head.max_abs_logit).filter(|logit| !logit.is_nan()));
    })?;
    Ok(by_step)
}
