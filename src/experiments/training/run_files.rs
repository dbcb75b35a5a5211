//! Checks a training run's row against the files of the run.

use std::path::Path;

use super::row::TrainingMeasurement;
use crate::lm::Split;
use crate::record::{InvariantChecker, Row, read_records, to_microseconds};
use crate::run::files::EVALUATIONS;
use crate::run::kept_files::{KEPT, is_as_told, told};
use crate::run::manifest::{MANIFEST, Manifest};
use crate::run::series::CURVE;
use crate::run::{CurveRow, EvaluationRow, run_manifest};
use crate::system::below;

/// The relative tolerance of values from the curve, which has seven digits.
const OF_CURVE: f64 = 1e-5;
/// The advice in errors about an unreadable file.
const ADVICE: &str = "sweep the run's study again, or restore the file";

/// Checks a row against its run's curve, evaluations and manifest in the folder of `study`. Returns whether the
/// manifest has hashes of the other files.
pub(super) fn check_run(
    row: &Row<TrainingMeasurement>,
    study: &Path,
    check: &mut InvariantChecker,
) -> bool {
    check.at(&*row.cell);
    let run = match below(study, Path::new(&row.cell)) {
        Ok(run) => run,
        Err(why) => {
            check.holds(false, || format!("{why}, and is not a run"));
            return true;
        }
    };
    match read_records::<CurveRow>(&run.join(CURVE), ADVICE) {
        Ok(curve) => of_curve(row, &curve, check),
        Err(error) => check.holds(false, || error.to_string()),
    }
    match read_records::<EvaluationRow>(&run.join(EVALUATIONS), ADVICE) {
        Ok(evaluations) => of_evaluations(row, &evaluations, check),
        Err(error) => check.holds(false, || error.to_string()),
    }
    match Manifest::read(&run.join(MANIFEST)) {
        Ok(manifest) => {
            of_manifest(row, &manifest, check);
            return of_files(&run, &manifest, check);
        }
        Err(error) => check.holds(false, || error.to_string()),
    }
    true
}

/// Checks the run's files against the hashes in its manifest. Returns whether the manifest has a hash of each.
fn of_files(run: &Path, manifest: &Manifest, check: &mut InvariantChecker) -> bool {
    for file in KEPT {
        // An unreadable file has already failed a check.
        let as_told = is_as_told(manifest, run, file).unwrap_or(true);
        check.holds(as_told, || {
            format!(
                "{file} has changed since the run wrote it (its SHA-256 differs from the run's \
                     manifest); restore it"
            )
        });
    }
    KEPT.into_iter().all(|file| told(manifest, file).is_some())
}

fn of_curve(row: &Row<TrainingMeasurement>, curve: &[CurveRow], check: &mut InvariantChecker) {
    let course = &row.found.course;
    let highest = |of: fn(&CurveRow) -> Option<f64>| curve.iter().filter_map(of).reduce(f64::max);
    let all = highest(|point| point.max_abs_logit);
    check.equal(
        "the curve's max |logit| differs from the row's",
        all,
        course.peak_max_abs_logit,
        OF_CURVE,
    );
    for point in curve {
        let kinds = [point.max_abs_logit_global, point.max_abs_logit_local];
        let larger = kinds.into_iter().flatten().reduce(f64::max);
        let all = point.max_abs_logit;
        check.holds(larger == all, || {
            format!("at step {} no kind of head has the curve's max |logit|", point.step)
        });
    }
    let rising = curve.windows(2).all(|pair| {
        let [one, next] = [&pair[0], &pair[1]];
        one.step < next.step && one.tokens < next.tokens && one.wall_time_s <= next.wall_time_s
    });
    check.holds(rising, || "steps, tokens or time of the curve decrease".to_owned());
    let last = curve.last();
    check.holds(last.map(|point| point.tokens) == course.tokens, || {
        "the curve ends at other tokens than the row".to_owned()
    });
    let ended_s = last.map(|point| point.wall_time_s);
    check.at_most("the curve ends after the run", ended_s, row.found.wall_time_s, OF_CURVE);
}

fn of_evaluations(
    row: &Row<TrainingMeasurement>,
    evaluations: &[EvaluationRow],
    check: &mut InvariantChecker,
) {
    for (split, column, told) in [
        (Split::Valid, "valid_loss_nats", row.found.valid_loss_nats),
        (Split::UpstreamValid, "upstream_loss_nats", row.found.upstream_loss_nats),
    ] {
        let last = evaluations.iter().rfind(|evaluation| evaluation.split == split);
        let last = last.map(|evaluation| evaluation.loss_nats);
        check.holds(last == told, || {
            format!("the last evaluation is {last:?}, but the row's {column} is {told:?}")
        });
    }
    for evaluation in evaluations {
        let perplexity = evaluation.loss_nats.exp();
        check.equal("perplexity is not exp(loss)", evaluation.perplexity, perplexity, 1e-9);
    }
}

fn of_manifest(row: &Row<TrainingMeasurement>, manifest: &Manifest, check: &mut InvariantChecker) {
    let Some(summary) = run_manifest::so_far(manifest) else {
        return check.holds(false, || "its manifest says nothing of an end".to_owned());
    };
    let found = &row.found;
    let entropy = run_manifest::corpus_entropy_nats(manifest);
    for (column, there, told) in [
        ("train_loss_nats", found.train_loss_nats, summary.train_loss_nats),
        ("valid_loss_nats", found.valid_loss_nats, summary.valid_loss_nats),
        ("upstream_loss_nats", found.upstream_loss_nats, summary.upstream_loss_nats),
        ("max_abs_logit", found.max_abs_logit, summary.max_abs_logit),
        ("corpus_entropy_nats", found.corpus_entropy_nats, entropy),
    ] {
        check.holds(there == told, || {
            format!("{column} is {there:?}, but {told:?} in the run's manifest")
        });
    }
    check.holds(found.parameters == summary.parameters, || {
        format!(
            "parameters are {}, but {} in the run's manifest",
            found.parameters, summary.parameters
        )
    });
    let told = to_microseconds(summary.wall_time_s);
    check.equal("wall_time_s differs from the run's manifest", found.wall_time_s, told, 0.0);
    check.holds(found.outcome == summary.outcome.name(), || {
        format!(
            "outcome is {}, but {} in the run's manifest",
            found.outcome,
            summary.outcome.name()
        )
    });
}
