//! The figure of trained models whose heads attend otherwise.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use crate::table::{HARMLESS_NATS, OperatedModel, Spread, Surgeries, significant};

/// What fits at error ε cost, against ε: a panel a run, a line a rank.
pub fn loss_against_epsilon(study: &Surgeries) -> Option<Figure> {
    let fits: Vec<&OperatedModel> = study.fits().concat();
    let point = |model: &OperatedModel| Some((model.edit.fit()?.0, model.delta()));
    let points = || fits.iter().filter_map(|model| point(model));
    let y = Axis::log(
        "Δloss (nats per token)",
        points().map(|(_, delta)| delta).chain([HARMLESS_NATS]),
    );
    let x =
        Axis::log("ε, the error in every head's attention (nats)", points().map(|point| point.0));
    let mut runs: Vec<(&str, &str)> = Vec::new();
    for model in &fits {
        let run = (model.of.as_str(), model.run.as_str());
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    if runs.is_empty() {
        return None;
    }
    let rank_of = |model: &OperatedModel| model.edit.fit().map_or(0, |(_, rank)| rank);
    let panels = runs.iter().map(|&run| {
        let here: Vec<&OperatedModel> =
            fits.iter().copied().filter(|m| (m.of.as_str(), m.run.as_str()) == run).collect();
        let mut ranks: Vec<usize> = here.iter().map(|model| rank_of(model)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let mut series = Vec::new();
        for rank in ranks {
            // An error that was not reached is none of this ε.
            let of_rank: Vec<(f64, f64)> = here
                .iter()
                .filter(|model| rank_of(model) == rank && model.is_reached())
                .filter_map(|model| point(model))
                .collect();
            let ink = Ink::of_rank(rank);
            let name = format!("rank {rank}");
            let seeds = of_rank.iter().copied().filter(|(_, delta)| *delta > 0.0).collect();
            series.push(Series::new(&name, ink, Shape::Seeds, seeds));
            let mut epsilons: Vec<f64> = of_rank.iter().map(|point| point.0).collect();
            epsilons.sort_by(f64::total_cmp);
            epsilons.dedup();
            let median = |epsilon: f64| {
                let at = of_rank.iter().filter(|point| point.0 == epsilon).map(|point| point.1);
                Some((epsilon, Spread::of(at)?.median)).filter(|(_, delta)| *delta > 0.0)
            };
            let medians = epsilons.into_iter().filter_map(median).collect();
            series.push(Series::new(&name, ink, Shape::LineMarkers, medians));
        }
        let title = format!("{}: n = {}", run.1, here[0].n);
        Panel::new(&title, x.clone(), y.clone(), series).with_guide(HARMLESS_NATS)
    });
    let mut keys = Key::of_ranks(fits.iter().map(|model| rank_of(model)));
    keys.push(Key::grey(&format!("{HARMLESS_NATS} nats"), Stroke::Dashed));
    keys.push(Key::new("seed", Ink::grey(Stroke::Solid), Shape::Seeds));
    let alt = study.harmless().into_iter().map(|one| {
        format!(
            "{}, seed {}, rank {}: {}.",
            one.model.run,
            one.model.seed,
            one.rank,
            match one.epsilon {
                Some(epsilon) =>
                    format!("under {HARMLESS_NATS} nats from ε = {} on", significant(epsilon, 1)),
                None => "at no ε under it".to_owned(),
            }
        )
    });
    Some(Figure {
        name: "loss-against-epsilon".to_owned(),
        caption: format!(
            "What a model loses where every head's attention is its free fit at error ε, with queries and keys of rank r, against \
             ε. Only fits whose ε every head reached, and losses above 0, are shown. Lines are medians over seeds, strokes seeds; \
             the dashed level is {HARMLESS_NATS} nats per token."
        ),
        alt: alt.collect::<Vec<_>>().join(" "),
        keys,
        panels: panels.collect(),
    })
}
