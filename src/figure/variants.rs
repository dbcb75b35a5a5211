//! Loss against peak logits, run by run.

use super::model::{Axis, Figure, Panel, Series, Shape};
use super::style::Ink;
use super::training::alt;
use crate::table::{TrainingRun, Trainings};

/// Validation loss against the peak of max |QKᵀ/√d|: a point a seed, a panel a length of context.
pub fn variants(study: &Trainings) -> Figure {
    let points = |runs: &[TrainingRun]| -> Vec<(f64, f64)> {
        runs.iter()
            .filter_map(|run| Some((run.peak_max_abs_logit?, run.valid_loss_nats?)))
            .collect()
    };
    let all = points(&study.runs);
    let x = Axis::log("peak of max |QKᵀ/√d| (nats)", all.iter().map(|point| point.0));
    let panel = |&context: &usize| {
        let runs = study.by_run().filter(|seeds| seeds[0].context == Some(context));
        let series: Vec<Series> = runs
            .enumerate()
            .map(|(at, seeds)| {
                let name = &seeds[0].run;
                Series::new(name, Ink::of_variant(at), Shape::Points, points(seeds)).labelled(name)
            })
            .collect();
        let losses = series.iter().flat_map(|series| &series.points).map(|point| point.1);
        let y = Axis::linear("validation loss (nats a token)", losses, None);
        Panel::new(&format!("n = {context}"), x.clone(), y, series)
    };
    Figure {
        name: "loss-and-logits".to_owned(),
        caption: "The last validation loss against the greatest |QKᵀ/√d| over all layers, heads and steps, without what a \
                  slope over the lag adds: a point a seed, to the left and below is better."
            .to_owned(),
        alt: alt(study),
        keys: Vec::new(),
        panels: study.contexts().iter().map(panel).collect(),
    }
}
