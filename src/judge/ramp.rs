//! The verdict on the law of the ramp.

use std::collections::BTreeSet;

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::table::{LOCAL_MASS, RampHead, Ramps, Spread, plural, significant};

/// Where the exponent of n is to lie, predicted 1.
pub(super) const EXPONENT: [f64; 2] = [0.75, 1.25];
/// The share of a line in j that bears the claim out, in the median local head, and the one that speaks against it.
pub(super) const SHARES: [f64; 2] = [0.8, 0.5];
/// Lengths and seeds that it takes.
pub(super) const LENGTHS: usize = 3;
pub(super) const SEEDS: usize = 5;

/// The law of the ramp over local heads that nothing but their logits can make local: log half-spread on log(n − 1) at equal
/// ln(1 + 1/τ), clustered by model, and the share of the variance of row-centred logits that a line in j explains.
///
/// *Not yet measured*: local heads at fewer than three lengths.
pub(crate) fn law(study: &Ramps) -> Verdict {
    let heads = study.bought();
    let lengths: BTreeSet<usize> = heads.iter().map(|head| head.found.n).collect();
    let seeds: BTreeSet<u64> = heads.iter().map(|head| head.seed).collect();
    let at_length = |n: usize| heads.iter().copied().filter(move |head| head.found.n == n);
    let seeds_at = |n: usize| at_length(n).map(|head| head.seed).collect::<BTreeSet<u64>>().len();
    let fewest = lengths.iter().map(|&n| seeds_at(n)).min().unwrap_or(0);
    let median = |of: &mut dyn Iterator<Item = &RampHead>| {
        Spread::of(of.filter_map(|head| head.found.share_ramp)).map(|share| share.median)
    };
    let share = median(&mut heads.iter().copied());
    let (Some(regression), Some(share), true) =
        (study.exponents(), share, lengths.len() >= LENGTHS)
    else {
        let why = format!(
            "Needs local heads of mhsa with learned positions at {LENGTHS} lengths or more; there are {} at {}.",
            plural(heads.len(), "such head"),
            plural(lengths.len(), "length"),
        );
        return Verdict::new(Claim::RampCostsLength, why, Word::NotYetMeasured, 0);
    };
    let exponent = regression.coefficients[0];
    let under = |n: &usize| median(&mut at_length(*n)).is_some_and(|share| share < SHARES[1]);
    let outside = exponent.high < EXPONENT[0] || exponent.low > EXPONENT[1];
    let word = if outside || lengths.iter().all(under) {
        Word::Refuted
    } else if exponent.low >= EXPONENT[0]
        && exponent.high <= EXPONENT[1]
        && share >= SHARES[0]
        && seeds.len() >= SEEDS
    {
        Word::Confirmed
    } else {
        Word::Qualified
    };
    let shown = |value: f64| significant(value, 2);
    let each = lengths.iter().filter_map(|&n| {
        let ratio = Spread::of(at_length(n).filter_map(RampHead::ratio))?;
        let spread = Spread::of(at_length(n).map(|head| head.found.half_spread))?;
        let formula = Spread::of(at_length(n).filter_map(|head| head.found.formula))?;
        Some(format!(
            "n = {n}: {} of half-spread {} nats, formula {}, {} times",
            plural(at_length(n).count(), "head"),
            spread.shown(3),
            formula.shown(3),
            ratio.shown(2)
        ))
    });
    let other_shapes = of_other_shapes(study, heads[0].shape());
    let measured = format!(
        "Heads of mhsa with learned positions that keep {LOCAL_MASS} of their mass on the last 16 tokens (median, least–greatest): {}. \
         Exponent of n − 1 in the half-spread at equal ln(1 + 1/τ): {} [{}, {}], 95 % by clusters of {}; predicted 1. A line in j \
         explains {} % of row-centred logits in the median head.{other_shapes}",
        each.collect::<Vec<_>>().join("; "),
        shown(exponent.value),
        shown(exponent.low),
        shown(exponent.high),
        plural(regression.clusters, "model"),
        significant(100.0 * share, 2),
    );
    Verdict::new(Claim::RampCostsLength, measured, word, fewest)
}

/// What heads of other dimensions, or of streams of another width, have of the formula.
fn of_other_shapes(study: &Ramps, shape: (usize, Option<usize>)) -> String {
    let shapes: BTreeSet<(usize, Option<usize>)> =
        study.all_bought().map(RampHead::shape).filter(|other| *other != shape).collect();
    let told = shapes.iter().filter_map(|other| {
        let ratios =
            study.all_bought().filter(|head| head.shape() == *other).filter_map(RampHead::ratio);
        let ratios: Vec<f64> = ratios.collect();
        let of = match (other.0 == shape.0, other.1) {
            (true, Some(width)) => format!("d_model {width}"),
            _ => format!("d {}", other.0),
        };
        let times = Spread::of(ratios.iter().copied())?.shown(2);
        Some(format!("{of}: {times} times, {}", plural(ratios.len(), "head")))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { String::new() } else { format!(" Of other shapes, {}.", told.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ramp_heads;

    #[test]
    fn every_word_has_its_rows() {
        let lengths = [256, 512, 1024];
        let word = |lengths: &[usize], seeds, exponent, share| {
            law(&ramp_heads(lengths, seeds, exponent, share)).word
        };
        assert_eq!(word(&lengths, 5, 1.0, 0.9), Word::Confirmed);
        assert_eq!(word(&lengths, 4, 1.0, 0.9), Word::Qualified, "four seeds");
        assert_eq!(word(&lengths, 5, 1.0, 0.7), Word::Qualified, "a line explains too little");
        assert_eq!(word(&lengths, 5, 0.74, 0.9), Word::Qualified, "an interval across the end");
        assert_eq!(word(&lengths, 5, 0.3, 0.9), Word::Refuted, "logits that hardly grow");
        assert_eq!(word(&lengths, 5, 1.6, 0.9), Word::Refuted, "logits that grow too fast");
        assert_eq!(word(&lengths, 5, 1.0, 0.4), Word::Refuted, "no line at any length");
        assert_eq!(word(&lengths[..2], 5, 1.0, 0.9), Word::NotYetMeasured, "two lengths");
        let measured = law(&ramp_heads(&lengths, 5, 1.0, 0.9)).measured;
        assert!(measured.contains("predicted 1. A line in j explains 90 %"), "{measured}");
        assert!(measured.contains("n = 1024: 15 heads"), "{measured}");
        let mut with_small = ramp_heads(&lengths, 5, 1.0, 0.9);
        let mut small = ramp_heads(&[512], 1, 1.0, 0.9);
        small.heads.iter_mut().for_each(|head| {
            head.found.rank = 8;
            head.found.half_spread *= 3.0;
        });
        with_small.heads.extend(small.heads);
        let said = law(&with_small).measured;
        let of_small = said.strip_prefix(measured.as_str()).unwrap();
        assert!(of_small.starts_with(" Of other shapes, d 8: 3.9"), "{said}");
    }

    /// A line that fails at one length alone does not refute.
    #[test]
    fn a_share_speaks_against_it_only_where_it_is_small_at_every_length() {
        let mut study = ramp_heads(&[256, 512, 1024], 5, 1.0, 0.4);
        for head in &mut study.heads {
            if head.found.n == 512 {
                head.found.share_ramp = Some(0.9);
            }
        }
        assert_eq!(law(&study).word, Word::Qualified);
    }
}
