//! View `keys`: how much of a head's logits one score per key explains, by the size of the logits.

use std::cmp::Reverse;

use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::{from_to, joined};
use crate::claims::{Claim, Group, Origin, Verdict};
use crate::experiments::ramp::figures::variant_of;
use crate::experiments::ramp::tables::{RampHead, Ramps};
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape};
use crate::table::groups::sorted;
use crate::table::{Estimate, RankCorrelation, Spread, Table, distinct, groups};
use crate::targets::HeadKind;

/// The half-range of QKᵀ/√d from which on a head is large.
const LARGE: f64 = 20.0;
/// The share of the logits from which on they are mostly one score per key.
const MOSTLY: f64 = 0.5;
/// The models of a variant that confirming takes.
const MODELS: usize = 3;
/// The most variants whose share the verdict names, those with the most models first.
const SHOWN: usize = 4;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[LARGE_IS_KEY_SCORES];

pub(crate) const LARGE_IS_KEY_SCORES: Claim = Claim {
    id: "LargeIsKeyScores",
    text: "Predicted here: large logits are mostly one score per key, added alike to every query",
    group: Group::TrainedHeads,
    origin: Origin::Here,
    place: "predicted here, one score per key",
    rule: [
        "Heads with a half-range of {0} or more: the R² of one score per key, the median of each model, has a mean over models \
            of at least {1}, interval included, in every variant; {2} models of each.",
        "The interval lies below {1} in a variant.",
    ],
    bounds: &[LARGE, MOSTLY, MODELS as f64],
    lacking: [
        "no head with large logits",
        "Needs heads with a half-range of {0} or more, and share_key.",
    ],
    ..Claim::PLAIN
};

/// Heads of one variant, such as multi-head attention with RoPE.
struct OfVariant<'a> {
    name: String,
    ink: Ink,
    heads: Vec<&'a RampHead>,
}

impl OfVariant<'_> {
    fn all(study: &Ramps) -> Vec<OfVariant<'_>> {
        let variant = |head: &RampHead| {
            let variant = variant_of(head);
            let is_local = matches!(head.found.kind, HeadKind::Local { .. });
            let (name, ink) = (variant.name(), variant.ink());
            match is_local && head.of.model.global_heads.is_some_and(|global| global > 0) {
                true => (format!("{name}, local heads"), ink.of_local_heads()),
                false => (name, ink),
            }
        };
        let ordered = sorted(&study.heads, |head| variant(head).0);
        groups(ordered, |head| variant(head).0)
            .into_iter()
            .map(|heads| {
                let (name, ink) = variant(heads[0]);
                OfVariant { name, ink, heads }
            })
            .collect()
    }

    /// `share_key` of the large heads: the median of each model that has some.
    fn of_large_heads(&self) -> Vec<f64> {
        let large = self.heads.iter().copied().filter(|head| is_large(head));
        let models = groups(sorted(large, |head| head.model()), |head| head.model());
        let median = |heads: &Vec<&RampHead>| {
            Some(Spread::of(heads.iter().filter_map(|head| head.found.share_key))?.median)
        };
        models.iter().filter_map(median).collect()
    }
}

fn is_large(head: &RampHead) -> bool {
    head.found.half_spread >= LARGE
}

/// One row per run and kind of heads, at the last step.
pub(super) fn table(study: &Ramps) -> Table {
    let large = |heads: &[&RampHead]| heads.iter().filter(|head| is_large(head)).count();
    let of_large = |head: &RampHead, value: Option<f64>| value.filter(|_| is_large(head));
    let key = |head: &RampHead| {
        let found = &head.found;
        (head.of.model.of.clone(), head.run().to_owned(), found.kind, found.n, head.step())
    };
    let models = |heads: &[&RampHead]| distinct(heads.iter().map(|head| head.seed())).len();
    let title = "R² of one score per key, at the last step";
    Table::from_groups("keys", title, groups(&study.heads, key))
        .words("run", "run", |head| head.run())
        .words("kind", "kind of heads", |head| head.found.kind.to_string())
        .numbers("n", "n", |head| head.found.n)
        .numbers("d", "d_head", |head| head.found.rank)
        .numbers("step", "step", |head| head.step())
        .per_group("models", "models", models)
        .sizes("heads", "heads")
        .per_group("large", "large heads", large)
        .medians("half_spread", "half-range", |head| Some(head.found.half_spread))
        .medians("share_key", "R² of a score per key", |head| head.found.share_key)
        .medians("share_key_large", "the same, large heads", |head| {
            of_large(head, head.found.share_key)
        })
        .medians("share_position_large", "R² of f(j), large heads", |head| {
            of_large(head, head.found.share_position)
        })
        .medians("share_lag_large", "R² of g(i − j), large heads", |head| {
            of_large(head, head.found.share_lag)
        })
        .medians("stable_rank_large", "stable rank, centred, large heads", |head| {
            of_large(head, Some(head.found.stable_rank_centred))
        })
        .note(format!(
            "R² of logits QKᵀ/√d less the mean of each row. A score per key is free in each passage; f(j) is a score per \
             position, the same in all passages. Large: a half-range of {LARGE} or more. Medians over heads with \
             (least–greatest)."
        ))
        .note_failed(study.failed)
        .build()
}

/// `share_key` of each head against its half-range, a colour per variant.
pub(super) fn figures(study: &Ramps) -> Vec<Figure> {
    let point = |head: &RampHead| {
        let half_range = head.found.half_spread;
        Some((half_range, head.found.share_key?)).filter(|_| half_range > 0.0)
    };
    let variants = OfVariant::all(study);
    let all: Vec<(f64, f64)> = study.heads.iter().filter_map(point).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let x = Axis::log("half-range of QKᵀ/√d", all.iter().map(|point| point.0));
    let y = Axis::linear("R² of one score per key", [1.0].into_iter(), Some(0.0));
    let of_variant = |variant: &OfVariant<'_>| {
        let points = variant.heads.iter().copied().filter_map(point).collect();
        Series::new(&variant.name, variant.ink, Shape::Points, points)
    };
    let mut series: Vec<Series> = variants.iter().map(of_variant).collect();
    series.retain(|series| !series.points.is_empty());
    vec![Figure {
        name: "keys".to_owned(),
        caption: "R² of one score per key, added alike to every query, in the row-centred logits of each head, against their \
                  half-range. Each point is one head. High on the right: large logits that prefer the same keys whatever the \
                  query."
            .to_owned(),
        keys: Key::of_series(&series, Shape::Points),
        panels: vec![Panel::new("", x, y, series)],
    }]
}

/// The verdicts on [`CLAIMS`].
pub(crate) fn verdicts(study: &Ramps) -> Vec<Verdict> {
    vec![verdict(study)]
}

/// The share of large logits that one score per key explains, by variant, over models.
fn verdict(study: &Ramps) -> Verdict {
    let variants = OfVariant::all(study);
    let measured: Vec<(&str, Estimate, usize)> = variants
        .iter()
        .filter_map(|variant| {
            let medians = variant.of_large_heads();
            let models = medians.len();
            Some((variant.name.as_str(), Estimate::mean(medians)?, models))
        })
        .collect();
    if measured.is_empty() {
        return Verdict::lacking(LARGE_IS_KEY_SCORES);
    }
    let fewest = measured.iter().map(|one| one.2).min().unwrap_or(0);
    let ruling = Ruling::both(measured.iter().map(|(_, share, _)| share.at_least(MOSTLY)))
        .undecided_if_holds(fewest < MODELS);
    let mut most_models: Vec<_> = measured.iter().collect();
    most_models.sort_by_key(|(_, _, models)| Reverse(*models));
    let mut shares: Vec<String> = most_models
        .iter()
        .take(SHOWN)
        .map(|(name, share, models)| format!("{name} {} ({models})", share.shown(2)))
        .collect();
    if let Some(others) = most_models.len().checked_sub(SHOWN).filter(|&others| others > 0) {
        shares.push(format!("{others} more in the table"));
    }
    let by_model = groups(sorted(&study.heads, |head| head.model()), |head| head.model());
    let point = |head: &&RampHead| Some([head.found.half_spread, head.found.share_key?]);
    let points: Vec<Vec<[f64; 2]>> =
        by_model.iter().map(|heads| heads.iter().filter_map(point).collect()).collect();
    let rises = RankCorrelation::between(&points, 0, 1).map_or_else(String::new, |rises| {
        format!("Spearman's ρ of R² with the half-range, median over models: {}", rises.shown())
    });
    let shown = from_to(measured.iter().map(|one| one.1.value), 2);
    let headline = format!("one score per key explains {shown} of large logits");
    let sentences = [format!("R² in large heads (models): {}", joined(shares, "; ")), rises];
    let seeds = Seeds::of_settings(measured.iter().map(|one| one.2)).called("model");
    Verdict::new(LARGE_IS_KEY_SCORES, ruling, seeds, headline, sentences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted};
    use crate::experiments::ramp::tables::tests::heads;

    /// Heads of multi-head attention of some seeds, and with RoPE of as many.
    fn study(learned: f64, rope: f64, seeds: u64) -> Ramps {
        let mut study = heads(&[512], seeds);
        let mut others = study.clone();
        for (study, share) in [(&mut study, learned), (&mut others, rope)] {
            for (at, head) in study.heads.iter_mut().enumerate() {
                head.found.half_spread = 30.0;
                head.found.share_key = Some(share + 0.002 * at as f64);
            }
        }
        others.heads.iter_mut().for_each(|head| {
            head.of.positions = Some("rope".to_owned());
            head.of.model.run = "mhsa-rope".to_owned();
        });
        study.heads.append(&mut others.heads);
        study
    }

    #[test]
    fn claim_holds_only_if_it_does_in_every_variant() {
        assert_eq!(verdict(&study(0.9, 0.7, 5)).status, Confirmed);
        assert_eq!(verdict(&study(0.9, 0.3, 5)).status, Refuted);
        assert_eq!(verdict(&study(0.9, 0.7, 2)).status, Qualified, "two models");
    }

    #[test]
    fn small_logits_decide_nothing() {
        let mut small = study(0.9, 0.3, 5);
        small.heads.iter_mut().for_each(|head| head.found.half_spread = 5.0);
        assert_eq!(verdict(&small).status, NotMeasured);
        let mut unmeasured = study(0.9, 0.3, 5);
        unmeasured.heads.iter_mut().for_each(|head| head.found.share_key = None);
        assert_eq!(verdict(&unmeasured).status, NotMeasured);
        assert!(figures(&unmeasured).is_empty());
    }

    #[test]
    fn figure_has_a_series_per_variant() {
        let figure = figures(&study(0.9, 0.3, 5)).remove(0);
        let names: Vec<&str> = figure.panels[0].series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["multi-head", "multi-head, RoPE"]);
        assert!(figure.svg().unwrap().contains("<svg"));
    }
}
