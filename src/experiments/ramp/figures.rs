//! The figure of a study of ramps: measured half-ranges against predicted ones.

use crate::experiments::ramp::tables::{RampHead, Ramps};
use crate::experiments::training::figures::variant::Variant;
use crate::figure::style::{dark, pale};
use crate::figure::ticks::length;
use crate::figure::{Axis, Figure, Key, Panel, Series, Shape};
use crate::figure::{Ink, Marker, Stroke};
use crate::table::{Spread, distinct, significant};
use crate::targets::HeadKind;

/// The ways in which heads can become local, with their names, in the order of the figures.
const WAYS: [(Way, &str); 12] = [
    (Way::Learned, "multi-head"),
    (Way::LearnedSmaller, "multi-head, smaller d_head"),
    (Way::LearnedLarger, "multi-head, larger d_head"),
    (Way::LearnedWidth, "multi-head, larger d_model"),
    (Way::Sinusoidal, "multi-head, sinusoidal positions"),
    (Way::Nothing, "multi-head, no positions"),
    (Way::Windowed, "LS-attention, local heads"),
    (Way::BesideWindows, "LS-attention, global heads"),
    (Way::Rotary, "multi-head, RoPE"),
    (Way::Alibi, "multi-head, ALiBi bias"),
    (Way::LearnedSlope, "multi-head, learned position bias"),
    (Way::Other, "other models"),
];

/// The mechanism by which a head can become local.
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
    /// Classifies a head; `shape` is that of the heads of the ramp law.
    fn from_head(head: &RampHead, shape: Option<(usize, Option<usize>)>) -> Self {
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

    /// The ink of the variant; other head dimensions and widths have shades of its colour.
    fn ink(self) -> Ink {
        let of = |positions, bias| Variant::of("mhsa", positions, bias).ink();
        let learned = Variant::plain("mhsa").ink();
        match self {
            Self::Learned => learned,
            Self::LearnedSmaller => Ink { colour: dark(dark(learned.colour)), ..learned },
            Self::LearnedLarger => Ink { colour: pale(learned.colour), ..learned },
            Self::LearnedWidth => Ink { colour: (166, 118, 90), ..learned },
            Self::Windowed => Variant::plain("ls").ink().of_local_heads(),
            Self::BesideWindows => Variant::plain("ls").ink(),
            Self::Sinusoidal => of("sinusoidal", "none"),
            Self::Nothing => of("none", "none"),
            Self::Rotary => of("rope", "none"),
            Self::LearnedSlope => of("learned", "learned"),
            Self::Alibi => of("learned", "alibi"),
            Self::Other => Ink::grey(Stroke::Solid),
        }
    }

    /// Whether the model gets relative distances from a source other than its position vectors in QKᵀ.
    fn is_given_the_distance(self) -> bool {
        matches!(self, Self::Rotary | Self::Alibi | Self::LearnedSlope)
    }
}

/// The half-range of each head's logits against that of a ramp with the same mean relative distance, at the last step.
/// One panel shows models that have only positions, the other models with RoPE or a position bias.
pub fn ramp(study: &Ramps) -> Figure {
    let shape = study.shape_of_the_law();
    let way_of = |head: &RampHead| Way::from_head(head, shape);
    let point = |head: &RampHead| {
        let formula = head.found.formula?;
        (formula > 0.0 && head.found.half_spread > 0.0).then_some((formula, head.found.half_spread))
    };
    let lengths = distinct(study.heads.iter().map(|head| head.found.n));
    let shown = || study.heads.iter().filter_map(point);
    let both = shown().flat_map(|(predicted, measured)| [predicted, measured]);
    let x = Axis::log("predicted half-range of a linear ramp", both);
    let y = x.named("measured half-range of QKᵀ");
    let panel = |title: &str, is_here: &dyn Fn(Way) -> bool| {
        let mut series = vec![Series::diagonal(EQUAL, &x)];
        // Local heads are drawn over the others.
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
        panel("Positions only", &|way| !way.is_given_the_distance()),
        panel("With RoPE or a position bias", &|way| way.is_given_the_distance()),
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
    if lengths.len() > 1 {
        keys.extend(
            lengths
                .iter()
                .enumerate()
                .map(|(at, &n)| Key::new(&length(n), grey(marker(at)), Shape::Points)),
        );
    }
    keys.push(Key::new("hollow: not a local head", grey(Marker::Circle), Shape::OpenPoints));
    keys.push(Key::grey(EQUAL, Stroke::Dashed));
    Figure {
        name: "ramp".to_owned(),
        caption: format!(
            "Half-range of each head's QKᵀ against (m − 1)/2 · ln(1 + 1/τ), that of a linear ramp with the same mean relative \
             distance τ (m: n or the window). Filled: local heads.{}{}",
            exponent_in_words(study),
            confounding(study)
        ),
        alt: alt(study),
        keys,
        panels: panels.into_iter().flatten().collect(),
    }
}

/// The name of the dashed line.
const EQUAL: &str = "measured = predicted";

/// A sentence for the caption with the exponent of the prediction's second factor, which is predicted to be 1.
fn exponent_in_words(study: &Ramps) -> String {
    let Some(regression) = study.exponents() else { return String::new() };
    regression.coefficients.get(1).map_or_else(String::new, |c| {
        let [value, low, high] =
            [c.value, c.low, c.high].map(|v| significant(v, 2).replace('-', "−"));
        format!(" Not a law: the exponent of ln(1 + 1/τ) is {value} [{low}, {high}], predicted 1.")
    })
}

/// Returns a sentence for the caption if each length was trained for its own number of steps: the two cannot be separated.
fn confounding(study: &Ramps) -> &'static str {
    let heads = study.bought();
    let of = |n: usize| heads.iter().filter(move |head| head.found.n == n).map(|head| head.step);
    let mut lengths: Vec<usize> = heads.iter().map(|head| head.found.n).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let steps: Vec<(Option<usize>, Option<usize>)> =
        lengths.iter().map(|&n| (of(n).min(), of(n).max())).collect();
    match steps.len() > 1 && steps.windows(2).all(|pair| pair[0].1 < pair[1].0) {
        true => " Length and training steps are confounded.",
        false => "",
    }
}

fn marker(at: usize) -> Marker {
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Inverted][at % 5]
}

fn alt(study: &Ramps) -> String {
    let shape = study.shape_of_the_law();
    let of_way = WAYS.iter().filter_map(|&(way, name)| {
        let local = || {
            study.heads.iter().filter(|head| head.is_local() && Way::from_head(head, shape) == way)
        };
        let ratio = Spread::of(local().filter_map(RampHead::ratio))?;
        Some(format!(
            "{name}: {} local heads, half-range {} times the predicted one in the median.",
            local().count(),
            significant(ratio.median, 2)
        ))
    });
    of_way.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::ramp::tables::ramps_tests::heads as ramp_heads;

    #[test]
    fn heads_stand_by_what_makes_them_local_and_whether_they_are() {
        let mut study = ramp_heads(&[256, 512], 2, 1.0, 0.9);
        study.heads[0].found.mass_within_16 = 0.1;
        study.heads[1].slopes = Some("alibi".to_owned());
        study.heads[2].found.formula = None;
        let figure = ramp(&study);
        let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["Positions only", "With RoPE or a position bias"]);
        let series: Vec<(&str, usize)> = figure
            .panels
            .iter()
            .flat_map(|panel| &panel.series)
            .map(|series| (series.name.as_str(), series.points.len()))
            .collect();
        let expected = [
            (EQUAL, 2),
            ("multi-head, n = 256, not local", 1),
            ("multi-head, n = 256, local", 3),
            ("multi-head, n = 512, local", 6),
            (EQUAL, 2),
            ("multi-head, ALiBi bias, n = 256, local", 1),
        ];
        assert_eq!(series, expected);
        assert_eq!(figure.panels[0].series[1].shape, Shape::OpenPoints);
        let [one, other] = [2, 3].map(|at| figure.panels[0].series[at].ink.marker);
        assert_ne!(one, other, "a marker a length");
        assert!(figure.alt.contains("multi-head: 10 local heads"), "{}", figure.alt);
        assert!(figure.svg().unwrap().contains("<svg"));
    }
}
