//! The figure of a study of concentration: how many dimensions heads take against how many tokens.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Marker, Stroke};
use crate::table::{ConcentratedHead, Concentrations, FAR_MASS, Spread, significant};

/// The heads that are told apart, in the order in which figures show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Global,
    Local,
    Mhsa,
    Other,
}

impl Which {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Mhsa, "heads of mhsa"),
        (Self::Local, "local heads of ls"),
        (Self::Global, "global heads of ls"),
        (Self::Other, "other heads"),
    ];

    fn of(head: &ConcentratedHead) -> Self {
        match (head.arm.as_str(), head.is_global()) {
            ("ls", true) => Self::Global,
            ("ls", false) => Self::Local,
            ("mhsa", _) => Self::Mhsa,
            _ => Self::Other,
        }
    }

    fn ink(self) -> Ink {
        Ink::of_arm(match self {
            Self::Global => "ls",
            Self::Local => "local-only",
            Self::Mhsa => "mhsa",
            Self::Other => return Ink::grey(Stroke::Solid),
        })
    }
}

/// A head's place in a panel: a share of columns, and one of rows.
type Place = fn(&ConcentratedHead) -> Option<(f64, f64)>;

fn rows(head: &ConcentratedHead) -> f64 {
    head.found.rows(head.window) as f64
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

/// The rank that holds 0.9 of a matrix against the tokens that hold 0.9 of its rows, a point a head: of far parts, and of whole rows.
pub fn concentration(study: &Concentrations) -> Figure {
    let uniform = study.uniform();
    let panel = |title: &str, of_columns: &str, place: Place, out_of_order: Option<Place>| {
        let all = || study.heads.iter().chain(&uniform).filter_map(place);
        let more = || study.heads.iter().filter_map(move |head| out_of_order?(head));
        let x = Axis::log(of_columns, all().map(|point| point.0));
        let y =
            Axis::log("rank that holds 0.9 of ‖P‖², of the rows", all().chain(more()).map(|p| p.1));
        let mut series = Vec::new();
        if let Some(place) = out_of_order {
            let points = study.heads.iter().filter_map(place).collect();
            let ink = Ink { marker: Marker::Circle, ..Ink::grey(Stroke::Solid) };
            series.push(Series::new("in random order", ink, Shape::OpenPoints, points));
        }
        for (which, name) in Which::ALL {
            let heads = study.heads.iter().filter(|head| Which::of(head) == which);
            let points: Vec<(f64, f64)> = heads.filter_map(place).collect();
            if !points.is_empty() {
                series.push(Series::new(name, which.ink(), Shape::Points, points));
            }
        }
        let points = uniform.iter().filter_map(place).collect();
        series.push(Series::new("uniform attention", uniform_ink(), Shape::Points, points));
        Panel::new(title, x, y, series)
    };
    let mut keys: Vec<Key> = Which::ALL
        .iter()
        .filter(|(which, _)| study.heads.iter().any(|head| Which::of(head) == *which))
        .map(|(which, name)| Key::new(name, which.ink(), Shape::Points))
        .collect();
    let grey = Ink { marker: Marker::Circle, ..Ink::grey(Stroke::Solid) };
    keys.push(Key::new("far part, each row in random order", grey, Shape::OpenPoints));
    keys.push(Key::new("uniform attention", uniform_ink(), Shape::Points));
    let alt = Which::ALL.iter().filter_map(|(which, name)| {
        let heads = || study.heads.iter().filter(|head| Which::of(head) == *which);
        let [tokens, rank] = [0, 1].map(|at| {
            Spread::of(heads().filter_map(whole).map(|place| [place.0, place.1][at]))
        });
        let far = Spread::of(heads().filter_map(ConcentratedHead::far_tokens));
        let far = far.map_or_else(String::new, |far| {
            format!(" Beyond the window 0.9 takes {} of the columns.", significant(far.median, 2))
        });
        Some(format!(
            "{name}: 0.9 of a row on {} of its columns, 0.9 of the matrix at a rank of {} of its rows, in the median.{far}",
            significant(tokens?.median, 2),
            significant(rank?.median, 2)
        ))
    });
    Figure {
        name: "concentration".to_owned(),
        caption: format!(
            "Sparse is left, low-rank is below: the least rank that holds 0.9 of ‖·‖_F² of a head's attention, as a share of its rows, against the least number \
             of tokens that hold 0.9 of a row, as a share of the columns that it sees, mean over rows; a point a head and group of passages. Left, what lies beyond the \
             window, of heads with {FAR_MASS} or more of their mass there; open, the same with each row's entries in random order. Right, whole rows."
        ),
        alt: alt.collect::<Vec<_>>().join(" "),
        keys,
        panels: vec![
            panel(
                "Beyond the window",
                "tokens that hold 0.9, of the far columns",
                far,
                Some(shuffled),
            ),
            panel("Whole rows", "tokens that hold 0.9, of the columns seen", whole, None),
        ],
    }
}

fn uniform_ink() -> Ink {
    Ink { marker: Marker::Diamond, ..Ink::of_arm("softcap") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::HeadKind;
    use crate::table::concentrated_heads;

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
                ("in random order", 8),
                ("heads of mhsa", 3),
                ("global heads of ls", 5),
                ("uniform attention", 1)
            ]
        );
        assert_eq!(
            series(1),
            [
                ("heads of mhsa", 3),
                ("local heads of ls", 1),
                ("global heads of ls", 5),
                ("uniform attention", 1)
            ]
        );
        let (share, rank) = figure.panels[0].series[2].points[3];
        assert!((share - 0.4).abs() < 1e-12 && (rank - 0.1).abs() < 1e-12, "{share}, {rank}");
        assert!(figure.alt.contains("global heads of ls: 0.9 of a row on 0.39"), "{}", figure.alt);
        assert!(figure.svg().unwrap().contains("<svg"));
    }
}
