//! Compares training runs: the settings in which they differ, and their results.

use crate::experiments::training::Settings;
use crate::experiments::training::tables::run_course::RunCourse;
use crate::table::Table;

/// The keys in which the runs differ, in order.
fn differing(runs: &[RunCourse]) -> Vec<&str> {
    Settings::differing(runs.iter().map(|run| &run.settings))
}

/// The values of a run for the keys in which `runs` differ, without the seed: `arm = ls, context = 512`.
pub fn label(runs: &[RunCourse], run: &RunCourse) -> String {
    let keys = differing(runs).into_iter().filter(|key| *key != "seed");
    let value = |key: &str| run.settings.get(key).unwrap_or("none");
    keys.map(|key| format!("{key} = {}", value(key))).collect::<Vec<_>>().join(", ")
}

/// The table of each run's results, with the settings that differ.
pub fn runs_table(runs: &[RunCourse]) -> Table {
    let last = |curve: &[(f64, f64)]| curve.last().map(|point| point.1);
    let mut table =
        Table::from_items("runs", "Training runs", runs).words("run", "run", |r| &r.name);
    for key in differing(runs) {
        table = table.words(key, key, |run| run.settings.get(key));
    }
    table
        .numbers("steps_taken", "steps taken", |run| run.steps)
        .numbers("train_loss_nats", "training loss, last 100 steps (nats)", |run| {
            run.train_loss_nats
        })
        .numbers("valid_loss_nats", "validation loss (nats)", RunCourse::valid_loss_nats)
        .numbers("perplexity", "perplexity", |run| run.valid_loss_nats().map(f64::exp))
        .numbers("peak_max_abs_logit", "peak max |logit|", |run| run.peak().map(|peak| peak.1))
        .numbers("max_abs_logit", "max |logit| at the end", |run| last(&run.max_logit))
        .numbers("loss_spikes", "loss spikes", |run| {
            // The curve alone does not have them.
            (!run.heads.is_empty()).then_some(run.spikes.len())
        })
        .words("outcome", "outcome", |run| &run.outcome)
        .note(
            "Max |logit| at the end is that of the last stretch of steps, 1/200 of the run. \
             Training losses exist for runs that ended or were stopped. A spike is a loss more \
             than 7 standard deviations above the median around it.",
        )
        .build()
}
