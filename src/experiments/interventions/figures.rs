//! The figures of a study of interventions.

use crate::experiments::heads::figures::heads::title_of;
use crate::experiments::interventions::tables::{HARMLESS_NATS, OperatedModel, Surgeries};
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};
use crate::table::{distinct, groups};

/// The loss that fits at error ε add, against ε: one panel per run, one line per rank.
pub fn loss_against_epsilon(study: &Surgeries) -> Vec<Figure> {
    let fits: Vec<&OperatedModel> =
        study.models.iter().filter(|model| model.edit.fit().is_some()).collect();
    let point = |model: &OperatedModel| Some((model.edit.fit()?.0, model.delta()));
    let points = || fits.iter().filter_map(|model| point(model));
    let losses = points().map(|(_, delta)| delta).chain([HARMLESS_NATS]);
    let y = Axis::linear("added loss (nats per token)", losses, None);
    let x =
        Axis::log("error ε in the attention of every head (nats)", points().map(|point| point.0));
    let runs = groups(fits.iter().copied(), |model| (&model.of.of, &model.of.run));
    if runs.is_empty() {
        return Vec::new();
    }
    let rank_of = |model: &OperatedModel| model.edit.fit().map_or(0, |(_, rank)| rank);
    let name_of = |rank: usize| match fits.iter().any(|model| model.n <= rank) {
        true => "any rank".to_owned(),
        false => format!("rank {rank}"),
    };
    let panels = runs.iter().map(|here| {
        let mut series = Vec::new();
        for rank in distinct(here.iter().map(|model| rank_of(model))) {
            // A fit that did not reach its error does not belong to this ε.
            let reached = here.iter().filter(|m| rank_of(m) == rank && m.is_reached());
            let seeds = reached.filter_map(|model| point(model)).collect();
            let both = Series::over_seeds(&name_of(rank), Ink::of_rank(rank), seeds);
            series.extend(both);
        }
        let first = here[0];
        let title =
            title_of(&first.of.arm, &first.of.run, first.n, first.of.head_dimension().unwrap_or(0));
        Panel::new(&title, x.clone(), y.clone(), series).with_guide(HARMLESS_NATS)
    });
    let ranks = distinct(fits.iter().map(|model| rank_of(model))).into_iter();
    let key = |rank| Key::new(&name_of(rank), Ink::of_rank(rank), Shape::LineMarkers);
    let mut keys: Vec<Key> = ranks.map(key).collect();
    keys.push(Key::grey(&format!("harmless: {HARMLESS_NATS} nats"), Stroke::Dashed));
    keys.push(Key::seed());
    vec![Figure {
        name: "loss-against-epsilon".to_owned(),
        caption: format!(
            "Loss added to a model when the attention of every head is replaced by its low-rank fit at error ε. Lines are medians \
             over seeds, ticks single seeds. Fits below the dashed level of {HARMLESS_NATS} nats per token are \
             harmless. Only fits that every head reached are shown."
        ),
        keys,
        panels: panels.collect(),
    }]
}

/// The loss that rounding adds, against bits: one panel per run, one line for all matrices and one for W_q and W_k.
pub fn loss_against_bits(study: &Surgeries) -> Vec<Figure> {
    let lines = [("all matrices", "rounded"), ("W_q and W_k alone", "rounded-qk")];
    let rounded =
        study.models.iter().filter(|model| lines.iter().any(|l| l.1 == model.edit.name()));
    let rounded: Vec<&OperatedModel> = rounded.collect();
    let runs = groups(rounded.iter().copied(), |model| (&model.of.of, &model.of.run));
    if runs.is_empty() {
        return Vec::new();
    }
    let point = |model: &OperatedModel| Some((model.edit.size()? as f64, model.delta()));
    let points = || rounded.iter().filter_map(|model| point(model));
    let losses = points().map(|(_, delta)| delta).chain([HARMLESS_NATS]);
    let y = Axis::linear("added loss (nats per token)", losses, None);
    let x = Axis::log_at("bits per weight", points().map(|point| point.0));
    let inks =
        lines.map(|(name, edit)| (name, edit, Ink::numbered(usize::from(edit == "rounded"))));
    let panels = runs.iter().map(|here| {
        let one = |(name, edit, ink): (&str, &str, Ink)| {
            let of_edit = here.iter().filter(|model| model.edit.name() == edit);
            Series::over_seeds(name, ink, of_edit.filter_map(|model| point(model)).collect())
        };
        let series = inks.into_iter().flat_map(one).collect();
        Panel::new(&here[0].of.run, x.clone(), y.clone(), series).with_guide(HARMLESS_NATS)
    });
    let mut keys: Vec<Key> =
        inks.map(|(name, _, ink)| Key::new(name, ink, Shape::LineMarkers)).into();
    keys.push(Key::grey(&format!("harmless: {HARMLESS_NATS} nats"), Stroke::Dashed));
    keys.push(Key::seed());
    vec![Figure {
        name: "loss-against-bits".to_owned(),
        caption: "Loss added to a model when trained matrices are rounded. Lines are medians over seeds, ticks single seeds.".to_owned(),
        keys,
        panels: panels.collect(),
    }]
}
