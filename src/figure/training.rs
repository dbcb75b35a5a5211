//! The figures of a study of trainings.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use crate::table::{TrainingRun, Trainings};

/// How many points of a curve are drawn at most: more would not show.
const DRAWN: usize = 500;
/// Into how many stretches a curve is smoothed.
const STRETCHES: usize = 60;

/// Loss and max |logit| against step, a line a training.
pub fn training(study: &Trainings) -> Figure {
    let window = window(study);
    let mut keys = vec![
        Key::new("every step", Ink::grey(Stroke::Solid), Shape::Faint),
        Key::grey(&format!("mean over {window} steps"), Stroke::Solid),
    ];
    if study.runs.iter().any(|run| !run.log.valid_loss.is_empty()) {
        keys.push(Key::new("validation", Ink::grey(Stroke::Solid), Shape::Points));
    }
    Figure {
        name: "training".to_owned(),
        caption:
            "Training of each arm. Left: loss; right: the greatest |logit| over all layers and \
                  heads, from zero."
                .to_owned(),
        alt: alt(study),
        keys,
        panels: vec![loss_panel(study, window), logit_panel(study, window)],
    }
}

fn loss_panel(study: &Trainings, window: usize) -> Panel {
    let mut series = Vec::new();
    for run in &study.runs {
        let raw = &run.log.train_loss;
        series.push(Series::new(&run.run, Ink::of_arm(&run.arm), Shape::Faint, thinned(raw)));
    }
    for run in &study.runs {
        let ink = Ink::of_arm(&run.arm);
        let smooth = thinned(&smoothed(&run.log.train_loss, window));
        series.push(label_first(Series::new(&run.run, ink, Shape::Line, smooth), study, run));
        series.push(Series::new(&run.run, ink, Shape::Points, run.log.valid_loss.clone()));
    }
    let losses = series.iter().flat_map(|series| &series.points).map(|&(_, loss)| loss);
    let y = Axis::linear("loss (nats a token)", losses, None);
    Panel { title: "Loss".to_owned(), x: steps(study), y, series, guide: None }
}

fn logit_panel(study: &Trainings, window: usize) -> Panel {
    let mut series = Vec::new();
    for run in &study.runs {
        let raw = &run.log.max_logit;
        series.push(Series::new(&run.run, Ink::of_arm(&run.arm), Shape::Faint, thinned(raw)));
    }
    for run in &study.runs {
        let smooth = thinned(&smoothed(&run.log.max_logit, window));
        let line = Series::new(&run.run, Ink::of_arm(&run.arm), Shape::Line, smooth);
        series.push(label_first(line, study, run));
    }
    let logits = series.iter().flat_map(|series| &series.points).map(|&(_, logit)| logit);
    let y = Axis::linear("max |logit| over heads (nats)", logits, Some(0.0));
    Panel { title: "Logits".to_owned(), x: steps(study), y, series, guide: None }
}

/// Loss and max |logit| against step in trainings at several lengths of context: a figure of each, a panel a
/// length.
pub fn by_context(study: &Trainings) -> Vec<Figure> {
    let rates: Vec<f64> = study.runs.iter().filter_map(|run| run.learning_rate).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let ink = |run: &TrainingRun| {
        let faster = run.learning_rate.is_some_and(|rate| rate > least);
        let stroke = if faster { Stroke::Dashed } else { Stroke::Solid };
        Ink { stroke, ..Ink::of_arm(&run.arm) }
    };
    let mut keys: Vec<Key> = Vec::new();
    for run in &study.runs {
        let several = rates.iter().any(|rate| *rate > least);
        let rate = run.learning_rate.filter(|_| several);
        let name = rate.map_or(run.arm.clone(), |rate| format!("{}, rate {rate}", run.arm));
        if keys.iter().all(|key| key.label != name) {
            keys.push(Key::new(&name, ink(run), Shape::Line));
        }
    }
    let window = window(study);
    let figure = |name: &str, label: &str, what: &str, from, curve: Curve| {
        let panel = |context: &usize| {
            let here = study.runs.iter().filter(|run| run.context == Some(*context));
            let line = |run: &TrainingRun| {
                let points = thinned(&smoothed(curve(run), window));
                Series::new(
                    &format!("{}, seed {}", run.run, run.seed),
                    ink(run),
                    Shape::Line,
                    points,
                )
            };
            (format!("n = {context}"), here.map(line).collect::<Vec<_>>())
        };
        let panels: Vec<_> = study.contexts().iter().map(panel).collect();
        let values = panels.iter().flat_map(|(_, series)| series).flat_map(|series| &series.points);
        let y = Axis::linear(label, values.map(|&(_, y)| y), from);
        Figure {
            name: name.to_owned(),
            caption: format!(
                "{what}, means over {window} steps: a panel a length of context, a line a seed."
            ),
            alt: alt(study),
            keys: keys.clone(),
            panels: panels
                .into_iter()
                .map(|(title, series)| Panel {
                    title,
                    x: steps(study),
                    y: y.clone(),
                    series,
                    guide: None,
                })
                .collect(),
        }
    };
    vec![
        figure(
            "logits-by-length",
            "max |logit| over heads (nats)",
            "The greatest |logit| over all layers and heads",
            Some(0.0),
            |run| &run.log.max_logit,
        ),
        figure("loss-by-length", "loss (nats a token)", "The training loss", None, |run| {
            &run.log.train_loss
        }),
    ]
}

/// What a run logged at each step.
type Curve = fn(&TrainingRun) -> &[(f64, f64)];

/// Max |logit| of the heads that see everything and of those with a window, apart; none where no
/// run has heads with a window.
pub fn head_kinds(study: &Trainings) -> Option<Figure> {
    let window = window(study);
    let mut series = Vec::new();
    for run in &study.runs {
        let kinds = [
            ("global", &run.log.max_logit_global, Stroke::Solid),
            ("local", &run.log.max_logit_local, Stroke::Dashed),
        ];
        for (kind, logits, stroke) in kinds.into_iter().filter(|kind| !kind.1.is_empty()) {
            let ink = Ink { stroke, ..Ink::of_arm(&run.arm) };
            let name = format!("{}, {kind} heads", run.run);
            let line = Series::new(&name, ink, Shape::Line, thinned(&smoothed(logits, window)));
            series.push(if is_first(study, run) { line.labelled(&name) } else { line });
        }
    }
    study.runs.iter().find(|run| !run.log.max_logit_local.is_empty())?;
    let logits = series.iter().flat_map(|series| &series.points).map(|&(_, logit)| logit);
    let y = Axis::linear("max |logit| over heads of a kind (nats)", logits, Some(0.0));
    let title = "Logits by kind of head".to_owned();
    Some(Figure {
        name: "head-kinds".to_owned(),
        caption: format!(
            "The greatest |logit| over the heads that see everything (solid) and over those with a \
             window (dashed), means over {window} steps."
        ),
        alt: ends(&series),
        keys: Vec::new(),
        panels: vec![Panel { title, x: steps(study), y, series, guide: None }],
    })
}

/// The last value of every series, in words.
fn ends(series: &[Series]) -> String {
    let lines = series.iter().filter_map(|series| {
        Some(format!("{}: max |logit| {:.2} at the end.", series.name, series.points.last()?.1))
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// Labels the line of a run's first seed; the others share its colour.
fn label_first(series: Series, study: &Trainings, run: &TrainingRun) -> Series {
    if is_first(study, run) { series.labelled(&run.run) } else { series }
}

/// Whether this is the first seed of its run.
fn is_first(study: &Trainings, run: &TrainingRun) -> bool {
    study.by_run().any(|seeds| std::ptr::eq(&seeds[0], run))
}

fn steps(study: &Trainings) -> Axis {
    let all = study.runs.iter().flat_map(|run| run.log.train_loss.iter().map(|&(step, _)| step));
    let last = all.fold(1.0, f64::max);
    let mut axis = Axis::linear("step", [0.0, last].into_iter(), Some(0.0));
    axis.range.1 = last;
    axis.ticks.retain(|tick| tick.value <= last);
    axis
}

/// How many points a mean is taken over.
fn window(study: &Trainings) -> usize {
    let longest = study.runs.iter().map(|run| run.log.train_loss.len()).max().unwrap_or(0);
    (longest / STRETCHES).max(1)
}

/// Centred means over `window` points, over fewer at the ends.
fn smoothed(points: &[(f64, f64)], window: usize) -> Vec<(f64, f64)> {
    let half = window / 2;
    (0..points.len())
        .map(|at| {
            let near = &points[at.saturating_sub(half)..(at + half + 1).min(points.len())];
            let mean = near.iter().map(|&(_, y)| y).sum::<f64>() / near.len() as f64;
            (points[at].0, mean)
        })
        .collect()
}

/// Every so-manieth point, and the last.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(DRAWN).max(1);
    let mut kept: Vec<(f64, f64)> = points.iter().step_by(every).copied().collect();
    if kept.last() != points.last() {
        kept.extend(points.last());
    }
    kept
}

fn alt(study: &Trainings) -> String {
    let lines = study.runs.iter().map(|run| {
        let shown =
            |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.2}"));
        format!(
            "{}, seed {}: last validation loss {} nats, max |logit| {} at the end and {} at its \
             greatest.",
            run.run,
            run.seed,
            shown(run.log.final_valid_loss()),
            shown(run.log.final_max_logit()),
            shown(run.log.peak_max_logit()),
        )
    });
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_keeps_a_straight_line_and_thinning_the_last_point() {
        let line: Vec<(f64, f64)> = (0..1001).map(|at| (at as f64, 2.0 * at as f64)).collect();
        assert_eq!(smoothed(&line, 20)[500], (500.0, 1000.0));
        let thin = thinned(&line);
        assert!(thin.len() <= DRAWN + 1);
        assert_eq!(thin.last(), line.last());
    }
}
