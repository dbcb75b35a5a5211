//! Summary of one training log: losses, evaluations, logits of heads.

use std::path::Path;

use crate::lm::Split;
use crate::record::{RowsError, read_records};
use crate::run::files::EVALUATIONS;
use crate::run::manifest::MANIFEST;
use crate::run::series::CURVE;
use crate::run::{CurveRow, EvaluationRow, Manifest, kept_files};
use crate::table::TableError;

/// (x, value), in the order of the steps.
pub type Curve = Vec<(f64, f64)>;

/// The logs of one training run as series over its steps, of about two hundred points each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLog {
    /// (step, mean training loss in nats over the interval that ends there).
    pub train_loss: Curve,
    /// (step, loss in nats) on the validation split.
    pub valid_loss: Curve,
    /// The same on the upstream text; empty if there is none.
    pub upstream_loss: Curve,
    /// (step, max |logit| over all layers and heads and over the interval).
    pub max_logit: Curve,
    /// The same over global heads.
    pub max_logit_global: Curve,
    /// The same over local heads.
    pub max_logit_local: Curve,
}

impl RunLog {
    /// Reads `curve.csv` and `eval.csv` in the folder `run`.
    ///
    /// # Errors
    /// A missing, damaged or cut-off file or a missing column, with file and line. A file that does not match the hash
    /// in the run's manifest.
    pub fn read(run: &Path) -> Result<Self, TableError> {
        let manifest = run.join(MANIFEST);
        if manifest.is_file() {
            kept_files::check(&Manifest::read(&manifest)?, run)?;
        }
        let curve: Vec<CurveRow> = read_records(&run.join(CURVE), ADVICE)?;
        Ok(curves(&without_partial_stretch(&curve)).with_evaluations(run, ADVICE)?)
    }

    /// Adds the evaluations in the run's folder. Errors about an unreadable file end in `advice`.
    pub(super) fn with_evaluations(self, run: &Path, advice: &str) -> Result<Self, RowsError> {
        let evaluations: Vec<EvaluationRow> = read_records(&run.join(EVALUATIONS), advice)?;
        let of = |split: Split| {
            let of_split = evaluations.iter().filter(|evaluation| evaluation.split == split);
            of_split.map(|found| (found.step as f64, found.loss_nats)).collect()
        };
        let (valid_loss, upstream_loss) = (of(Split::Valid), of(Split::UpstreamValid));
        Ok(Self { valid_loss, upstream_loss, ..self })
    }
}

/// The advice in errors about an unreadable log of a training run.
const ADVICE: &str = "remove the run's rows and run its study again, which writes it again";

/// The log of a curve without its evaluations.
pub(super) fn curves(rows: &[CurveRow]) -> RunLog {
    RunLog {
        train_loss: series(rows, |row| Some(row.loss_nats)),
        max_logit: series(rows, |row| row.max_abs_logit),
        max_logit_global: series(rows, |row| row.max_abs_logit_global),
        max_logit_local: series(rows, |row| row.max_abs_logit_local),
        ..RunLog::default()
    }
}

/// Joins the last row to the one before it if its interval is shorter. The mean or the maximum of a few steps would
/// look like a spike.
pub(super) fn without_partial_stretch(rows: &[CurveRow]) -> Vec<CurveRow> {
    let mut rows = rows.to_vec();
    let [.., first, before, last] = &rows[..] else { return rows };
    let (whole, part) = (before.step - first.step, last.step - before.step);
    if part >= whole {
        return rows;
    }
    let steps = (whole + part) as f64;
    let mean = |a: f64, b: f64| (a * whole as f64 + b * part as f64) / steps;
    let most = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
    let joined = CurveRow {
        loss_nats: mean(before.loss_nats, last.loss_nats),
        grad_norm: mean(before.grad_norm, last.grad_norm),
        max_abs_logit: most(before.max_abs_logit, last.max_abs_logit),
        max_abs_logit_global: most(before.max_abs_logit_global, last.max_abs_logit_global),
        max_abs_logit_local: most(before.max_abs_logit_local, last.max_abs_logit_local),
        ..last.clone()
    };
    rows.truncate(rows.len() - 2);
    rows.push(joined);
    rows
}

/// (step, value) for all finite values, in the order of the file.
fn series(rows: &[CurveRow], of: fn(&CurveRow) -> Option<f64>) -> Curve {
    let points = rows.iter().filter_map(|row| Some((row.step as f64, of(row)?)));
    points.filter(|(_, value)| value.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_last_stretch_joins_the_one_before_it() {
        let rows =
            [(6, 4.0, 2.0), (12, 3.0, 5.0), (14, 7.0, 3.0)].map(|(step, loss, logit)| CurveRow {
                step,
                tokens: step as u64,
                wall_time_s: step as f64,
                loss_nats: loss,
                grad_norm: 1.0,
                max_abs_logit: Some(logit),
                max_abs_logit_global: None,
                max_abs_logit_local: None,
            });
        let log = curves(&without_partial_stretch(&rows));
        assert_eq!(log.train_loss, [(6.0, 4.0), (14.0, 4.0)], "(6 · 3 + 2 · 7) / 8");
        assert_eq!(log.max_logit, [(6.0, 2.0), (14.0, 5.0)]);
        let whole = curves(&without_partial_stretch(&rows[..2]));
        assert_eq!(whole.train_loss, [(6.0, 4.0), (12.0, 3.0)], "no stretch is partial");
    }
}
