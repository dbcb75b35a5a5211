//! The figures of a study of interventions.

use crate::experiments::heads::figures::heads::title_of;
use crate::experiments::interventions::tables::{HARMLESS_NATS, OperatedModel, Surgeries};
use crate::experiments::training::figures::variant::Variant;
use crate::figure::style::{dark, pale};
use crate::figure::{Axis, Figure, Key, Panel, Series, Shape};
use crate::figure::{Ink, Marker, Stroke};
use crate::heads::EditedHeads;
use crate::table::{Spread, distinct, groups, significant};

/// The loss that fits at error ε add, against ε: one panel per run, one line per rank.
pub fn loss_against_epsilon(study: &Surgeries) -> Option<Figure> {
    let fits: Vec<&OperatedModel> = study.fits().concat();
    let point = |model: &OperatedModel| Some((model.edit.fit()?.0, model.delta()));
    let points = || fits.iter().filter_map(|model| point(model));
    let y = Axis::log(
        "added loss (nats per token)",
        points().map(|(_, delta)| delta).chain([HARMLESS_NATS]),
    );
    let x =
        Axis::log("error ε in the attention of every head (nats)", points().map(|point| point.0));
    let runs = groups(fits.iter().copied(), |model| (&model.of, &model.run));
    if runs.is_empty() {
        return None;
    }
    let rank_of = |model: &OperatedModel| model.edit.fit().map_or(0, |(_, rank)| rank);
    let panels = runs.iter().map(|here| {
        let mut series = Vec::new();
        for rank in distinct(here.iter().map(|model| rank_of(model))) {
            // A fit that did not reach its error does not belong to this ε.
            let reached = here.iter().filter(|m| rank_of(m) == rank && m.is_reached());
            let seeds = reached.filter_map(|model| point(model)).collect();
            let both = Series::over_seeds(&format!("rank {rank}"), Ink::of_rank(rank), seeds);
            series.extend(both.map(|series| series.above(0.0)));
        }
        let first = here[0];
        let title = title_of(&first.arm, &first.run, first.n, first.d_head.unwrap_or(0));
        Panel::new(&title, x.clone(), y.clone(), series).with_guide(HARMLESS_NATS)
    });
    let mut keys = Key::of_ranks(fits.iter().map(|model| rank_of(model)));
    keys.push(Key::grey(&format!("harmless: {HARMLESS_NATS} nats"), Stroke::Dashed));
    keys.push(Key::seed());
    let alt = study.harmless().into_iter().map(|one| {
        format!(
            "{}, seed {}, rank {}: {}.",
            one.model.run,
            one.model.seed,
            one.rank,
            match one.epsilon {
                Some(epsilon) =>
                    format!("below {HARMLESS_NATS} nats up to ε = {}", significant(epsilon, 1)),
                None => format!("below {HARMLESS_NATS} nats at no ε"),
            }
        )
    });
    Some(Figure {
        name: "loss-against-epsilon".to_owned(),
        caption: format!(
            "Loss added to a model when the attention of every head is replaced by its low-rank fit at error ε. Lines are medians \
             over seeds, ticks single seeds. Fits below the dashed level of {HARMLESS_NATS} nats per token are \
             harmless. Only fits that every head reached are shown."
        ),
        alt: alt.collect::<Vec<_>>().join(" "),
        keys,
        panels: panels.collect(),
    })
}

/// Added losses below this are rounding errors, in nats per token.
const LEAST_SHOWN: f64 = 1e-4;

/// The edits that have a size, each with its name and stroke.
const SIZED: [(&str, &str, Stroke); 4] = [
    ("far-top-k", "far part on k tokens per row", Stroke::Solid),
    ("far-rank-r", "far part of rank r", Stroke::Dashed),
    ("top-k", "rows on k tokens", Stroke::Solid),
    ("rank-r", "rows of rank r", Stroke::Dashed),
];

/// The loss that heads cut to k tokens per row or to rank r add, against k and r. The panels are for the far parts of
/// global heads and for whole rows of global and of local heads.
pub fn loss_against_size(study: &Surgeries) -> Option<Figure> {
    let edit_of = |model: &OperatedModel| SIZED.iter().find(|edit| edit.0 == model.edit.name());
    let shown: Vec<&OperatedModel> = study
        .models
        .iter()
        .filter(|model| model.edit.size().is_some() && edit_of(model).is_some())
        .collect();
    let point = |model: &OperatedModel| Some((model.edit.size()? as f64, model.delta()));
    let points =
        || shown.iter().filter_map(|model| point(model)).filter(|point| point.1 > LEAST_SHOWN);
    points().next()?;
    let x = Axis::log_at("tokens k per row, or rank r", points().map(|point| point.0));
    let deltas = points().map(|point| point.1).chain([HARMLESS_NATS]);
    let y = Axis::log("added loss (nats per token)", deltas);
    let models = groups(shown.iter().copied(), |model| (&model.arm, &model.run));
    let runs: Vec<(&str, &str)> =
        models.iter().map(|model| (model[0].arm.as_str(), model[0].run.as_str())).collect();
    let panel = |title: &str, heads: EditedHeads, edits: &[(&str, &str, Stroke)]| {
        let mut series = Vec::new();
        for &(arm, run) in &runs {
            for (edit, what, stroke) in edits {
                let here = shown
                    .iter()
                    .filter(|m| m.run == run && m.edited_heads == heads && m.edit.name() == *edit);
                let seeds = here.filter_map(|model| point(model)).collect();
                let ink = Ink { stroke: *stroke, marker: marker_of(*stroke), ..ink_of(arm, run) };
                let name = format!("{}, {what}", name_of(arm, run));
                let both =
                    Series::over_seeds(&name, ink, seeds).map(|series| series.above(LEAST_SHOWN));
                if !both[1].points.is_empty() {
                    series.extend(both);
                }
            }
        }
        let panel = Panel::new(title, x.clone(), y.clone(), series).with_guide(HARMLESS_NATS);
        (!panel.series.is_empty()).then_some(panel)
    };
    let mut keys: Vec<Key> = runs
        .iter()
        .map(|(arm, run)| Key::new(&name_of(arm, run), ink_of(arm, run), Shape::Bars))
        .collect();
    for (name, stroke) in [("k tokens per row", Stroke::Solid), ("rank r", Stroke::Dashed)] {
        let ink = Ink { marker: marker_of(stroke), ..Ink::grey(stroke) };
        keys.push(Key::new(name, ink, Shape::LineMarkers));
    }
    keys.push(Key::grey(&format!("harmless: {HARMLESS_NATS} nats"), Stroke::Dashed));
    keys.push(Key::seed());
    let alt = runs.iter().flat_map(|&(arm, run)| {
        let shown = &shown;
        [EditedHeads::Global, EditedHeads::Local].into_iter().flat_map(move |heads| {
            SIZED.iter().filter_map(move |(edit, what, _)| {
                let sixteen = shown.iter().filter(|m| {
                    (m.run == run && m.edited_heads == heads && m.edit.name() == *edit)
                        && m.edit.size() == Some(16)
                });
                let delta = Spread::of(sixteen.map(|model| model.delta()))?;
                Some(format!(
                    "{}, {} heads, {what}: {} nats at 16.",
                    name_of(arm, run),
                    heads.name(),
                    significant(delta.median, 2)
                ))
            })
        })
    });
    let panels = [
        panel("Global heads, beyond the window", EditedHeads::Global, &SIZED[..2]),
        panel("Global heads, whole rows", EditedHeads::Global, &SIZED[2..]),
        panel("Local heads, whole rows", EditedHeads::Local, &SIZED[2..]),
    ];
    Some(Figure {
        name: "loss-against-size".to_owned(),
        caption: format!(
            "Loss added when heads of one kind keep only their k largest tokens per row, or their best approximation of rank r. \
             Markers are medians over seeds, ticks single seeds. Below {HARMLESS_NATS} nats an edit is harmless. \
             Losses below {LEAST_SHOWN} are not drawn."
        ),
        alt: alt.collect::<Vec<_>>().join(" "),
        keys,
        panels: panels.into_iter().flatten().collect(),
    })
}

/// The name of a run's variant with its differences: `LS-attention, window 64`.
fn name_of(arm: &str, run: &str) -> String {
    let (variant, rest) = Variant::of_name(arm, run);
    if rest.is_empty() { variant.name() } else { format!("{}, {rest}", variant.name()) }
}

/// The ink of a run: shades of a variant's colour distinguish its runs.
fn ink_of(arm: &str, run: &str) -> Ink {
    let (variant, rest) = Variant::of_name(arm, run);
    let ink = variant.ink();
    match rest.as_str() {
        "" => ink,
        "window 64" => Ink { colour: pale(ink.colour), ..ink },
        _ => Ink { colour: dark(dark(ink.colour)), ..ink },
    }
}

/// The marker of an edit; it differs by stroke, because lines through two points are not drawn.
fn marker_of(stroke: Stroke) -> Marker {
    if stroke == Stroke::Dashed { Marker::Square } else { Marker::Circle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::Edit;

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
        let of_far = "LS-attention, far part on k tokens per row".to_owned();
        assert_eq!(lines(0), [(of_far, vec![(4.0, 0.04), (16.0, 0.02)])]);
        let of_rank = "LS-attention, rows of rank r".to_owned();
        assert_eq!(
            figure.panels[1].title, "Local heads, whole rows",
            "no loss of global ones is above 0"
        );
        assert_eq!(lines(1), [(of_rank, vec![(16.0, 0.3)])]);
        assert!(
            figure.alt.contains("LS-attention, global heads, rows of rank r: -0.10 nats"),
            "{}",
            figure.alt
        );
        let none = model(Global, 1, Edit::Uniform, 1.0);
        assert!(loss_against_size(&Surgeries { models: vec![none], failed: 0 }).is_none());
    }
}
