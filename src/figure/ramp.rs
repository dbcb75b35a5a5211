//! The figure of a study of ramps: measured heads against the law.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Marker, Stroke};
use super::ticks::length;
use crate::pattern::HeadKind;
use crate::table::{LOCAL_MASS, RampHead, Ramps, Spread, significant};

/// What can make a head local, in the order in which figures show it, and its name.
const WAYS: [(Way, &str); 12] = [
    (Way::Learned, "learned positions"),
    (Way::LearnedSmaller, "the same, smaller heads"),
    (Way::LearnedLarger, "the same, larger heads"),
    (Way::LearnedWidth, "the same, another d_model"),
    (Way::Sinusoidal, "sinusoidal positions"),
    (Way::Nothing, "no positions"),
    (Way::Windowed, "windowed heads of ls"),
    (Way::BesideWindows, "its global heads"),
    (Way::Rotary, "rotary positions"),
    (Way::Alibi, "ALiBi's slopes"),
    (Way::LearnedSlope, "learned slopes"),
    (Way::Other, "other models"),
];

/// What a head can be local by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Learned,
    LearnedSmaller,
    LearnedLarger,
    LearnedWidth,
    Sinusoidal,
    Nothing,
    Windowed,
    BesideWindows,
    Rotary,
    Alibi,
    LearnedSlope,
    Other,
}

impl Way {
    /// `shape` is that of the heads that the law is about.
    fn of(head: &RampHead, shape: Option<(usize, Option<usize>)>) -> Self {
        let windowed = matches!(head.found.kind, HeadKind::Local { .. });
        match (head.slopes.as_deref(), head.positions.as_deref()) {
            (Some("alibi"), _) => Self::Alibi,
            (Some("learned"), _) => Self::LearnedSlope,
            (_, Some("rope")) => Self::Rotary,
            (_, Some("sinusoidal")) => Self::Sinusoidal,
            (_, Some("none")) => Self::Nothing,
            _ if windowed => Self::Windowed,
            (_, Some("learned")) if head.arm == "mhsa" => match shape {
                Some((rank, _)) if head.found.rank < rank => Self::LearnedSmaller,
                Some((rank, _)) if head.found.rank > rank => Self::LearnedLarger,
                Some((_, width)) if head.d_model != width => Self::LearnedWidth,
                _ => Self::Learned,
            },
            (_, Some("learned")) => Self::BesideWindows,
            _ => Self::Other,
        }
    }

    fn ink(self) -> Ink {
        Ink::of_arm(match self {
            Self::Learned => "mhsa",
            Self::Windowed => "ls",
            Self::BesideWindows => "layer-alternating",
            Self::Sinusoidal => "softcap",
            Self::Nothing => return Ink::of_rank(64),
            Self::LearnedSmaller => return Ink::of_rank(4),
            Self::LearnedLarger => return Ink::of_rank(8),
            Self::LearnedWidth => return Ink::of_rank(32),
            Self::Rotary => "qk-norm",
            Self::LearnedSlope => "sigma-reparam",
            Self::Alibi => "local-only",
            Self::Other => return Ink::grey(Stroke::Solid),
        })
    }

    /// Whether the model knows lags without the logits' being a ramp.
    fn is_given_the_lag(self) -> bool {
        matches!(self, Self::Rotary | Self::Alibi | Self::LearnedSlope)
    }
}

/// The half-spread of each head against that of a ramp of its lag, at the last step: a panel of models that know only
/// positions, and one of those that are given the lag.
pub fn law(study: &Ramps) -> Figure {
    let shape = study.shape_of_the_law();
    let way_of = |head: &RampHead| Way::of(head, shape);
    let point = |head: &RampHead| {
        let formula = head.found.formula?;
        (formula > 0.0 && head.found.half_spread > 0.0).then_some((formula, head.found.half_spread))
    };
    let mut lengths: Vec<usize> = study.heads.iter().map(|head| head.found.n).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let shown = || study.heads.iter().filter_map(point);
    let x = Axis::log("a ramp's half-spread, (m − 1)/2 · ln(1 + 1/τ) (nats)", shown().map(|p| p.0));
    let y = Axis::log("half-spread of QKᵀ/√d (nats)", shown().map(|p| p.1));
    let ends = (x.range.0.max(y.range.0), x.range.1.min(y.range.1));
    let panel = |title: &str, is_here: &dyn Fn(Way) -> bool| {
        let mut series = vec![Series::new(
            "the law",
            Ink::grey(Stroke::Dashed),
            Shape::Line,
            vec![(ends.0, ends.0), (ends.1, ends.1)],
        )];
        // Local heads lie over the others.
        for (local, shape) in [(false, Shape::OpenPoints), (true, Shape::Points)] {
            for &(way, name) in WAYS.iter().filter(|(way, _)| is_here(*way)) {
                for (at, &n) in lengths.iter().enumerate() {
                    let alike = study.heads.iter().filter(|head| {
                        way_of(head) == way && head.found.n == n && head.is_local() == local
                    });
                    let points: Vec<(f64, f64)> = alike.filter_map(point).collect();
                    if !points.is_empty() {
                        let ink = Ink { marker: marker(at), ..way.ink() };
                        let locality = if local { "local" } else { "not local" };
                        let name = format!("{name}, {}, {locality}", length(n));
                        series.push(Series::new(&name, ink, shape, points));
                    }
                }
            }
        }
        (series.len() > 1).then(|| Panel::new(title, x.clone(), y.clone(), series))
    };
    let panels = [
        panel("Locality has to be bought", &|way| !way.is_given_the_lag()),
        panel("The lag is given", &|way| way.is_given_the_lag()),
    ];
    let is_there = |way: Way| study.heads.iter().any(|head| way_of(head) == way);
    let mut keys: Vec<Key> = WAYS
        .iter()
        .filter(|(way, _)| is_there(*way))
        .map(|&(way, name)| {
            Key::new(name, Ink { marker: Marker::Circle, ..way.ink() }, Shape::Points)
        })
        .collect();
    let grey = |marker: Marker| Ink { marker, ..Ink::grey(Stroke::Solid) };
    keys.extend(
        lengths
            .iter()
            .enumerate()
            .map(|(at, &n)| Key::new(&length(n), grey(marker(at)), Shape::Points)),
    );
    keys.push(Key::new("not local", grey(Marker::Circle), Shape::OpenPoints));
    keys.push(Key::grey("logits = the ramp's", Stroke::Dashed));
    Figure {
        name: "law".to_owned(),
        caption: format!(
            "How large a head's logits are (half the largest max − min of a row) against what a straight ramp over positions \
             costs to be as local: τ is the head's mean lag, m the length n or the head's window. Filled: local heads, with \
             {LOCAL_MASS} or more of their mass on the last 16 tokens. On the dashed line logits are the ramp's; below it \
             something else makes the head local."
        ),
        alt: alt(study),
        keys,
        panels: panels.into_iter().flatten().collect(),
    }
}

fn marker(at: usize) -> Marker {
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Inverted][at % 5]
}

fn alt(study: &Ramps) -> String {
    let shape = study.shape_of_the_law();
    let of_way = WAYS.iter().filter_map(|&(way, name)| {
        let local =
            || study.heads.iter().filter(|head| head.is_local() && Way::of(head, shape) == way);
        let ratio = Spread::of(local().filter_map(RampHead::ratio))?;
        Some(format!(
            "{name}: {} local heads, half-spread {} times the ramp's in the median.",
            local().count(),
            significant(ratio.median, 2)
        ))
    });
    of_way.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ramp_heads;

    #[test]
    fn heads_stand_by_what_makes_them_local_and_whether_they_are() {
        let mut study = ramp_heads(&[256, 512], 2, 1.0, 0.9);
        study.heads[0].found.mass_within_16 = 0.1;
        study.heads[1].slopes = Some("alibi".to_owned());
        study.heads[2].found.formula = None;
        let figure = law(&study);
        let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["Locality has to be bought", "The lag is given"]);
        let series: Vec<(&str, usize)> = figure
            .panels
            .iter()
            .flat_map(|panel| &panel.series)
            .map(|series| (series.name.as_str(), series.points.len()))
            .collect();
        let expected = [
            ("the law", 2),
            ("learned positions, n = 256, not local", 1),
            ("learned positions, n = 256, local", 3),
            ("learned positions, n = 512, local", 6),
            ("the law", 2),
            ("ALiBi's slopes, n = 256, local", 1),
        ];
        assert_eq!(series, expected);
        assert_eq!(figure.panels[0].series[1].shape, Shape::OpenPoints);
        let [one, other] = [2, 3].map(|at| figure.panels[0].series[at].ink.marker);
        assert_ne!(one, other, "a marker a length");
        assert!(figure.alt.contains("learned positions: 10 local heads"), "{}", figure.alt);
        assert!(figure.svg().unwrap().contains("<svg"));
    }
}
