//! Loss against peak logits, run by run.

use super::model::{Axis, Figure, Panel, Series, Shape};
use super::style::Ink;
use super::ticks::length;
use super::training::alt;
use crate::table::{TrainingRun, Trainings};

/// Validation loss against the peak of max |QKᵀ/√d|: a point a seed, a panel a length of context.
/// Runs called one of `baselines` have their arm's ink.
pub fn variants(study: &Trainings, baselines: &[String]) -> Figure {
    let points = |runs: &[TrainingRun]| -> Vec<(f64, f64)> {
        runs.iter()
            .filter_map(|run| Some((run.peak_max_abs_logit?, run.valid_loss_nats?)))
            .collect()
    };
    let all = points(&study.runs);
    let x = Axis::log("peak of max |QKᵀ/√d| (nats)", all.iter().map(|point| point.0));
    let mut changed: Vec<&str> = Vec::new();
    for run in study.runs.iter().filter(|run| !baselines.contains(&run.run)) {
        if !changed.contains(&&*run.run) {
            changed.push(&run.run);
        }
    }
    let ink = |run: &TrainingRun| match changed.iter().position(|name| *name == run.run) {
        Some(at) => Ink::of_variant(at),
        None => Ink::of_arm(&run.arm),
    };
    let panel = |&context: &usize| {
        let runs = study.by_run().filter(|seeds| seeds[0].context == Some(context));
        let one = |seeds: &[TrainingRun]| {
            let name = &seeds[0].run;
            Series::new(name, ink(&seeds[0]), Shape::Points, points(seeds)).labelled(name)
        };
        let series: Vec<Series> = runs.map(one).collect();
        let losses = series.iter().flat_map(|series| &series.points).map(|point| point.1);
        let y = Axis::linear("validation loss (nats a token)", losses, None);
        Panel::new(&length(context), x.clone(), y, series)
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
