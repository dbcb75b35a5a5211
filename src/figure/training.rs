//! The figures of a study of trainings.

use super::losses::{START_LEFT_OUT, entered, loss_axis};
use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use super::ticks::{length, natural};
use super::variant::{Looks, Variant};
use crate::table::{TrainingRun, Trainings};

/// Loss and max |logit| against step, a line per training.
pub fn training(study: &Trainings) -> Figure {
    let looks = Looks::of(study);
    Figure {
        name: "training".to_owned(),
        caption: format!(
            "Training loss (left, lines), validation loss (left, points) and the largest |logit| over all heads (right) at each \
             step, one line per seed. Lines show means of the loss and maxima of the logit over short stretches. {START_LEFT_OUT}{}",
            unfinished(study)
        ),
        alt: alt(study),
        keys: vec![
            Key::grey("training", Stroke::Solid),
            Key::new("validation", Ink::grey(Stroke::Solid), Shape::Points),
        ],
        panels: vec![loss_panel(study, &looks), logit_panel(study, &looks)],
    }
}

/// Says that runs were stopped, where all of them were.
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
    }
    let y = loss_axis(&series);
    let series = series.into_iter().map(|series| entered(series, &y)).collect();
    Panel::new("Loss", steps(study), y, series)
}

/// Max |logit| against step, a line per training.
fn logit_panel(study: &Trainings, looks: &Looks) -> Panel {
    let mut series = Vec::new();
    for run in &study.runs {
        let points = run.log.max_logit.clone();
        let line = Series::new(looks.label(run), looks.ink(run), Shape::Line, points);
        series.push(label_first(line, study, run));
    }
    let y = logit_axis(&series);
    Panel::new("Largest logit", steps(study), y, series)
}

/// What the axes of logits over all heads measure.
pub(super) const LOGITS: &str = "max |logit| over all heads";

fn logit_axis(series: &[Series]) -> Axis {
    let logits = series.iter().flat_map(|series| &series.points).map(|&(_, logit)| logit);
    Axis::linear(LOGITS, logits, Some(0.0))
}

/// Loss and max |logit| against step in trainings at several lengths of context: a figure of each, a panel per length.
pub fn by_context(study: &Trainings) -> Vec<Figure> {
    let looks = Looks::of(study);
    let keys = looks.keys(study.runs.iter(), Shape::Line);
    let figure = |name: &str, caption: String, axis: fn(&[Series]) -> Axis, curve: Curve| {
        let line = |run: &TrainingRun| {
            let name = format!("{}, seed {}", looks.label(run), run.seed);
            Series::new(&name, looks.ink(run), Shape::Line, curve(run).to_vec())
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

/// Max |logit| against step of runs that differ from a baseline in one setting each: a panel per run, its seeds before
/// those of the baseline of its arm and length, in grey.
pub fn interventions(study: &Trainings, baselines: &[String]) -> Figure {
    let looks = Looks::of(study);
    let is_baseline = |run: &TrainingRun| baselines.contains(&run.run);
    let line = |run: &TrainingRun, ink: Ink| {
        let name = format!("{}, seed {}", looks.label(run), run.seed);
        Series::new(&name, ink, Shape::Line, run.log.max_logit.clone())
    };
    let logits = study.runs.iter().flat_map(|run| run.log.max_logit.iter().map(|point| point.1));
    let y = Axis::linear(LOGITS, logits, Some(0.0));
    let mut changed: Vec<_> = study.by_run().filter(|seeds| !is_baseline(&seeds[0])).collect();
    changed.sort_by_cached_key(|seeds| natural(looks.label(&seeds[0])));
    let panels = changed.into_iter().map(|seeds| {
        let same = |run: &&TrainingRun| {
            is_baseline(run) && (&run.arm, run.context) == (&seeds[0].arm, seeds[0].context)
        };
        let before = study.runs.iter().filter(same).map(|run| line(run, Ink::grey(Stroke::Solid)));
        let ink = Variant::of_training(&seeds[0]).ink();
        let after = seeds.iter().map(|run| line(run, ink));
        let title = looks.label(&seeds[0]);
        Panel::new(title, steps(study), y.clone(), before.chain(after).collect())
    });
    Figure {
        name: "interventions".to_owned(),
        caption: "The largest |logit| over all heads at each step. Each panel changes one setting, named in its title; coloured \
                  lines are the changed runs, grey lines the unchanged ones, one line per seed. A change that removes the cause \
                  of large logits keeps the coloured lines low."
            .to_owned(),
        alt: alt(study),
        keys: vec![Key::grey("unchanged runs; in colour, the runs of the title", Stroke::Solid)],
        panels: panels.collect(),
    }
}

/// What a run logged at each step.
type Curve = fn(&TrainingRun) -> &[(f64, f64)];

/// Max |logit| of global and of local heads, apart; none where no run has local heads.
pub fn head_kinds(study: &Trainings) -> Option<Figure> {
    study.runs.iter().find(|run| !run.log.max_logit_local.is_empty())?;
    let looks = Looks::of(study);
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
            series.push(if is_first(study, run) { line.labelled(&name) } else { line });
        }
    }
    let logits = series.iter().flat_map(|series| &series.points).map(|&(_, logit)| logit);
    let y = Axis::linear("max |logit| over heads of a kind", logits, Some(0.0));
    Some(Figure {
        name: "head-kinds".to_owned(),
        caption: format!(
            "The largest |logit| over the global heads (solid lines) and over the local heads (dashed lines) at each step, over \
             short stretches of steps. Each line is one seed.{}",
            unfinished(study)
        ),
        alt: ends(&series),
        keys: Vec::new(),
        panels: vec![Panel::new("Largest logit by kind of head", steps(study), y, series)],
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
    let name = series.name.clone();
    if is_first(study, run) { series.labelled(&name) } else { series }
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
    let looks = Looks::of(study);
    let lines = study.runs.iter().map(|run| {
        let shown =
            |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.2}"));
        format!(
            "{}, seed {}: final validation loss {} nats per token, max |logit| {} at the end, peak {}.",
            looks.label(run),
            run.seed,
            shown(run.valid_loss_nats),
            shown(run.max_abs_logit),
            shown(run.peak_max_abs_logit),
        )
    });
    lines.collect::<Vec<_>>().join(" ")
}
