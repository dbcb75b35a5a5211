//! What it takes to confirm a claim and to refute it: the rules of the words, claim by claim. Every one also takes
//! [`SEEDS_TO_DECIDE`](super::SEEDS_TO_DECIDE) seeds, in every setting that it is told of.

use super::claims::Claim;
use super::{
    arms, concentration, controls, exponent, growth, heads, latency, lattice, layouts, published,
    ramp, stabilisers, surgery, training, variants,
};
use crate::table::{HARMLESS_NATS, LARGE_NATS, LOCAL_MASS};

/// The rule of a claim. Intervals are 95 % intervals, over seeds where nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Confirmed where this holds.
    pub confirmed: String,
    /// Refuted where this holds.
    pub refuted: String,
}

/// What every rule has in common, in sentences.
pub const OF_ALL_RULES: &str = "A word is about the rows at their scale. Confirmed and refuted take three seeds or more in every setting; what \
     lies between them, or has two seeds, is qualified; one seed is seen once, whatever it says. Not yet measured is what \
     has no rows, or rows in which the claim could not have shown itself; the sentence says which.";

impl Claim {
    /// What it takes to confirm the claim, and to refute it.
    pub fn rule(self) -> Rule {
        let (confirmed, refuted) = match self {
            Self::DenseLocalGrows => (
                format!(
                    "The interval of the exponent of inflation in n/d lies above 0 and reaches past {} for dense local \
                     targets, and those of the sparse controls lie wholly below it.",
                    growth::NO_GROWTH
                ),
                format!(
                    "All of the interval lies under {} and every fit reached its error: fits that reached it at no cap bias \
                     slopes low, so with them a slope cannot refute.",
                    growth::NO_GROWTH
                ),
            ),
            Self::SparseIsEasy => (
                format!(
                    "Both sparse families are easy: in every cell whose rank is at least the columns that a row is spread \
                     over, the whole interval of inflation lies up to {}.",
                    growth::EASY
                ),
                format!("Both are hard: in some cell the whole interval lies above {}.", growth::EASY),
            ),
            Self::LocalityIsHard => (
                format!(
                    "In every cell (n, d) where low rank costs anything, a local band needs more logits than as many random \
                     columns, by the whole interval of the ratio and more than a factor of {}; an error reached at no cap \
                     counts as more than any.",
                    controls::ALIKE
                ),
                "In every such cell it needs no more.".to_owned(),
            ),
            Self::SplitHelps => (
                format!(
                    "In every seed, at every cap, the split heads have a smaller error than global heads of as many \
                     parameters, and the whole interval of the mean ratio is smaller by more than a factor of {}.",
                    layouts::ALIKE
                ),
                "In every such setting the whole interval is not smaller by as much.".to_owned(),
            ),
            Self::LogitsInTraining => (
                format!(
                    "Every run of ls peaks under {} nats and every one of mhsa at {} or more, and at every setting the \
                     whole interval of the ratio, seed by seed, lies under 1/{}.",
                    training::LS_AT_MOST,
                    training::MHSA_AT_LEAST,
                    training::LOGITS_ALIKE
                ),
                format!(
                    "At every setting in which ls or mhsa comes to {} nats, the whole interval of the ratio lies above 1/{}. \
                     Settings in which both stay under that have no large logits that ls could avoid, and refute nothing.",
                    training::LS_AT_MOST,
                    training::LOGITS_ALIKE
                ),
            ),
            Self::Diverges => (
                format!(
                    "Every run of mhsa diverges and none of ls, at n of {} and {} steps or more.",
                    training::PAPER_CONTEXT,
                    training::PAPER_STEPS
                ),
                "The whole interval (Clopper and Pearson's) of the share of mhsa's runs that diverge lies under a half, or \
                 that of ls's above."
                    .to_owned(),
            ),
            Self::NoWorse => (
                format!(
                    "In every pair of runs of one seed ls is no worse by more than {} nats, and at every setting the \
                     whole interval says so.",
                    training::NO_WORSE_NATS
                ),
                format!(
                    "At every setting the whole interval says that it is worse by more than {} nats.",
                    training::NO_WORSE_NATS
                ),
            ),
            Self::TwoFifths => (
                format!(
                    "Against every stabiliser the whole interval of the ratio of perplexities is at most {}.",
                    stabilisers::TWO_FIFTHS
                ),
                format!(
                    "Against every one the whole interval is above {}. On a corpus of known entropy that is told only where \
                     the entropy leaves room for such a ratio.",
                    stabilisers::TWO_FIFTHS
                ),
            ),
            Self::Twentieth => (
                format!(
                    "Against every stabiliser the whole interval of the ratio of processor times is at most {}.",
                    stabilisers::TWENTIETH
                ),
                format!("Against every one the whole interval is above {}.", stabilisers::TWENTIETH),
            ),
            Self::GlobalHead => (
                format!(
                    "The mean ratio of perplexities is {} (the paper's 42/36) or more, every run without is worse than its \
                     run with a global head, and the whole interval lies above {}.",
                    arms::WITHOUT_GLOBAL,
                    arms::PERPLEXITIES_ALIKE
                ),
                format!("The whole interval lies under {}.", arms::PERPLEXITIES_ALIKE),
            ),
            Self::Latency => (
                format!(
                    "At some length ls's greatest time over the rounds is at most {} of mhsa's least.",
                    1.0 - latency::LESS
                ),
                format!(
                    "At no length does ls's least time come under {} of mhsa's greatest.",
                    latency::ALIKE
                ),
            ),
            Self::LongRangeLimit => (
                format!(
                    "ls and local-only are worse than mhsa in every pair at the largest share of look-ups, each by more than \
                     {} nats with its whole interval.",
                    training::NO_WORSE_NATS
                ),
                format!(
                    "No run is worse by more than {} nats, nor is the whole interval of either.",
                    training::NO_WORSE_NATS
                ),
            ),
            Self::RankCarriesGrowth => (
                format!(
                    "Inflation is {} or more of the growth of the logarithm of the largest logit, in every run of mhsa whose \
                     largest logit at least doubles, and by the whole interval of every setting.",
                    heads::CARRIES
                ),
                format!("It is {} or less in every one, and by every interval.", heads::NEXT_TO_NOTHING),
            ),
            Self::RankGivenInputs => (
                format!(
                    "In the largest head of every model of mhsa {} or more of the logarithm of tying goes where the rank of \
                     W_q·W_kᵀ is free, and by the whole interval of every run.",
                    heads::CARRIES
                ),
                format!("{} or less goes in every one, and by every interval.", heads::NEXT_TO_NOTHING),
            ),
            Self::PredictedExponent => (
                format!(
                    "Every arm's interval of the exponent lies within the predicted one, or holds the predicted exponent and \
                     is no wider than {}.",
                    exponent::TOO_WIDE
                ),
                "That of mhsa lies wholly outside of the predicted one.".to_owned(),
            ),
            Self::NeededTellsActual => (
                format!(
                    "Within models, Spearman's ρ of needed against actual logits is 0.5 or more, the partial one given entropy \
                     has its whole interval above 0, and needed and entropy can be told apart: a variance inflation under {}.",
                    heads::COLLINEAR
                ),
                format!("The partial one's whole interval lies at or under {}.", heads::NO_ORDER),
            ),
            Self::PublishedNeed => (
                format!(
                    "In every model the median head above {LARGE_NATS} nats needs {} or more of its largest logit, queries and \
                     keys free at its rank.",
                    published::NEEDED
                ),
                "It needs less in every model.".to_owned(),
            ),
            Self::PublishedRamp => (
                format!(
                    "In every causal model a ramp c·j explains {} or more of the logits, less their rows' means, of the \
                     median head above {LARGE_NATS} nats.",
                    published::IS_A_RAMP
                ),
                format!("It explains {} or less in every one.", published::NO_RAMP),
            ),
            Self::MoreRankHelps => (
                format!(
                    "The peak with half the heads is at most two thirds of that with all, in every seed, and the whole \
                     interval of the ratio lies under 1/{}.",
                    training::LOGITS_ALIKE
                ),
                format!(
                    "It is as large or larger in every seed, and the whole interval lies above 1/{}.",
                    training::LOGITS_ALIKE
                ),
            ),
            Self::SlopesFreeLogits => (
                format!(
                    "The whole interval of the ratio of the peaks, with ALiBi's slopes over without, lies under {}, and that \
                     of the loss less ls's under {} nats.",
                    variants::OF_PEAK,
                    variants::ABOVE_LS_NATS
                ),
                "The whole interval of the one or of the other lies above.".to_owned(),
            ),
            Self::RampCostsLength => (
                format!(
                    "The interval of the exponent of the half-spread in n − 1 lies within {} to {}, and a line in j explains \
                     {} or more of the median local head's logits; {} lengths and {} seeds.",
                    ramp::EXPONENT[0],
                    ramp::EXPONENT[1],
                    ramp::SHARES[0],
                    ramp::LENGTHS,
                    ramp::SEEDS
                ),
                format!(
                    "The interval lies wholly outside, or the line explains less than {} at every length.",
                    ramp::SHARES[1]
                ),
            ),
            Self::PositionsMakeLogits => (
                format!(
                    "In the largest local head (mass {LOCAL_MASS} on the last 16) of every model of mhsa a line or one Fourier \
                     pair for nothing takes away {} or more of log(needed / floor), beyond what a column of ones takes.",
                    lattice::MAKES
                ),
                format!(
                    "The best of a line, one pair and four takes {} or less in every one; or with a column for every position {} \
                     or more of what is needed stays.",
                    lattice::NEXT_TO_NOTHING,
                    lattice::STAYS
                ),
            ),
            Self::RankMakesLogits => (
                format!(
                    "In the largest head of every model free queries and keys of rank d need {} times the floor or more, or \
                     those of its inputs {} times what any rank needs.",
                    lattice::SHORT_FREE,
                    lattice::SHORT_OWN
                ),
                format!("Both are at most {} in every model.", lattice::ENOUGH),
            ),
            Self::SmallErrorIsHarmless => (
                format!(
                    "In every model the interval over passages of what free fits at ε = {} cost lies under {HARMLESS_NATS} nats \
                     a token.",
                    surgery::EPSILON
                ),
                "It lies above in every one.".to_owned(),
            ),
            Self::RampIsASlope => (
                format!(
                    "In every model the interval over passages of what the slope in the ramp's place costs lies under {} nats \
                     a token, and the largest |logit| falls to {} times or less.",
                    surgery::SLOPE_LOSES_LITTLE,
                    surgery::FALLS_TO
                ),
                format!("The interval lies above {} nats in every one.", surgery::SLOPE_LOSES_MUCH),
            ),
            Self::GlobalIsSparse => (
                format!(
                    "In the median global head of every model 0.9 of what lies beyond the window is on {} of the columns \
                     there or fewer.",
                    concentration::TOKENS[0]
                ),
                format!("It takes {} or more in every one.", concentration::TOKENS[1]),
            ),
            Self::GlobalIsLowRank => (
                "In the median global head of every model 0.9 of ‖·‖_F² of what lies beyond the window has a rank of at most \
                 the head dimension."
                    .to_owned(),
                format!(
                    "It takes {} or more of the rank of the same entries in random order, in every one.",
                    concentration::OF_SHUFFLED
                ),
            ),
            Self::FewFarTokensDo | Self::LowFarRankDoes => (
                format!(
                    "In every model the interval over passages of what the cut costs lies under {HARMLESS_NATS} nats a token, \
                     and that of the last tokens alone above: something far is needed."
                ),
                format!("It lies above {HARMLESS_NATS} nats in every one."),
            ),
        };
        Rule { confirmed, refuted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_says_what_confirms_and_what_refutes() {
        for claim in Claim::ALL {
            let Rule { confirmed, refuted } = claim.rule();
            assert_ne!(confirmed, refuted, "{claim}");
            for text in [confirmed, refuted] {
                assert!(text.ends_with('.') && !text.contains("  "), "{claim}: {text}");
            }
        }
    }
}
