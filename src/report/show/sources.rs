//! Shows folders of fits, of training runs and of predictions.

use std::path::{Path, PathBuf};

use super::shown::{HeadGrid, Shown};
use crate::experiments::fits::figures::one_fit::{errors_by_row, frontier_of_fit};
use crate::experiments::fits::tables::one_fit::{OneFit, TARGET};
use crate::experiments::heads::figures::heads_of_model::parts;
use crate::experiments::heads::tables::heads::{HeadRow, TrainedHeads};
use crate::experiments::training::figures::courses::{course, courses};
use crate::experiments::training::tables::run_course::{RunCourse, runs_table};
use crate::figure::{Matrix, matrices};
use crate::report::conclusion::fit_conclusion;
use crate::report::diagnose::sentence;
use crate::report::error::ReportError;
use crate::table::groups::greatest_of_each;
use crate::table::{plural, significant};

/// Shows one or several runs.
///
/// # Errors
/// A file of a folder is missing or damaged.
pub(super) fn runs(folders: &[PathBuf]) -> Result<Shown, ReportError> {
    let all: Vec<RunCourse> =
        folders.iter().map(|folder| RunCourse::read(folder)).collect::<Result<_, _>>()?;
    let of_curves: Vec<&str> =
        all.iter().filter(|run| run.heads.is_empty()).map(|run| run.name.as_str()).collect();
    let notes = match of_curves[..] {
        [] => Vec::new(),
        _ => vec![format!("No values per head, only curves: {}.", of_curves.join(", "))],
    };
    let (title, figures) = match &all[..] {
        [run] => (format!("Training run: {}", run.name), course(run)),
        runs => {
            let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
            (format!("Training runs: {}", names.join(", ")), courses(&all))
        }
    };
    let conclusion = all.iter().map(of_run).collect();
    let tables = vec![runs_table(&all)];
    let grids = all.iter().filter_map(HeadGrid::of_run).collect();
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
    if let Some((_, last)) = run.log.max_logit.last().filter(|(last, _)| *last != step) {
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

/// Shows a fit: frontier, errors by row and attention.
///
/// # Errors
/// A file of the folder is damaged.
pub(super) fn fit(folder: &Path) -> Result<Shown, ReportError> {
    let fit = OneFit::read(folder)?;
    let mut figures = Vec::new();
    if let Some(target) = &fit.target {
        let mut maps = vec![Matrix { title: "target".to_owned(), values: target.view() }];
        maps.extend(
            fit.found
                .iter()
                .map(|found| Matrix { title: found.name.clone(), values: found.attention.view() }),
        );
        let what = "The target, and the attention of each fit.";
        figures.push(matrices("attention", what, &maps));
    }
    figures.extend(frontier_of_fit(&fit));
    figures.extend(errors_by_row(&fit));
    let notes = match fit.target {
        Some(_) if fit.lost > 0 => vec![format!(
            "The factors of {} are missing: their attention is not drawn.",
            plural(fit.lost, "row")
        )],
        Some(_) => Vec::new(),
        None => vec![format!(
            "{} has no {TARGET}: its attention is not drawn. Fit again into another folder to get it.",
            folder.display()
        )],
    };
    Ok(Shown {
        conclusion: fit_conclusion(&fit.rows),
        tables: vec![fit.table()],
        title: format!("Fit: {}", fit.label),
        figures,
        notes,
        ..Shown::default()
    })
}

/// Adds the figures, grids and sentences that predictions have beyond a study of trained heads.
pub(super) fn add_heads(shown: &mut Shown, study: &TrainedHeads) {
    let mut figures: Vec<_> = parts(study).into_iter().collect();
    if figures.is_empty() {
        shown.notes.push(format!(
            "No head has all of its parts at ε = {} nats, as where attention is uniform within it and needs no logits: \
             predict again with a smaller --tolerance.",
            study.epsilon_told()
        ));
    }
    figures.append(&mut shown.figures);
    shown.figures = figures;
    shown.grids = HeadGrid::of_predictions(study);
    let (epsilon, last) = (study.epsilon_told(), study.last_step());
    let largest = study.largest().into_iter();
    let told = largest.filter(|head| head.found.epsilon == epsilon && head.step() == last);
    // One sentence per model, at the heads' own rank; the figures show larger ranks.
    let models =
        greatest_of_each(told, |head| (head.run(), head.seed()), |head| -(head.found.rank as f64));
    shown.conclusion.extend(models.into_iter().map(of_head));
}

/// Compares the largest logit of a model with what that head's attention needs.
fn of_head(head: &HeadRow) -> String {
    // A published model has neither a seed nor a step.
    let model = match (head.seed(), head.step()) {
        (0, 0) => head.run().to_owned(),
        (seed, step) => format!("{}, seed {seed}, step {step}", head.run()),
    };
    let (layer, found) = (head.of.layer, &head.found);
    format!("{model}: layer {layer}, head {} ({}): {}", found.head, found.kind, sentence(found))
}
