//! The figures of a study of trainings.

use super::losses::{START_LEFT_OUT, entered, loss_axis};
use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use super::ticks::length;
use crate::table::{TrainingRun, Trainings};

/// Loss and max |logit| against step, a line a training.
pub fn training(study: &Trainings) -> Figure {
    Figure {
        name: "training".to_owned(),
        caption: format!(
            "Training of each arm. Left: loss, means over short stretches, and on the validation split; \
             right: the greatest |logit| over all layers and heads, and over each stretch. {START_LEFT_OUT}"
        ),
        alt: alt(study),
        keys: vec![
            Key::grey("training", Stroke::Solid),
            Key::new("validation", Ink::grey(Stroke::Solid), Shape::Points),
        ],
        panels: vec![loss_panel(study), logit_panel(study)],
    }
}

fn loss_panel(study: &Trainings) -> Panel {
    let mut series = Vec::new();
    for run in &study.runs {
        let ink = ink_of_run(study, run);
        let line = Series::new(&run.run, ink, Shape::Line, run.log.train_loss.clone());
        series.push(label_first(line, study, run));
        series.push(Series::new(&run.run, ink, Shape::Points, run.log.valid_loss.clone()));
    }
    let y = loss_axis(&series);
    let series = series.into_iter().map(|series| entered(series, &y)).collect();
    Panel::new("Loss", steps(study), y, series)
}

/// The ink of a run's arm, dashed or dotted where other runs of that arm come before it.
pub(super) fn ink_of_run(study: &Trainings, run: &TrainingRun) -> Ink {
    let before = study.by_run().take_while(|seeds| seeds[0].run != run.run);
    Ink::of_arm(&run.arm).nth(before.filter(|seeds| seeds[0].arm == run.arm).count())
}

/// Max |logit| against step, a line a training.
fn logit_panel(study: &Trainings) -> Panel {
    let mut series = Vec::new();
    for run in &study.runs {
        let points = run.log.max_logit.clone();
        let line = Series::new(&run.run, ink_of_run(study, run), Shape::Line, points);
        series.push(label_first(line, study, run));
    }
    let y = logit_axis(&series);
    Panel::new("Logits", steps(study), y, series)
}

/// What the axes of logits over all heads measure.
pub(super) const LOGITS: &str = "max |logit| over heads (nats)";

fn logit_axis(series: &[Series]) -> Axis {
    let logits = series.iter().flat_map(|series| &series.points).map(|&(_, logit)| logit);
    Axis::linear(LOGITS, logits, Some(0.0))
}

/// Loss and max |logit| against step in trainings at several lengths of context: a figure of each, a panel a
/// length.
pub fn by_context(study: &Trainings) -> Vec<Figure> {
    let rates: Vec<f64> = study.runs.iter().filter_map(|run| run.learning_rate).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let several = rates.iter().any(|rate| *rate > least);
    let mut names: Vec<&str> = Vec::new();
    for seeds in study.by_run() {
        names.push(&seeds[0].run);
    }
    // Runs of one arm at one length and rate differ in something else: then each has a colour of its own.
    let alike = |a: &TrainingRun, b: &TrainingRun| {
        (&a.arm, a.context, a.learning_rate.map(f64::to_bits))
            == (&b.arm, b.context, b.learning_rate.map(f64::to_bits))
    };
    let by_run =
        study.runs.iter().any(|a| study.runs.iter().any(|b| alike(a, b) && a.run != b.run));
    let ink = |run: &TrainingRun| {
        if by_run {
            let nth = names.iter().position(|name| *name == run.run).unwrap_or(0);
            return Ink::of_variant(nth).nth(nth / 5);
        }
        let faster = run.learning_rate.is_some_and(|rate| rate > least);
        let stroke = if faster { Stroke::Dashed } else { Stroke::Solid };
        Ink { stroke, ..Ink::of_arm(&run.arm) }
    };
    let mut keys: Vec<Key> = Vec::new();
    for run in &study.runs {
        let rate = run.learning_rate.filter(|_| several);
        let name = match rate {
            _ if by_run => run.run.clone(),
            Some(rate) => format!("{}, rate {rate}", run.arm),
            None => run.arm.clone(),
        };
        if keys.iter().all(|key| key.label != name) {
            keys.push(Key::new(&name, ink(run), Shape::Line));
        }
    }
    let figure = |name: &str, caption: String, axis: fn(&[Series]) -> Axis, curve: Curve| {
        let line = |run: &TrainingRun| {
            let name = format!("{}, seed {}", run.run, run.seed);
            Series::new(&name, ink(run), Shape::Line, curve(run).to_vec())
        };
        let lines: Vec<Series> = study.runs.iter().map(line).collect();
        let y = axis(&lines);
        let panel = |&context: &usize| {
            let here =
                study.runs.iter().zip(&lines).filter(|(run, _)| run.context == Some(context));
            let series = here.map(|(_, line)| entered(line.clone(), &y)).collect();
            Panel::new(&length(context), steps(study), y.clone(), series)
        };
        Figure {
            name: name.to_owned(),
            caption,
            alt: alt(study),
            keys: keys.clone(),
            panels: study.contexts().iter().map(panel).collect(),
        }
    };
    let which = "over short stretches: a panel a length of context, a line a seed.";
    vec![
        figure(
            "logits-by-length",
            format!("The greatest |logit| over all layers and heads and {which}"),
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

/// Max |logit| against step of runs that differ from a baseline in one thing each: a panel a run, its seeds before
/// those of the baseline of its arm and length, in grey.
pub fn interventions(study: &Trainings, baselines: &[String]) -> Figure {
    let is_baseline = |run: &TrainingRun| baselines.contains(&run.run);
    let line = |run: &TrainingRun, ink: Ink| {
        let name = format!("{}, seed {}", run.run, run.seed);
        Series::new(&name, ink, Shape::Line, run.log.max_logit.clone())
    };
    let logits = study.runs.iter().flat_map(|run| run.log.max_logit.iter().map(|point| point.1));
    let y = Axis::linear(LOGITS, logits, Some(0.0));
    let changed = study.by_run().filter(|seeds| !is_baseline(&seeds[0]));
    let panels = changed.map(|seeds| {
        let same = |run: &&TrainingRun| {
            is_baseline(run) && (&run.arm, run.context) == (&seeds[0].arm, seeds[0].context)
        };
        let before = study.runs.iter().filter(same).map(|run| line(run, Ink::grey(Stroke::Solid)));
        let after = seeds.iter().map(|run| line(run, Ink::of_arm(&run.arm)));
        Panel::new(&seeds[0].run, steps(study), y.clone(), before.chain(after).collect())
    });
    let mut keys: Vec<Key> = Vec::new();
    for run in study.runs.iter().filter(|run| !is_baseline(run)) {
        let name = format!("{}, changed", run.arm);
        if keys.iter().all(|key| key.label != name) {
            keys.push(Key::new(&name, Ink::of_arm(&run.arm), Shape::Line));
        }
    }
    keys.push(Key::grey("the same arm unchanged", Stroke::Solid));
    Figure {
        name: "interventions".to_owned(),
        caption: "The greatest |logit| over all layers and heads and over short stretches, of runs that differ from \
                  their arm's in one thing: a panel a change, a line a seed."
            .to_owned(),
        alt: alt(study),
        keys,
        panels: panels.collect(),
    }
}

/// What a run logged at each step.
type Curve = fn(&TrainingRun) -> &[(f64, f64)];

/// Max |logit| of the heads that see everything and of those with a window, apart; none where no
/// run has heads with a window.
pub fn head_kinds(study: &Trainings) -> Option<Figure> {
    study.runs.iter().find(|run| !run.log.max_logit_local.is_empty())?;
    let mut series = Vec::new();
    for run in &study.runs {
        let kinds = [
            ("global", &run.log.max_logit_global, Stroke::Solid),
            ("local", &run.log.max_logit_local, Stroke::Dashed),
        ];
        for (kind, logits, stroke) in kinds.into_iter().filter(|kind| !kind.1.is_empty()) {
            let ink = Ink { stroke, ..Ink::of_arm(&run.arm) };
            let name = format!("{}, {kind} heads", run.run);
            let line = Series::new(&name, ink, Shape::Line, logits.clone());
            series.push(if is_first(study, run) { line.labelled(&name) } else { line });
        }
    }
    let logits = series.iter().flat_map(|series| &series.points).map(|&(_, logit)| logit);
    let y = Axis::linear("max |logit| over heads of a kind (nats)", logits, Some(0.0));
    Some(Figure {
        name: "head-kinds".to_owned(),
        caption:
            "The greatest |logit| over the heads that see everything (solid) and over those with a \
                  window (dashed), and over short stretches."
                .to_owned(),
        alt: ends(&series),
        keys: Vec::new(),
        panels: vec![Panel::new("Logits by kind of head", steps(study), y, series)],
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

pub(super) fn steps(study: &Trainings) -> Axis {
    let all = study.runs.iter().flat_map(|run| run.log.train_loss.iter().map(|&(step, _)| step));
    Axis::from_zero("step", all)
}

pub(super) fn alt(study: &Trainings) -> String {
    let lines = study.runs.iter().map(|run| {
        let shown =
            |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.2}"));
        format!(
            "{}, seed {}: last validation loss {} nats, max |logit| {} at the end and {} at its \
             greatest.",
            run.run,
            run.seed,
            shown(run.valid_loss_nats),
            shown(run.max_abs_logit),
            shown(run.peak_max_abs_logit),
        )
    });
    lines.collect::<Vec<_>>().join(" ")
}
