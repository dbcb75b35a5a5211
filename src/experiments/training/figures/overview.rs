//! The headline figure: peak logits and loss of a few variants.

use crate::experiments::training::figures::variant::{Looks, Variant};
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::figure::style::DARK;
use crate::figure::{Axis, Figure, Ink, Key, Marker, Panel, Series, Shape, Stroke};
use crate::table::{Spread, significant};

/// Selects a number of a run.
pub(crate) type Value = fn(&TrainingRun) -> Option<f64>;

/// The variants of the figure in order of preference; it shows the first five that a study has.
const FIRST: [Variant<'static>; 6] = [
    Variant::plain("mhsa"),
    Variant::plain("ls"),
    Variant::of("mhsa", "rope", "none"),
    Variant::of("mhsa", "learned", "alibi"),
    Variant::plain("qk-norm"),
    Variant::of("mhsa", "learned", "learned"),
];

/// The maximum number of variants in the figure.
const MOST: usize = 5;
/// The minimum number of variants; fewer are no comparison.
const LEAST: usize = 3;

/// Half the height of the mark at a median, in units of one line of the axis.
const HALF_STROKE: f64 = 0.22;

fn variant(seeds: &[TrainingRun]) -> Variant<'_> {
    Variant::of_training(&seeds[0])
}

/// Peak max |logit| and validation loss, one line per variant and one point per seed. Returns `None` if the study has
/// several runs of one variant, or too few variants.
pub fn overview(study: &Trainings) -> Option<Figure> {
    let runs: Vec<&[TrainingRun]> = study.by_run().collect();
    if runs.iter().any(|a| runs.iter().filter(|b| variant(a) == variant(b)).count() > 1) {
        return None;
    }
    let first = FIRST.iter().filter_map(|one| runs.iter().find(|run| variant(run) == *one));
    let mut shown: Vec<&[TrainingRun]> = first.copied().take(MOST).collect();
    shown.retain(|run| is_whole(run));
    let left_out = match runs.len() - shown.len() {
        0 => String::new(),
        count => format!(" {count} of {} variants are only in the next figure.", runs.len()),
    };
    if shown.len() < LEAST {
        return None;
    }
    // The largest logit is drawn at the top, which is the end of the axis.
    shown.sort_by(|a, b| {
        let [a, b] = [a, b].map(|seeds| median(seeds, TrainingRun::peak));
        a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
    });
    let looks = Looks::from_study(study);
    let names = |named: bool| {
        let name = |run: &&[TrainingRun]| match named {
            true => looks.label(&run[0]).to_owned(),
            false => String::new(),
        };
        Axis::of_names("", shown.iter().map(name).collect())
    };
    let panel = |title: &str, x: Axis, y: Axis, of: Value, digits: usize| {
        let mut series = Vec::new();
        for (at, seeds) in shown.iter().enumerate() {
            let (name, ink, at) = (looks.label(&seeds[0]), looks.ink(&seeds[0]), at as f64);
            let ink = Ink { marker: Marker::Circle, ..ink };
            let points = seeds.iter().filter_map(of).map(|value| (value, at)).collect();
            series.push(Series::new(name, ink, Shape::Points, points));
            if let Some(median) = median(seeds, of) {
                let stroke = [at - HALF_STROKE, at + HALF_STROKE, at].map(|y| (median, y)).to_vec();
                let stroke = Series::new(name, ink, Shape::Line, stroke);
                series.push(stroke.labelled(&significant(median, digits)));
            }
        }
        Panel::new(title, x, y, series)
    };
    let values = |of: Value| shown.iter().flat_map(move |seeds| seeds.iter().filter_map(of));
    let grey = Ink { colour: DARK, ..Ink::grey(Stroke::Solid) };
    Some(Figure {
        name: "overview".to_owned(),
        caption: format!(
            "Largest |logit| of QKᵀ in training (left) and final validation loss (right), at one learning rate. Each point is one \
             seed; strokes and numbers are medians. Variants are sorted by their logits; compare \
             the order of their losses. Positions are learned unless named. A position bias is added to QKᵀ and \
             not counted.{left_out}"
        ),
        keys: vec![
            Key::new("one training run", grey, Shape::Points),
            Key::new("median over seeds, with its value at the right", grey, Shape::Line),
        ],
        panels: vec![
            panel(
                "Largest attention logit",
                Axis::log("peak max |logit|, QKᵀ/√d (log scale)", values(TrainingRun::peak)),
                names(true),
                TrainingRun::peak,
                2,
            ),
            panel(
                "Loss: lower is better",
                Axis::linear("validation loss (nats per token)", values(TrainingRun::loss), None),
                names(false),
                TrainingRun::loss,
                3,
            ),
        ],
    })
}

fn median(seeds: &[TrainingRun], of: Value) -> Option<f64> {
    Some(Spread::of(seeds.iter().filter_map(of))?.median)
}

fn is_whole(seeds: &[TrainingRun]) -> bool {
    median(seeds, TrainingRun::peak).is_some() && median(seeds, TrainingRun::loss).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_stand_in_one_order_with_a_point_per_seed_and_the_median_beside_it() {
        let runs = [
            ("ls", "learned", 1, 18.0, 1.6),
            ("mhsa", "learned", 1, 40.0, 1.9),
            ("mhsa", "learned", 2, 60.0, 1.8),
            ("mhsa", "rope", 1, 41.0, 1.5),
            ("mhsa", "none", 1, 55.0, 2.3),
        ];
        let runs = runs.map(|(arm, positions, seed, peak, loss)| {
            let name = format!("{arm}-{positions}");
            let mut run = TrainingRun::made_up(&name, arm, seed, peak, loss);
            run.of.model.positions = positions.to_owned();
            run
        });
        let mut study = Trainings::made_up(runs);
        let figure = overview(&study).unwrap();
        let [logits, losses] = &figure.panels[..] else { panic!("two panels") };
        let names: Vec<&str> = logits.y.ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(names, ["LS-attention", "multi-head, RoPE", "multi-head"]);
        let of = |panel: &Panel, shape| {
            let of_name = |series: &&Series| series.name == "multi-head" && series.shape == shape;
            panel.series.iter().find(of_name).unwrap().clone()
        };
        let points = of(logits, Shape::Points);
        assert_eq!(points.points, [(40.0, 2.0), (60.0, 2.0)]);
        assert_eq!(points.ink, of(losses, Shape::Points).ink, "one colour per variant");
        let medians = [logits, losses].map(|panel| of(panel, Shape::Line).label.unwrap());
        assert_eq!(medians, ["50", "1.85"]);
        assert!(figure.caption.contains("1 of 4 variants"), "{}", figure.caption);
        assert!(figure.svg().unwrap().contains("multi-head, RoPE"));

        let mut twice = study.runs[1].clone();
        twice.of.model.run = "mhsa-d8".to_owned();
        study.runs.push(twice);
        assert!(overview(&study).is_none(), "two runs of a variant");
    }
}
