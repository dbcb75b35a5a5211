//! Loss against peak logits, run by run.

use super::model::{Axis, Figure, Panel, Series, Shape};
use super::ticks::length;
use super::training::alt;
use super::variant::Looks;
use crate::table::{TrainingRun, Trainings};

/// Validation loss against the peak max |logit| of QKᵀ: a point per seed, a panel per length of context.
pub fn variants(study: &Trainings) -> Figure {
    let points = |runs: &[TrainingRun]| -> Vec<(f64, f64)> {
        runs.iter()
            .filter_map(|run| Some((run.peak_max_abs_logit?, run.valid_loss_nats?)))
            .collect()
    };
    let all = points(&study.runs);
    let x = Axis::log("peak max |logit|, QKᵀ/√d", all.iter().map(|point| point.0));
    let looks = Looks::of(study);
    let y = all.iter().map(|point| point.1);
    let y = Axis::linear("validation loss (nats per token)", y, None);
    let panel = |&context: &usize| {
        let runs = study.by_run().filter(|seeds| seeds[0].context == Some(context));
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
        alt: alt(study),
        keys: Vec::new(),
        panels: study.contexts().iter().map(panel).collect(),
    }
}
