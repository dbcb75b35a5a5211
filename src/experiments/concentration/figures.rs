//! The figure of a study of concentration: the rank of attention against the share of tokens that holds it.

use crate::experiments::concentration::tables::{ConcentratedHead, Concentrations, FAR_MASS};
use crate::experiments::training::figures::variant::Variant;
use crate::figure::style::DARK;
use crate::figure::{Axis, Figure, Key, Panel, Series, Shape};
use crate::figure::{Ink, Marker, Stroke};
use crate::table::{Spread, significant};

/// A kind of heads: its name, a test for its heads, and its ink.
struct Kind {
    name: &'static str,
    has: fn(&ConcentratedHead) -> bool,
    ink: fn() -> Ink,
}

/// The kinds of heads, in the order in which figures show them.
const KINDS: [Kind; 4] = [
    Kind {
        name: "multi-head",
        has: |head| head.arm == "mhsa",
        ink: || Variant::plain("mhsa").ink(),
    },
    Kind {
        name: "LS-attention, local heads",
        has: |head| head.arm == "ls" && !head.is_global(),
        ink: || Variant::plain("ls").ink().of_local_heads(),
    },
    Kind {
        name: "LS-attention, global heads",
        has: |head| head.arm == "ls" && head.is_global(),
        ink: || Variant::plain("ls").ink(),
    },
    Kind {
        name: "other heads",
        has: |head| head.arm != "mhsa" && head.arm != "ls",
        ink: || Ink::grey(Stroke::Solid),
    },
];

/// Gives a head's place in a panel: a share of columns and a share of rows.
type Place = fn(&ConcentratedHead) -> Option<(f64, f64)>;

fn rows(head: &ConcentratedHead) -> f64 {
    head.rows() as f64
}

fn far(head: &ConcentratedHead) -> Option<(f64, f64)> {
    Some((head.far_tokens()?, head.far()?.far_rank_90 / rows(head)))
}

fn shuffled(head: &ConcentratedHead) -> Option<(f64, f64)> {
    Some((head.far_tokens()?, head.far()?.shuffled_rank_90 / rows(head)))
}

fn whole(head: &ConcentratedHead) -> Option<(f64, f64)> {
    Some((head.found.tokens_90 / head.found.columns, head.found.rank_90 / rows(head)))
}

/// The rank that holds 0.9 of a matrix against the share of tokens that hold 0.9 of its rows, one point per head. One
/// panel is for far parts, one for whole rows.
pub fn concentration(study: &Concentrations) -> Figure {
    let uniform = study.uniform();
    let places: [Place; 3] = [far, shuffled, whole];
    let all = || {
        let heads = study.heads.iter().chain(&uniform);
        heads.flat_map(|head| places.iter().filter_map(|place| place(head)))
    };
    // All panels share their axes, so that they can be compared.
    let x = Axis::log("share of tokens that hold 90 % of the attention", all().map(|p| p.0));
    let y = Axis::log("rank for 90 % / rows", all().map(|p| p.1));
    let panel = |title: &str, place: Place, out_of_order: Option<Place>| {
        let mut series = Vec::new();
        if let Some(place) = out_of_order {
            let points = study.heads.iter().filter_map(place).collect();
            let ink = Ink { marker: Marker::Circle, ..Ink::grey(Stroke::Solid) };
            series.push(Series::new("shuffled", ink, Shape::OpenPoints, points));
        }
        for Kind { name, has, ink } in &KINDS {
            let heads = study.heads.iter().filter(|head| has(head));
            let points: Vec<(f64, f64)> = heads.filter_map(place).collect();
            if !points.is_empty() {
                series.push(Series::new(name, ink(), Shape::Points, points));
            }
        }
        let points = uniform.iter().filter_map(place).collect();
        series.push(Series::new("uniform attention", uniform_ink(), Shape::Points, points));
        Panel::new(title, x.clone(), y.clone(), series)
    };
    let there = KINDS.iter().filter(|kind| study.heads.iter().any(kind.has));
    let mut keys: Vec<Key> =
        there.map(|kind| Key::new(kind.name, (kind.ink)(), Shape::Points)).collect();
    let grey = Ink { marker: Marker::Circle, ..Ink::grey(Stroke::Solid) };
    keys.push(Key::new("first panel, each row shuffled", grey, Shape::OpenPoints));
    keys.push(Key::new("uniform attention", uniform_ink(), Shape::Points));
    let alt = KINDS.iter().filter_map(|Kind { name, has, .. }| {
        let heads = || study.heads.iter().filter(|head| has(head));
        let [tokens, rank] = [0, 1].map(|at| {
            Spread::of(heads().filter_map(whole).map(|place| [place.0, place.1][at]))
        });
        let far = Spread::of(heads().filter_map(ConcentratedHead::far_tokens));
        let far = far.map_or_else(String::new, |far| {
            format!(" Beyond the window, {} of the columns hold 90 %.", significant(far.median, 2))
        });
        Some(format!(
            "{name}: in the median, 90 % of a row is on {} of its columns, and a rank of {} of the rows holds 90 % of the matrix.{far}",
            significant(tokens?.median, 2),
            significant(rank?.median, 2)
        ))
    });
    Figure {
        name: "concentration".to_owned(),
        caption: format!(
            "Smallest rank that holds 90 % of a head's squared attention, divided by its rows, against the smallest share of tokens \
             that hold 90 % of a row. Each point is one head. Left is sparse, low is low-rank. First panel: attention beyond the \
             window, where its mass is {FAR_MASS} or more."
        ),
        alt: alt.collect::<Vec<_>>().join(" "),
        keys,
        panels: vec![
            panel("Attention beyond the window", far, Some(shuffled)),
            panel("All attention", whole, None),
        ],
    }
}

fn uniform_ink() -> Ink {
    Ink { marker: Marker::Diamond, colour: DARK, stroke: Stroke::Solid }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::concentration::tables::concentration_tests::heads as concentrated_heads;
    use crate::targets::HeadKind;

    #[test]
    fn heads_stand_by_arm_and_by_what_they_see() {
        let mut study = concentrated_heads("ls", 2, 0.4, 25.6);
        study.heads[0].found.kind = HeadKind::Local { window: 16 };
        study.heads[0].found.far = None;
        study.heads.extend(concentrated_heads("mhsa", 1, 0.2, 25.6).heads);
        let figure = concentration(&study);
        let series = |panel: usize| -> Vec<(&str, usize)> {
            let series = figure.panels[panel].series.iter();
            series.map(|series| (series.name.as_str(), series.points.len())).collect()
        };
        assert_eq!(
            series(0),
            [
                ("shuffled", 8),
                ("multi-head", 3),
                ("LS-attention, global heads", 5),
                ("uniform attention", 1)
            ]
        );
        assert_eq!(
            series(1),
            [
                ("multi-head", 3),
                ("LS-attention, local heads", 1),
                ("LS-attention, global heads", 5),
                ("uniform attention", 1)
            ]
        );
        let (share, rank) = figure.panels[0].series[2].points[3];
        assert!((share - 0.4).abs() < 1e-12 && (rank - 0.1).abs() < 1e-12, "{share}, {rank}");
        assert!(
            figure
                .alt
                .contains("LS-attention, global heads: in the median, 90 % of a row is on 0.39"),
            "{}",
            figure.alt
        );
        assert!(figure.svg().unwrap().contains("<svg"));
    }
}
