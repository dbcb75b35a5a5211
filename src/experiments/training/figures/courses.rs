//! The figures of training runs from their folders: one run head by head, or several runs compared.

use crate::experiments::training::tables::run_course::{HeadCourse, RunCourse, label};
use crate::experiments::training::tables::run_log::Curve;
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};
use crate::table::{distinct, groups};

const LOGITS: &str = "max |logit|";
const LOSS: &str = "loss (nats per token)";

/// The figures of one run: loss, and logits and entropy head by head.
pub fn course(run: &RunCourse) -> Vec<Figure> {
    let mut figures = vec![loss(run)];
    match run.heads.is_empty() {
        true if run.log.max_logit.is_empty() => {}
        true => figures.extend(courses(std::slice::from_ref(run)).into_iter().next()),
        false => {
            let of = |of: fn(&HeadCourse) -> &Curve| {
                let head = |head: &HeadCourse| HeadCurve {
                    layer: head.layer,
                    head: head.head,
                    name: format!("head {} ({})", head.head, head.kind),
                    points: of(head).clone(),
                };
                run.heads.iter().map(head).collect::<Vec<_>>()
            };
            figures.extend([
                by_head(
                    &of(|head| &head.max_logit),
                    "logits-by-head",
                    LOGITS,
                    "The largest |logit| of each head at each step, over short stretches of steps. Each panel is one layer.",
                ),
                by_head(
                    &of(|head| &head.entropy_nats),
                    "entropy-by-head",
                    "entropy of attention (nats)",
                    "The mean entropy of each head's attention per query. Near 0, a query attends to one token.",
                ),
            ]);
        }
    }
    figures
}

fn loss(run: &RunCourse) -> Figure {
    let (train, valid) = (run.log.train_loss.clone(), run.log.valid_loss.clone());
    let mut series = vec![
        Series::new("training", Ink::numbered(0), Shape::Line, train),
        Series::new("validation", Ink::numbered(1), Shape::LineMarkers, valid),
    ];
    if !run.log.upstream_loss.is_empty() {
        let points = run.log.upstream_loss.clone();
        series.push(Series::new("upstream", Ink::numbered(2), Shape::LineMarkers, points));
    }
    let mut caption =
        "Training loss, as means over short stretches of steps, and validation loss.".to_owned();
    if !run.spikes.is_empty() {
        caption.push_str(
            " Circles mark spikes: single steps more than 7 standard deviations above the median around them.",
        );
        let ink = Ink::grey(Stroke::Solid);
        series.push(Series::new("spike", ink, Shape::OpenPoints, run.spikes.clone()));
    }
    Figure {
        name: "loss".to_owned(),
        caption,
        keys: series.iter().map(|one| Key::new(&one.name, one.ink, one.shape)).collect(),
        panels: vec![panel(&run.name, LOSS, None, series)],
    }
}

/// One head's value against the step.
pub struct HeadCurve {
    /// The layer, from 0.
    pub layer: usize,
    /// The head within it, from 0.
    pub head: usize,
    /// The name of its line.
    pub name: String,
    /// (step, value).
    pub points: Curve,
}

/// A figure with one panel per layer and one line per head. `heads` are in the order of layers.
pub fn by_head(heads: &[HeadCurve], name: &str, label: &str, caption: &str) -> Figure {
    let points = || heads.iter().flat_map(|head| &head.points);
    let y = Axis::linear(label, points().map(|point| point.1), Some(0.0));
    let panels = heads.chunk_by(|a, b| a.layer == b.layer).map(|layer| {
        let line = |head: &HeadCurve| {
            Series::new(&head.name, Ink::numbered(head.head), Shape::Line, head.points.clone())
        };
        let title = format!("Layer {}", layer[0].layer);
        let x = Axis::from_zero("step", points().map(|point| point.0));
        Panel::new(&title, x, y.clone(), layer.iter().map(line).collect())
    });
    let key = |head: usize| Key::new(&format!("head {head}"), Ink::numbered(head), Shape::Line);
    Figure {
        name: name.to_owned(),
        caption: caption.to_owned(),
        keys: distinct(heads.iter().map(|head| head.head)).into_iter().map(key).collect(),
        panels: panels.collect(),
    }
}

fn panel(title: &str, label: &str, from: Option<f64>, series: Vec<Series>) -> Panel {
    let all = || series.iter().flat_map(|series| &series.points);
    let x = Axis::from_zero("step", all().map(|point| point.0));
    let y = Axis::linear(label, all().map(|point| point.1), from);
    Panel::new(title, x, y, series)
}

/// Selects a curve of a run.
type OfRun = fn(&RunCourse) -> &Curve;

/// Loss and logits of several runs: one colour per setting, one dash pattern per seed.
pub fn courses(runs: &[RunCourse]) -> Vec<Figure> {
    // One colour per setting, in the order of first runs, and one dash pattern per run of a setting.
    let settings = groups(runs, |run| label(runs, run));
    let ink = |run: &RunCourse| {
        let place = |(at, runs): (usize, &Vec<&RunCourse>)| {
            let nth = runs.iter().position(|other| std::ptr::eq(*other, run))?;
            Some(Ink::numbered(at).nth(nth))
        };
        settings.iter().enumerate().find_map(place).unwrap_or(Ink::numbered(0))
    };
    let figure = |(name, title): (&str, &str), label: &str, caption: &str, from, curve: OfRun| {
        let line =
            |run: &RunCourse| Series::new(&run.name, ink(run), Shape::Line, curve(run).clone());
        let series: Vec<Series> = runs.iter().map(line).collect();
        Figure {
            name: name.to_owned(),
            caption: caption.to_owned(),
            keys: Key::of_series(&series, Shape::Line),
            panels: vec![panel(title, label, from, series)],
        }
    };
    vec![
        figure(
            ("logits", "Largest logit"),
            LOGITS,
            "The largest |logit| over all heads at each step, over short stretches of steps. Each line is one run.",
            Some(0.0),
            |run| &run.log.max_logit,
        ),
        figure(
            ("training-loss", "Training loss"),
            LOSS,
            "Training loss, as means over short stretches of steps. Each line is one run.",
            None,
            |run| &run.log.train_loss,
        ),
        figure(
            ("validation-loss", "Validation loss"),
            LOSS,
            "The loss on the validation split. Each line is one run.",
            None,
            |run| &run.log.valid_loss,
        ),
    ]
}
