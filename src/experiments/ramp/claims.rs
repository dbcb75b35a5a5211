//! The verdict on the ramp law.

use std::collections::{BTreeMap, BTreeSet};

use crate::claims::estimate::Estimate;
use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::{Claim, Group, Origin, Verdict};
use crate::experiments::ramp::tables::{RampHead, Ramps};
use crate::table::{Interval, Spread, plural, significant};

/// The interval for the exponents of n and of ln(1 + 1/τ); both are predicted to be 1.
const EXPONENT: [f64; 2] = [0.75, 1.25];
/// Bounds on the share that a line in j explains in the median local head: the first supports the law, the second
/// contradicts it.
const SHARES: [f64; 2] = [0.8, 0.5];
/// The numbers of lengths and seeds that the rule requires.
const LENGTHS: usize = 3;
const SEEDS: usize = 5;

pub(crate) const RAMP_COSTS_LENGTH: Claim = Claim {
    id: "RampCostsLength",
    text: "Predicted here: local attention made by a ramp over positions costs logits in \
            proportion to n/2 · ln(1 + 1/τ)",
    group: Group::TrainedHeads,
    origin: Origin::Here,
    place: "predicted here, position ramp",
    rule: [
        "Both exponents of the half-range, of n and of ln(1 + 1/τ), have intervals within {0} to {1}; \
            a line explains {2} or more of the median local head; {4} lengths, {5} seeds, and steps \
            that do not rise with n.",
        "The whole interval of an exponent lies outside (that of n only where steps do not rise with \
            n), or the line explains less than {3} at every length.",
    ],
    bounds: &[EXPONENT[0], EXPONENT[1], SHARES[0], SHARES[1], LENGTHS as f64, SEEDS as f64],
    ..Claim::PLAIN
};

/// Tests the ramp law on local heads that only their logits can make local. It regresses log half-range on log(n − 1)
/// and log ln(1 + 1/τ), clustered by model; the law predicts both exponents as 1. It also takes the share of the
/// variance of row-centred logits that a line in j explains.
///
/// If longer contexts were trained for more steps, the exponent of n may be due to steps. Then the regression neither
/// confirms nor refutes.
///
/// *Not measured*: local heads at fewer than three lengths.
pub(crate) fn law(study: &Ramps) -> Verdict {
    let heads = study.bought();
    let mut lengths: BTreeMap<usize, Vec<&RampHead>> = BTreeMap::new();
    for head in &heads {
        lengths.entry(head.found.n).or_default().push(head);
    }
    let seeds_of =
        |heads: &[&RampHead]| heads.iter().map(|head| head.seed()).collect::<BTreeSet<u64>>().len();
    let median = |heads: &[&RampHead]| {
        Some(Spread::of(heads.iter().filter_map(|head| head.found.share_ramp))?.median)
    };
    let (Some(regression), Some(share), true) =
        (study.exponents(), median(&heads), lengths.len() >= LENGTHS)
    else {
        let needs = format!(
            "Needs local heads of mhsa with learned positions at {LENGTHS} lengths or more; there are {} at {}.",
            plural(heads.len(), "such head"),
            plural(lengths.len(), "length"),
        );
        return Verdict::unmeasured(RAMP_COSTS_LENGTH, "too few local heads", needs);
    };
    let is_confounded = with_steps(&heads);
    let exponents = [0, 1].map(|k| regression.coefficients[k]);
    let is_inside = |c: Interval| c.low >= EXPONENT[0] && c.high <= EXPONENT[1];
    let is_outside = |c: Interval| c.high < EXPONENT[0] || c.low > EXPONENT[1];
    let [of_n, of_lag] = exponents.map(|c| Ruling::of_rule(is_inside(c), is_outside(c)));
    let fails_at = |heads: &Vec<&RampHead>| median(heads).is_some_and(|share| share < SHARES[1]);
    let line = Ruling::of_rule(share >= SHARES[0], lengths.values().all(fails_at));
    let ruling = Ruling::both([of_n.undecided_if(is_confounded), of_lag, line])
        .undecided_if_holds(seeds_of(&heads) < SEEDS);
    let [of_n, of_lag] = exponents.map(|c| Estimate::from(c).shown(2));
    let confounded = if is_confounded { ", confounded with steps" } else { "" };
    let sentences = [
        format!(
            "Half-range of {}, {}: exponent {of_n} of n{confounded}; {of_lag} of ln(1 + 1/τ)",
            plural(heads.len(), "local head"),
            plural(regression.clusters, "model")
        ),
        format!("A line explains {} % of the median head's logits", significant(100.0 * share, 2)),
    ];
    let seeds = Seeds::all(lengths.values().map(|heads| seeds_of(heads)).min().unwrap_or(0));
    let headline = format!("exponents {of_n} of n, {of_lag} of ln(1+1/τ) (predicted 1)");
    Verdict::new(RAMP_COSTS_LENGTH, ruling, seeds, headline, sentences)
}

/// Whether each length was trained for its own number of steps, which only rises or only falls with the length.
fn with_steps(heads: &[&RampHead]) -> bool {
    let mut steps: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for head in heads {
        steps.entry(head.found.n).or_default().insert(head.step());
    }
    if steps.len() < 2 || steps.values().any(|of_length| of_length.len() != 1) {
        return false;
    }
    let steps: Vec<usize> = steps.into_values().flatten().collect();
    steps.is_sorted_by(|a, b| a < b) || steps.is_sorted_by(|a, b| a > b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus;
    use crate::experiments::ramp::tables::tests::heads as ramp_heads;

    #[test]
    fn every_word_has_its_rows() {
        let lengths = [256, 512, 1024];
        let status = |lengths: &[usize], seeds, exponent, share| {
            law(&ramp_heads(lengths, seeds, exponent, share)).status
        };
        assert_eq!(status(&lengths, 5, 1.0, 0.9), VerdictStatus::Confirmed);
        assert_eq!(status(&lengths, 4, 1.0, 0.9), VerdictStatus::Qualified, "four seeds");
        assert_eq!(
            status(&lengths, 5, 1.0, 0.7),
            VerdictStatus::Qualified,
            "a line explains too little"
        );
        assert_eq!(
            status(&lengths, 5, 0.74, 0.9),
            VerdictStatus::Qualified,
            "an interval across the end"
        );
        assert_eq!(
            status(&lengths, 5, 0.3, 0.9),
            VerdictStatus::Refuted,
            "logits that hardly grow"
        );
        assert_eq!(
            status(&lengths, 5, 1.6, 0.9),
            VerdictStatus::Refuted,
            "logits that grow too fast"
        );
        assert_eq!(status(&lengths, 5, 1.0, 0.4), VerdictStatus::Refuted, "no line at any length");
        assert_eq!(status(&lengths[..2], 5, 1.0, 0.9), VerdictStatus::NotMeasured, "two lengths");
        let measured = law(&ramp_heads(&lengths, 5, 1.0, 0.9)).measured;
        assert!(measured.contains("90 %") && measured.contains("45 local heads"), "{measured}");
    }

    /// The law holds in n and not in the relative distance.
    #[test]
    fn both_exponents_have_to_be_one() {
        let study = |power: f64| {
            let mut study = ramp_heads(&[256, 512, 1024], 5, 1.0, 0.9);
            for head in &mut study.heads {
                head.found.half_spread *= (1.0 / head.found.mean_lag).ln_1p().powf(power - 1.0);
            }
            study
        };
        assert_eq!(law(&study(1.0)).status, VerdictStatus::Confirmed);
        assert_eq!(law(&study(0.3)).status, VerdictStatus::Refuted);
        assert_eq!(law(&study(1.6)).status, VerdictStatus::Refuted);
        let near_the_end = (65..85).map(|percent| law(&study(0.01 * f64::from(percent))).status);
        assert!(
            near_the_end.into_iter().any(|status| status == VerdictStatus::Qualified),
            "across the end"
        );
    }

    #[test]
    fn an_exponent_of_n_that_may_be_one_of_steps_decides_nothing() {
        let study = |exponent: f64| {
            let mut study = ramp_heads(&[256, 512, 1024], 5, exponent, 0.9);
            study.heads.iter_mut().for_each(|head| head.of.model.step = Some(10 * head.found.n));
            study
        };
        assert_eq!(law(&study(1.0)).status, VerdictStatus::Qualified);
        assert_eq!(law(&study(0.3)).status, VerdictStatus::Qualified);
        let mut equal = study(1.0);
        equal.heads.iter_mut().for_each(|head| head.of.model.step = Some(100));
        assert_eq!(law(&equal).status, VerdictStatus::Confirmed);
    }

    /// A line that fails at only one length does not refute the law.
    #[test]
    fn a_share_speaks_against_it_only_where_it_is_small_at_every_length() {
        let mut study = ramp_heads(&[256, 512, 1024], 5, 1.0, 0.4);
        for head in &mut study.heads {
            if head.found.n == 512 {
                head.found.share_ramp = Some(0.9);
            }
        }
        assert_eq!(law(&study).status, VerdictStatus::Qualified);
    }
}
