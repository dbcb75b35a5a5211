//! The figures of a study of training runs.

use crate::experiments::training::figures::variant::Looks;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::figure::model::heights;
use crate::figure::ticks::length;
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};

/// The share of a run's steps that is excluded from the range of the loss axis.
const START: f64 = 0.1;

/// The sentence of captions about a panel with a [`loss_axis`].
const START_LEFT_OUT: &str = "Losses above the axis in the first tenth of a run are cut off.";

/// Loss and max |logit| against step, one line per training run.
pub fn training(study: &Trainings) -> Figure {
    let looks = Looks::from_study(study);
    let points = |name: &str, shape| Key::new(name, Ink::grey(Stroke::Solid), shape);
    let mut keys = vec![Key::grey("training", Stroke::Solid), points("validation", Shape::Points)];
    if study.runs.iter().any(|run| !run.log.upstream_loss.is_empty()) {
        keys.push(points("validation, upstream text", Shape::OpenPoints));
    }
    Figure {
        name: "training".to_owned(),
        caption: format!(
            "Training loss (left, lines), validation loss (left, points) and the largest |logit| over all heads (right) at each \
             step, one line per seed. Lines show means of the loss and maxima of the logit over short stretches. {START_LEFT_OUT}{}",
            unfinished(study)
        ),
        keys,
        panels: vec![loss_panel(study, &looks), logit_panel(study, &looks)],
    }
}

/// A sentence for the caption if all runs were stopped.
fn unfinished(study: &Trainings) -> &'static str {
    match study.runs.iter().all(TrainingRun::is_so_far) {
        true => " The runs were stopped before their last step.",
        false => "",
    }
}

fn loss_panel(study: &Trainings, looks: &Looks) -> Panel {
    let mut series = Vec::new();
    for run in &study.runs {
        let (label, ink) = (looks.label(run), looks.ink(run));
        let line = Series::new(label, ink, Shape::Line, run.log.train_loss.clone());
        series.push(label_first(line, study, run));
        series.push(Series::new(label, ink, Shape::Points, run.log.valid_loss.clone()));
        series.push(Series::new(label, ink, Shape::OpenPoints, run.log.upstream_loss.clone()));
    }
    let y = loss_axis(&series);
    let series = series.into_iter().map(|series| entered(series, &y)).collect();
    Panel::new("Loss", steps(study), y, series)
}

/// Max |logit| against step, one line per training run.
fn logit_panel(study: &Trainings, looks: &Looks) -> Panel {
    let line = |run: &TrainingRun| {
        let points = run.log.max_logit.clone();
        let line = Series::new(looks.label(run), looks.ink(run), Shape::Line, points);
        label_first(line, study, run)
    };
    let series: Vec<Series> = study.runs.iter().map(line).collect();
    let y = logit_axis(&series);
    Panel::new("Largest logit", steps(study), y, series)
}

/// The label of axes of logits over all heads.
pub(crate) const LOGITS: &str = "max |logit| over all heads";

fn logit_axis(series: &[Series]) -> Axis {
    Axis::linear(LOGITS, heights(series), Some(0.0))
}

/// Loss and max |logit| against step at several context lengths: one figure for each, one panel per length.
pub fn by_context(study: &Trainings) -> Vec<Figure> {
    let looks = Looks::from_study(study);
    let keys = looks.keys(study);
    let figure = |name: &str, caption: String, axis: fn(&[Series]) -> Axis, curve: Curve| {
        let line = |run: &TrainingRun| {
            let name = format!("{}, seed {}", looks.label(run), run.of.seed);
            Series::new(&name, looks.ink(run), Shape::Line, curve(run).to_vec())
        };
        let lines: Vec<Series> = study.runs.iter().map(line).collect();
        let y = axis(&lines);
        let panel = |&context: &usize| {
            let here = study.runs.iter().zip(&lines).filter(|(run, _)| run.of.context == context);
            let series = here.map(|(_, line)| entered(line.clone(), &y)).collect();
            Panel::new(&length(context), steps(study), y.clone(), series)
        };
        Figure {
            name: name.to_owned(),
            caption,
            keys: keys.clone(),
            panels: study.contexts().iter().map(panel).collect(),
        }
    };
    let which = "at each step, over short stretches of steps. Each line is one seed; each panel is one context length n.";
    vec![
        figure(
            "logits-by-length",
            format!("The largest |logit| of QKᵀ over all layers and heads {which}"),
            logit_axis,
            |run| &run.log.max_logit,
        ),
        figure(
            "loss-by-length",
            format!("The mean training loss {which} {START_LEFT_OUT}"),
            loss_axis,
            |run| &run.log.train_loss,
        ),
    ]
}

/// Selects the logged values of a run, by step.
type Curve = fn(&TrainingRun) -> &[(f64, f64)];

/// Max |logit| of global and of local heads separately; `None` if no run has local heads.
pub fn head_kinds(study: &Trainings) -> Option<Figure> {
    study.runs.iter().find(|run| !run.log.max_logit_local.is_empty())?;
    let looks = Looks::from_study(study);
    let mut series = Vec::new();
    for run in &study.runs {
        let kinds = [
            ("global", &run.log.max_logit_global, Stroke::Solid),
            ("local", &run.log.max_logit_local, Stroke::Dashed),
        ];
        for (kind, logits, stroke) in kinds.into_iter().filter(|kind| !kind.1.is_empty()) {
            let ink = Ink { stroke, ..looks.ink(run) };
            let name = format!("{}, {kind} heads", looks.label(run));
            let line = Series::new(&name, ink, Shape::Line, logits.clone());
            series.push(label_first(line, study, run));
        }
    }
    let y = Axis::linear("max |logit| over heads of a kind", heights(&series), Some(0.0));
    Some(Figure {
        name: "head-kinds".to_owned(),
        caption: format!(
            "The largest |logit| over the global heads (solid lines) and over the local heads (dashed lines) at each step, over \
             short stretches of steps. Each line is one seed.{}",
            unfinished(study)
        ),
        keys: Vec::new(),
        panels: vec![Panel::new("Largest logit by kind of head", steps(study), y, series)],
    })
}

/// Labels the line of a run's first seed; the others share its colour.
fn label_first(series: Series, study: &Trainings, run: &TrainingRun) -> Series {
    let name = series.name.clone();
    let is_first = study.by_run().any(|seeds| std::ptr::eq(&seeds[0], run));
    if is_first { series.labelled(&name) } else { series }
}

pub(crate) fn steps(study: &Trainings) -> Axis {
    let all = study.runs.iter().flat_map(|run| run.log.train_loss.iter().map(|&(step, _)| step));
    Axis::from_zero("step", all)
}

/// Validation loss against the peak max |logit| of QKᵀ: one point per seed, one panel per context length.
pub fn variants(study: &Trainings) -> Figure {
    let points = |runs: &[TrainingRun]| -> Vec<(f64, f64)> {
        runs.iter().filter_map(|run| Some((run.peak()?, run.loss()?))).collect()
    };
    let all = points(&study.runs);
    let x = Axis::log("peak max |logit|, QKᵀ/√d", all.iter().map(|point| point.0));
    let looks = Looks::from_study(study);
    let y = all.iter().map(|point| point.1);
    let y = Axis::linear("validation loss (nats per token)", y, None);
    let panel = |&context: &usize| {
        let runs = study.by_run().filter(|seeds| seeds[0].of.context == context);
        let one = |seeds: &[TrainingRun]| {
            let name = looks.label(&seeds[0]);
            Series::new(name, looks.ink(&seeds[0]), Shape::Points, points(seeds)).labelled(name)
        };
        let series: Vec<Series> = runs.map(one).collect();
        Panel::new(&length(context), x.clone(), y.clone(), series)
    };
    Figure {
        name: "loss-and-logits".to_owned(),
        caption: "Final validation loss against the largest |logit| of QKᵀ over all layers, heads and steps. Each point is one \
                  seed. Points further left have smaller logits, lower points a lower loss. A position bias beside QKᵀ is not \
                  counted."
            .to_owned(),
        keys: Vec::new(),
        panels: study.contexts().iter().map(panel).collect(),
    }
}

/// A linear axis over the losses after the start of each run. Untrained weights have a much larger loss, which would
/// compress the rest.
fn loss_axis(series: &[Series]) -> Axis {
    let later = |line: &Series| {
        let last = line.points.last().map_or(0.0, |point| point.0);
        let after = move |point: &&(f64, f64)| point.0 >= START * last;
        line.points.iter().filter(after).map(|point| point.1).collect::<Vec<_>>()
    };
    Axis::linear("loss (nats per token)", series.iter().flat_map(later), None)
}

/// Removes the start of `series` up to its last point above `axis`; a line begins where it crosses the upper end.
fn entered(mut series: Series, axis: &Axis) -> Series {
    let most = axis.range.1;
    if let Some(over) = series.points.iter().rposition(|point| point.1 > most) {
        let (x, y) = series.points[over];
        let mut inside = series.points.split_off(over + 1);
        if let (Some(&(next_x, next_y)), Shape::Line) = (inside.first(), series.shape) {
            inside.insert(0, (x + (next_x - x) * (y - most) / (y - next_y), most));
        }
        series.points = inside;
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_does_not_spread_the_axis_and_lines_come_in_at_its_top() {
        let falling = vec![(1.0, 9.0), (5.0, 5.0), (10.0, 3.0), (50.0, 2.5), (100.0, 2.0)];
        let of = |shape| Series::new("run", Ink::grey(Stroke::Solid), shape, falling.clone());
        let axis = loss_axis(&[of(Shape::Line)]);
        assert!((axis.range.0 - 1.95).abs() < 1e-12 && (axis.range.1 - 3.05).abs() < 1e-12);
        let line = entered(of(Shape::Line), &axis).points;
        assert_eq!((line.len(), line[0].1, line[1]), (4, axis.range.1, (10.0, 3.0)));
        assert!((line[0].0 - 9.875).abs() < 1e-9, "{line:?}");
        assert_eq!(entered(of(Shape::Points), &axis).points, falling[2..], "no point is made up");
        let all = Axis { range: (0.0, 10.0), ..axis };
        assert_eq!(entered(of(Shape::Line), &all).points, falling);
    }
}
