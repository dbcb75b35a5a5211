//! The rule of each claim: what confirms it and what refutes it. Every rule also needs
//! [`SEEDS_TO_DECIDE`](super::SEEDS_TO_DECIDE) seeds in every setting.

use super::claims::Claim;
use super::{
    arms, concentration, controls, exponent, growth, heads, latency, lattice, layouts, published,
    ramp, stabilisers, surgery, training, tuning, variants,
};
use crate::table::{HARMLESS_NATS, LARGE_NATS, LOCAL_MASS};

/// The rule of a claim. Intervals are 95 % intervals over seeds where nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Confirmed where this holds.
    pub confirmed: String,
    /// Refuted where this holds.
    pub refuted: String,
}

/// What all rules share, in sentences.
pub const OF_ALL_RULES: &str = "A verdict holds at the scale of its rows. Confirmed and refuted need three seeds or more in \
     every setting. Results in between, or of two seeds, are qualified. One seed in every setting is always \"single seed\". \"Not measured\" \
     means no rows, or rows in which the claim could not have shown itself. Variants that were compared at one shared \
     learning rate are qualified at most.";

/// What a comparison of variants needs besides.
fn tuned(rule: String) -> String {
    format!(
        "{rule} Each variant was tried at {} learning rates or more, its best one not at an end.",
        tuning::RATES
    )
}

impl Claim {
    /// What confirms the claim, and what refutes it.
    pub fn rule(self) -> Rule {
        let (confirmed, refuted) = match self {
            Self::DenseLocalGrows => (
                format!(
                    "The exponent of n/d in the rank penalty has an interval above 0 that reaches past {} for dense local \
                     targets; those of both sparse controls lie below it.",
                    growth::NO_GROWTH
                ),
                format!(
                    "The whole interval lies below {}, and every fit reached its KL.",
                    growth::NO_GROWTH
                ),
            ),
            Self::SparseIsEasy => (
                format!(
                    "For both sparse families the whole interval of the rank penalty is at most {} in every configuration \
                     whose rank is at least the number of columns per row.",
                    growth::EASY
                ),
                format!(
                    "For both families the whole interval lies above {} in some configuration.",
                    growth::EASY
                ),
            ),
            Self::LocalityIsHard => (
                format!(
                    "In every configuration (n, d) where low rank costs anything, a local band needs more than {} times the \
                     logits of as many random columns, by the whole interval.",
                    controls::ALIKE
                ),
                "In no such configuration does it need more.".to_owned(),
            ),
            Self::SplitHelps => (
                format!(
                    "At every seed and logit bound the split heads have a smaller error than global heads of equal \
                     parameters, and the whole interval of the mean ratio lies below 1/{}; some target is not a mixture of a \
                     local and a global part.",
                    layouts::ALIKE
                ),
                format!("At every setting the whole interval lies above 1/{}.", layouts::ALIKE),
            ),
            Self::LogitsInTraining => (
                tuned(format!(
                    "Every run of ls peaks below {} and every run of mhsa at {} or more; at every setting the whole \
                     interval of the ratio lies below 1/{}.",
                    training::LS_AT_MOST,
                    training::MHSA_AT_LEAST,
                    training::LOGITS_ALIKE
                )),
                tuned(format!(
                    "At every setting in which ls or mhsa reaches {}, the whole interval of the ratio lies above 1/{}.",
                    training::LS_AT_MOST,
                    training::LOGITS_ALIKE
                )),
            ),
            Self::Diverges => (
                format!(
                    "Every run of mhsa diverges and no run of ls, at n ≥ {} and {} steps or more.",
                    training::PAPER_CONTEXT,
                    training::PAPER_STEPS
                ),
                "The whole Clopper–Pearson interval of the share of diverged runs lies below one half for mhsa, or above it \
                 for ls."
                    .to_owned(),
            ),
            Self::NoWorse => (
                tuned(format!(
                    "In every pair of runs, and by every whole interval, the loss of ls is at most {} nats above mhsa's, \
                     and multi-head attention with RoPE is not better by more.",
                    training::NO_WORSE_NATS
                )),
                tuned(format!(
                    "At every setting the whole interval lies above {} nats.",
                    training::NO_WORSE_NATS
                )),
            ),
            Self::TwoFifths => (
                tuned(format!(
                    "Against every stabiliser the whole interval of the ratio of perplexities is at most {}.",
                    stabilisers::TWO_FIFTHS
                )),
                tuned(format!(
                    "Against every stabiliser the whole interval lies above {}, and the corpus's entropy allows a lower \
                     ratio.",
                    stabilisers::TWO_FIFTHS
                )),
            ),
            Self::Twentieth => (
                format!(
                    "Not by CPU time, which is what is measured here. It is qualified where the claim could be seen: \
                     evaluations at most 1/20 of a run apart, or a time that misses {} against every stabiliser.",
                    stabilisers::TWENTIETH
                ),
                "Not by CPU time; the paper counts GPU hours.".to_owned(),
            ),
            Self::StepsToConverge => (
                "No rule yet: it needs runs that end when their loss stops falling, and fewer steps of ls in all of them."
                    .to_owned(),
                "No rule yet: such runs, and no fewer steps of ls in any of them.".to_owned(),
            ),
            Self::GlobalHead => (
                tuned(format!(
                    "Without the global head perplexity is {} times or more (the paper's 42/36) in the mean, higher in every \
                     run, and the whole interval lies above {}.",
                    arms::WITHOUT_GLOBAL,
                    arms::PERPLEXITIES_ALIKE
                )),
                tuned(format!(
                    "The whole interval lies below {0}, while some variant with global heads is better than local-only by \
                     more than {0} times: far context helps in this setting.",
                    arms::PERPLEXITIES_ALIKE
                )),
            ),
            Self::LongRangeLimit => (
                tuned(format!(
                    "At the largest share of look-ups ls and local-only are both worse than mhsa in every pair, by more than \
                     {} nats with the whole interval.",
                    training::NO_WORSE_NATS
                )),
                tuned(format!(
                    "No run is worse by more than {} nats, and no interval reaches above that.",
                    training::NO_WORSE_NATS
                )),
            ),
            Self::WindowRule => (
                "No rule yet: it needs several windows at n = 2,048 with every other setting equal.".to_owned(),
                "No rule yet: such runs, in which a wide window has the lower loss.".to_owned(),
            ),
            Self::OtherModalities => (
                tuned(format!(
                    "The whole interval of the loss of ls less mhsa's is at most {} nats, and that of the ratio of peaks \
                     lies below 1/{}.",
                    training::NO_WORSE_NATS,
                    training::LOGITS_ALIKE
                )),
                tuned("One of the two intervals lies wholly above.".to_owned()),
            ),
            Self::RankCarriesGrowth => (
                format!(
                    "The rank penalty is {} or more of the growth of log max |logit| in every run of mhsa whose largest logit \
                     doubles, and by the whole interval of every setting.",
                    heads::CARRIES
                ),
                format!("It is {} or less in every run and by every interval.", heads::NEXT_TO_NOTHING),
            ),
            Self::RankGivenInputs => (
                format!(
                    "In the largest head of every model of mhsa, {} or more of the log input factor goes where the rank of \
                     W_q·W_kᵀ is free, and by every whole interval.",
                    heads::CARRIES
                ),
                format!("{} or less goes in every one, and by every interval.", heads::NEXT_TO_NOTHING),
            ),
            Self::PredictedExponent => (
                format!(
                    "The interval of every variant's exponent lies within the predicted one, or contains the predicted \
                     exponent and is at most {} wide.",
                    exponent::TOO_WIDE
                ),
                "The interval of mhsa lies wholly outside the predicted one.".to_owned(),
            ),
            Self::NeededTellsActual => (
                format!(
                    "Within models Spearman's ρ of needed and actual logits is 0.5 or more, the partial ρ given entropy has \
                     its whole interval above 0, and the variance inflation is below {}.",
                    heads::COLLINEAR
                ),
                format!("The whole interval of the partial ρ is at most {}.", heads::NO_ORDER),
            ),
            Self::PublishedNeed => (
                format!(
                    "In every model the median head above {LARGE_NATS} needs {} or more of its largest logit, with free \
                     queries and keys at its rank.",
                    published::NEEDED
                ),
                "It needs less in every model.".to_owned(),
            ),
            Self::PublishedRamp => (
                format!(
                    "In every causal model a ramp c·j explains {} or more of the row-centred logits of the median head above \
                     {LARGE_NATS}.",
                    published::IS_A_RAMP
                ),
                format!("It explains {} or less in every model.", published::NO_RAMP),
            ),
            Self::MoreRankHelps => (
                tuned(format!(
                    "With twice the rank the peak is at most two thirds in every seed, and the whole interval of the ratio \
                     lies below 1/{}.",
                    training::LOGITS_ALIKE
                )),
                tuned(format!(
                    "The peak is no smaller in every seed, and the whole interval lies above 1/{}.",
                    training::LOGITS_ALIKE
                )),
            ),
            Self::SlopesFreeLogits => (
                tuned(format!(
                    "The whole interval of the ratio of peaks of QKᵀ, with ALiBi over without, lies below {}, and that of \
                     the loss less ls's below {} nats.",
                    variants::OF_PEAK,
                    variants::ABOVE_LS_NATS
                )),
                tuned("The whole interval of one of the two lies above.".to_owned()),
            ),
            Self::RampCostsLength => (
                format!(
                    "Both exponents of the half-range, of n and of ln(1 + 1/τ), have intervals within {} to {}; a line \
                     explains {} or more of the median local head; {} lengths, {} seeds, and steps that do not rise with n.",
                    ramp::EXPONENT[0],
                    ramp::EXPONENT[1],
                    ramp::SHARES[0],
                    ramp::LENGTHS,
                    ramp::SEEDS
                ),
                format!(
                    "The whole interval of an exponent lies outside (that of n only where steps do not rise with n), or the \
                     line explains less than {} at every length.",
                    ramp::SHARES[1]
                ),
            ),
            Self::PositionsMakeLogits => (
                format!(
                    "In the largest local head (mass {LOCAL_MASS} on the last 16 tokens) of every model of mhsa, a line or one \
                     Fourier pair removes {} or more of log(needed/floor), beyond a column of ones.",
                    lattice::MAKES
                ),
                format!(
                    "The best of a line, one pair and four removes {} or less in every one; or with a column per position {} \
                     or more of needed stays.",
                    lattice::NEXT_TO_NOTHING,
                    lattice::STAYS
                ),
            ),
            Self::RankMakesLogits => (
                format!(
                    "In the largest head of every model, free queries and keys of rank d need {} times the floor or more, or \
                     those of the layer input {} times what any rank needs.",
                    lattice::SHORT_FREE,
                    lattice::SHORT_OWN
                ),
                format!("Both are at most {} in every model.", lattice::ENOUGH),
            ),
            Self::SmallErrorIsHarmless => (
                format!(
                    "In every model the interval over passages of the loss that free fits at a KL of {} add lies below \
                     {HARMLESS_NATS} nats per token.",
                    surgery::EPSILON
                ),
                "It lies above in every model.".to_owned(),
            ),
            Self::RampIsASlope => (
                format!(
                    "In every model the added loss is at most {} nats per token by its interval over passages, and max \
                     |QKᵀ| falls to {} times or less.",
                    surgery::SLOPE_LOSES_LITTLE,
                    surgery::FALLS_TO
                ),
                format!("The interval lies above {} nats in every model.", surgery::SLOPE_LOSES_MUCH),
            ),
            Self::GlobalIsSparse => (
                format!(
                    "In the median global head of every model, {} of the columns beyond the window or fewer hold 0.9 of the \
                     mass there.",
                    concentration::TOKENS[0]
                ),
                format!("{} or more hold it in every model.", concentration::TOKENS[1]),
            ),
            Self::GlobalIsLowRank => (
                format!(
                    "In the median global head of every model, 0.9 of ‖·‖_F² beyond the window has a rank of at most d_head, \
                     and exp(entropy) there is at most {} of the columns: uniform attention has rank 2.",
                    concentration::NEAR_UNIFORM
                ),
                format!(
                    "It takes {} or more of the rank of the same entries in random order, in every model.",
                    concentration::OF_SHUFFLED
                ),
            ),
            Self::FewFarTokensDo | Self::LowFarRankDoes => (
                format!(
                    "In every model the interval over passages of the added loss lies below {HARMLESS_NATS} nats per token, \
                     and that of the window alone above: far context is needed."
                ),
                format!("It lies above {HARMLESS_NATS} nats in every model."),
            ),
            Self::Latency => (
                format!(
                    "Not by this project's CPU kernels, which are what is measured here; a length where ls takes at most {} of \
                     mhsa's time is qualified.",
                    1.0 - latency::LESS
                ),
                "Not by CPU times; the paper's are of a GPU.".to_owned(),
            ),
            Self::FlashAttention => (
                "No rule yet: it needs a GPU and FlashAttention-2, and less time of ls at every length.".to_owned(),
                "No rule yet: such times, and no less time of ls at any length.".to_owned(),
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
