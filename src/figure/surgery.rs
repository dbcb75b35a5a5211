//! The figure of trained models whose heads attend otherwise.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Marker, Stroke};
use super::ticks::length;
use crate::predict::EditedHeads;
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
        let title = format!("{}: {}", run.1, length(here[0].n));
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

/// Losses under this are of rounding, in nats per token.
const LEAST_SHOWN: f64 = 1e-4;

/// The edits whose size a figure goes over, in its order, each with its name there.
const SIZED: [(&str, &str, Stroke); 4] = [
    ("far-top-k", "far part on k tokens a row", Stroke::Solid),
    ("far-rank-r", "far part of rank r", Stroke::Dashed),
    ("top-k", "rows on k tokens", Stroke::Solid),
    ("rank-r", "P of rank r", Stroke::Dashed),
];

/// What heads cut to k tokens a row or to rank r cost, against k and r: a panel for the far parts of global heads, one for whole rows.
pub fn loss_against_size(study: &Surgeries) -> Option<Figure> {
    let is_shown = |model: &&OperatedModel| {
        model.edit.size().is_some() && SIZED.iter().any(|(name, ..)| *name == model.edit.name())
    };
    let shown: Vec<&OperatedModel> = study.models.iter().filter(is_shown).collect();
    let point = |model: &OperatedModel| Some((model.edit.size()? as f64, model.delta()));
    let points =
        || shown.iter().filter_map(|model| point(model)).filter(|point| point.1 > LEAST_SHOWN);
    points().next()?;
    let x = Axis::log_at("k, r", points().map(|point| point.0));
    let deltas = points().map(|point| point.1).chain([HARMLESS_NATS]);
    let y = Axis::log("Δloss (nats per token)", deltas);
    let mut runs: Vec<(&str, EditedHeads)> = Vec::new();
    for model in &shown {
        let run = (model.run.as_str(), model.edited_heads);
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    let panel = |title: &str, names: &[(&str, &str, Stroke)]| {
        let mut series = Vec::new();
        for (run, heads) in &runs {
            for (name, what, stroke) in names {
                let here: Vec<(f64, f64)> = shown
                    .iter()
                    .filter(|m| m.run == *run && m.edited_heads == *heads && m.edit.name() == *name)
                    .filter_map(|model| point(model))
                    .collect();
                let mut sizes: Vec<f64> = here.iter().map(|point| point.0).collect();
                sizes.sort_by(f64::total_cmp);
                sizes.dedup();
                let median = |size: f64| {
                    let at = here.iter().filter(|point| point.0 == size).map(|point| point.1);
                    Some((size, Spread::of(at)?.median)).filter(|(_, delta)| *delta > LEAST_SHOWN)
                };
                let medians: Vec<(f64, f64)> = sizes.into_iter().filter_map(median).collect();
                let ink = Ink { stroke: *stroke, ..ink_of(run, *heads) };
                if !medians.is_empty() {
                    let name = format!("{run}, {} heads, {what}", heads.name());
                    let seeds =
                        here.iter().copied().filter(|point| point.1 > LEAST_SHOWN).collect();
                    series.push(Series::new(&name, ink, Shape::Seeds, seeds));
                    series.push(Series::new(&name, ink, Shape::LineMarkers, medians));
                }
            }
        }
        Panel::new(title, x.clone(), y.clone(), series).with_guide(HARMLESS_NATS)
    };
    let mut keys: Vec<Key> = runs
        .iter()
        .map(|(run, heads)| {
            Key::new(
                &format!("{run}, {} heads", heads.name()),
                ink_of(run, *heads),
                Shape::LineMarkers,
            )
        })
        .collect();
    keys.push(Key::grey("k tokens a row", Stroke::Solid));
    keys.push(Key::grey("rank r", Stroke::Dashed));
    let all = &shown;
    let alt = runs.iter().flat_map(|&(run, heads)| {
        SIZED.iter().filter_map(move |(name, what, _)| {
            let sixteen = all.iter().filter(|m| {
                m.run == run
                    && m.edited_heads == heads
                    && m.edit.name() == *name
                    && m.edit.size() == Some(16)
            });
            let delta = Spread::of(sixteen.map(|model| model.delta()))?;
            Some(format!(
                "{run}, {} heads, {what}: {} nats at 16.",
                heads.name(),
                significant(delta.median, 2)
            ))
        })
    });
    Some(Figure {
        name: "loss-against-size".to_owned(),
        caption: format!(
            "What models lose where the heads of one kind are cut to their k largest tokens a row, or to their best approximation of rank r, against k and r. Left, \
             what lies beyond the window alone, its mass kept; right, whole rows. Lines are medians over seeds, strokes seeds; losses under {LEAST_SHOWN} are not shown; \
             the level is {HARMLESS_NATS} nats per token."
        ),
        alt: alt.collect::<Vec<_>>().join(" "),
        keys,
        panels: vec![panel("Beyond the window", &SIZED[..2]), panel("Whole rows", &SIZED[2..])],
    })
}

/// The ink of a run; its local heads have another marker.
fn ink_of(run: &str, heads: EditedHeads) -> Ink {
    let ink = Ink::of_arm(match run {
        "ls-window-64" => "sigma-reparam",
        "ls-window-256" => "layer-alternating",
        run => run,
    });
    match heads {
        EditedHeads::Local => Ink { marker: Marker::Diamond, ..ink },
        _ => ink,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::Edit;

    fn model(heads: EditedHeads, seed: usize, edit: Edit, delta: f64) -> OperatedModel {
        OperatedModel {
            of: "runs".to_owned(),
            run: "ls".to_owned(),
            arm: "ls".to_owned(),
            seed,
            step: 100,
            n: 64,
            window: Some(8),
            d_head: Some(16),
            heads: 12,
            edit,
            edited_heads: heads,
            deltas: vec![delta],
            before: 10.0,
            after: None,
            after_of_largest: None,
            kl_nats: None,
            total_variation: 0.1,
            reached: None,
        }
    }

    #[test]
    fn far_parts_and_whole_rows_stand_apart_by_heads_and_edit() {
        use EditedHeads::{Global, Local};
        let far = |count| Edit::FarLargest { count, from: 8 };
        let models = vec![
            model(Global, 1, far(4), 0.03),
            model(Global, 2, far(4), 0.05),
            model(Global, 1, far(16), 0.02),
            model(Global, 1, Edit::Truncated { rank: 16 }, -0.1),
            model(Local, 1, Edit::Truncated { rank: 16 }, 0.3),
            model(Global, 1, Edit::Uniform, 1.0),
        ];
        let figure = loss_against_size(&Surgeries { models, failed: 0 }).unwrap();
        let lines = |panel: usize| -> Vec<(String, Vec<(f64, f64)>)> {
            let series = figure.panels[panel].series.iter();
            let lines = series.filter(|series| series.shape == Shape::LineMarkers);
            lines.map(|series| (series.name.clone(), series.points.clone())).collect()
        };
        let of_far = "ls, global heads, far part on k tokens a row".to_owned();
        assert_eq!(lines(0), [(of_far, vec![(4.0, 0.04), (16.0, 0.02)])]);
        let of_rank = "ls, local heads, P of rank r".to_owned();
        assert_eq!(lines(1), [(of_rank, vec![(16.0, 0.3)])], "a loss under 0 is not shown");
        assert!(figure.alt.contains("ls, global heads, P of rank r: -0.10 nats"), "{}", figure.alt);
        let none = model(Global, 1, Edit::Uniform, 1.0);
        assert!(loss_against_size(&Surgeries { models: vec![none], failed: 0 }).is_none());
    }
}
