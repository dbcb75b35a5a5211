//! Shows folders of training runs: one, or several side by side.

use std::path::PathBuf;

use super::head_grid::HeadGrid;
use super::shown::Shown;
use crate::experiments::training::figures::courses::{course, courses};
use crate::experiments::training::tables::run_course::RunCourse;
use crate::experiments::training::tables::run_courses::{PairedRuns, RunCourses};
use crate::report::error::ReportError;
use crate::table::{Spread, plural, significant};

/// Shows one or several runs.
///
/// # Errors
/// A file of a folder is missing or damaged.
pub(super) fn show(folders: &[PathBuf]) -> Result<Shown, ReportError> {
    let runs = folders.iter().map(|folder| RunCourse::read(folder));
    let all = RunCourses { runs: runs.collect::<Result<_, _>>()? };
    let of_curves: Vec<&str> =
        all.runs.iter().filter(|run| run.heads.is_empty()).map(|run| run.name.as_str()).collect();
    let notes = match of_curves[..] {
        [] => Vec::new(),
        _ => vec![format!("No values per head, only curves: {}.", of_curves.join(", "))],
    };
    let (title, figures) = match &all.runs[..] {
        [run] => (format!("Training run: {}", run.name), course(run)),
        runs => {
            let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
            (format!("Training runs: {}", names.join(", ")), courses(&all))
        }
    };
    let mut conclusion: Vec<String> = all.pairs().iter().map(of_pair).collect();
    conclusion.extend(all.runs.iter().map(of_run));
    let mut tables = vec![all.table()];
    tables.extend(all.pairs_table());
    let grids = all.runs.iter().filter_map(HeadGrid::of_run).collect();
    Ok(Shown { title, conclusion, notes, figures, grids, tables })
}

/// The result of a run.
fn of_run(run: &RunCourse) -> String {
    let shown = |value: f64| significant(value, 3);
    let asked = run.steps_asked().filter(|asked| *asked != run.steps);
    let of = asked.map_or_else(String::new, |asked| format!(" of {asked}"));
    let mut text = format!("{}: {}{of} steps, {}", run.name, run.steps, how(run));
    if let Some(loss) = run.valid_loss_nats() {
        text.push_str(&format!(
            "; validation loss {} nats per token (perplexity {})",
            shown(loss),
            shown(loss.exp())
        ));
    }
    text.push('.');
    let Some((step, peak)) = run.peak() else { return text };
    let place = run.largest_head().map_or_else(String::new, |head| {
        format!(" in layer {}, head {} ({}),", head.layer, head.head, head.kind)
    });
    text.push_str(&format!(" Peak max |logit| {}{place} at step {step}", shown(peak)));
    if let Some((_, last)) = run.max_logit.last().filter(|(last, _)| *last != step) {
        text.push_str(&format!("; {} at the end", shown(*last)));
    }
    text.push('.');
    if !run.spikes.is_empty() {
        text.push_str(&format!(" {}.", plural(run.spikes.len(), "loss spike")));
    }
    text
}

fn how(run: &RunCourse) -> &str {
    match run.outcome.as_str() {
        "" | "running" => "unfinished",
        outcome => outcome,
    }
}

/// The differences between runs of two settings.
fn of_pair(pair: &PairedRuns) -> String {
    let range = |spread: &Spread| match pair.seeds {
        1 => significant(spread.median, 3),
        _ => spread.shown(3),
    };
    let mut text = format!("{} against {} ({})", pair.one, pair.other, plural(pair.seeds, "seed"));
    if let Some(loss) = &pair.loss_nats {
        text.push_str(&format!(": validation loss difference {} nats", range(loss)));
    }
    if let Some(logits) = &pair.logits {
        text.push_str(&format!("; peak max |logit| ratio {}", range(logits)));
    }
    text + "."
}
