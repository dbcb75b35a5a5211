//! What one training logged, in short: its losses, its evaluations, its heads' logits.

use std::path::Path;

use polars::prelude::{DataFrame, PolarsResult};

use super::TableError;
use super::columns::{numbers, words};
use super::rows::Rows;

/// (x, value), in the order of the steps.
pub type Curve = Vec<(f64, f64)>;

/// The logs of one training as series over its steps, some two hundred points each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLog {
    /// (step, mean training loss in nats over the stretch that ends there).
    pub train_loss: Curve,
    /// (step, loss in nats) on the validation split.
    pub valid_loss: Curve,
    /// (step, max |logit| over all layers and heads and over the stretch).
    pub max_logit: Curve,
    /// The same over the heads that see everything.
    pub max_logit_global: Curve,
    /// The same over the heads with a window.
    pub max_logit_local: Curve,
    /// Tokens that a step reads.
    pub tokens_per_step: f64,
    /// The median over stretches of the seconds that a step took: what else the machine did meanwhile
    /// counts for little.
    pub seconds_per_step: f64,
}

impl RunLog {
    /// Reads `curve.csv` and `eval.csv` in the folder `run`.
    ///
    /// # Errors
    /// A missing or torn file, or a missing column, with file and line.
    pub fn of(run: &Path) -> Result<Self, TableError> {
        let curve = Rows::of_curve(run)?;
        let mut log = curves(curve.frame()).map_err(TableError::frame(curve.path()))?;
        let evaluations = Rows::of_evaluations(run)?;
        log.valid_loss =
            validation(evaluations.frame()).map_err(TableError::frame(evaluations.path()))?;
        Ok(log)
    }
}

fn curves(frame: &DataFrame) -> PolarsResult<RunLog> {
    let steps = numbers(frame, "step")?;
    let times = numbers(frame, "wall_time_s")?;
    let tokens = numbers(frame, "tokens")?;
    let ends: Vec<(f64, f64)> =
        steps.iter().zip(&times).filter_map(|(step, time)| Some(((*step)?, (*time)?))).collect();
    let mut paces: Vec<f64> =
        ends.windows(2).map(|pair| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0)).collect();
    paces.sort_by(f64::total_cmp);
    let last = |values: &[Option<f64>]| values.last().copied().flatten();
    Ok(RunLog {
        train_loss: series(frame, "loss_nats")?,
        valid_loss: Curve::new(),
        max_logit: series(frame, "max_abs_logit")?,
        max_logit_global: series(frame, "max_abs_logit_global")?,
        max_logit_local: series(frame, "max_abs_logit_local")?,
        tokens_per_step: last(&tokens).zip(last(&steps)).map_or(0.0, |(all, step)| all / step),
        seconds_per_step: paces.get(paces.len() / 2).copied().unwrap_or(0.0),
    })
}

/// (step, value) wherever both are there and finite, in the order of the file.
fn series(frame: &DataFrame, column: &str) -> PolarsResult<Curve> {
    let points = numbers(frame, "step")?.into_iter().zip(numbers(frame, column)?);
    Ok(points
        .filter_map(|(step, value)| Some((step?, value?)))
        .filter(|(_, value)| value.is_finite())
        .collect())
}

/// The losses of the validation split.
fn validation(frame: &DataFrame) -> PolarsResult<Curve> {
    let splits = words(frame, "split")?;
    let points = numbers(frame, "step")?.into_iter().zip(numbers(frame, "loss_nats")?);
    let valid = splits.iter().map(|split| split.as_deref() == Some("valid"));
    Ok(points
        .zip(valid)
        .filter_map(|((step, loss), valid)| Some((step?, loss.filter(|_| valid)?)))
        .collect())
}
