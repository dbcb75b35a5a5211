//! All claims, in the order of the report.

use crate::claims::{Claim, Group};
use crate::experiments::fits::claims::{controls, growth, layouts};
use crate::experiments::heads::claims::{heads, published};
use crate::experiments::interventions::claims as surgery;
use crate::experiments::latency::claims as latency;
use crate::experiments::ramp;
use crate::experiments::training::claims::{
    head_size, long_range, position_bias, stabilisers, training,
};

/// Every claim, in the order of the report.
pub const CLAIMS: &[Claim] = &[
    growth::DENSE_LOCAL_GROWS,
    growth::SPARSE_IS_EASY,
    controls::LOCALITY_IS_HARD,
    layouts::SPLIT_HELPS,
    training::LOGITS_IN_TRAINING,
    training::DIVERGES,
    training::NO_WORSE,
    stabilisers::TWO_FIFTHS,
    STEPS_TO_CONVERGE,
    GLOBAL_HEAD,
    long_range::LONG_RANGE_LIMIT,
    WINDOW_RULE,
    heads::RANK_CARRIES_GROWTH,
    heads::NEEDED_TELLS_ACTUAL,
    head_size::MORE_DIMENSIONS_HELP,
    position_bias::SLOPES_FREE_LOGITS,
    ramp::keys::LARGE_IS_KEY_SCORES,
    heads::RANK_MAKES_LOGITS,
    surgery::SMALL_ERROR_IS_HARMLESS,
    surgery::KEY_SCORES_ARE_A_BIAS,
    published::PUBLISHED_NEED,
    published::PUBLISHED_RAMP,
    TWENTIETH,
    latency::LATENCY,
    FLASH_ATTENTION,
];

/// The most important claims: the main ones of the paper, and the main findings against them.
pub const LEADING: &[Claim] = &[
    training::LOGITS_IN_TRAINING,
    position_bias::SLOPES_FREE_LOGITS,
    growth::DENSE_LOCAL_GROWS,
    training::NO_WORSE,
    layouts::SPLIT_HELPS,
    heads::RANK_MAKES_LOGITS,
];

const STEPS_TO_CONVERGE: Claim = Claim {
    id: "StepsToConverge",
    text: "LS-attention converges in fewer steps than multi-head attention",
    group: Group::Training,
    place: "text",
    not_measured: [
        "no run was trained until its loss stopped falling",
        "Not measured as claimed: runs end after a fixed number of steps. lm-best-rate has \
            the validation loss over steps.",
    ],
    rule: [
        "No rule yet: it needs runs that end when their loss stops falling, and fewer steps of ls in \
            all of them.",
        "No rule yet: such runs, and no fewer steps of ls in any of them.",
    ],
    ..Claim::PLAIN
};

const GLOBAL_HEAD: Claim = Claim {
    id: "GlobalHead",
    text: "Without the global head, validation perplexity rises from 36 to 42",
    group: Group::Training,
    place: "ablation",
    paper_says: Some("perplexity 36 → 42"),
    not_measured: [
        "no tuned run without global heads",
        "Not measured as claimed: no committed study compares ls with local-only heads at tuned rates.",
    ],
    rule: [
        "No rule yet: it needs both at tuned rates, on text that needs far context, and the paper's 42/36.",
        "No rule yet: such runs, and a perplexity that does not rise.",
    ],
    ..Claim::PLAIN
};

const TWENTIETH: Claim = Claim {
    id: "Twentieth",
    text: "LS-attention reaches another stabiliser's perplexity in 1/20 of its GPU hours",
    group: Group::Cost,
    place: "abstract, figures",
    paper_says: Some("1/20 of the GPU hours"),
    not_measured: [
        "no trainings on a GPU",
        "Not measured: the paper counts GPU hours, and no committed run was trained on a GPU.",
    ],
    rule: [
        "No rule yet: it needs GPU times at tuned rates, and at most 0.075 of each stabiliser's.",
        "No rule yet: such times, and more than 0.075 of each stabiliser's.",
    ],
    ..Claim::PLAIN
};

const WINDOW_RULE: Claim = Claim {
    id: "WindowRule",
    text: "A local window far shorter than the sequence is enough",
    group: Group::Training,
    place: "text",
    paper_says: Some("window 50 at n = 2,048"),
    not_measured: [
        "no comparison of windows at n = 2,048",
        "Not measured as claimed: no committed study compares windows at n = 2,048.",
    ],
    rule: [
        "No rule yet: it needs several windows at n = 2,048 with every other setting equal.",
        "No rule yet: such runs, in which a wide window has the lower loss.",
    ],
    ..Claim::PLAIN
};

const FLASH_ATTENTION: Claim = Claim {
    id: "FlashAttention",
    text: "LS-attention is faster than FlashAttention-2 on a GPU at equal size",
    group: Group::Cost,
    place: "abstract",
    not_measured: [
        "no GPU and no FlashAttention-2 here",
        "Not measured: all times here are of this project's own CPU kernels (study latency).",
    ],
    rule: [
        "No rule yet: it needs a GPU and FlashAttention-2, and less time of ls at every length.",
        "No rule yet: such times, and no less time of ls at any length.",
    ],
    ..Claim::PLAIN
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Rule;

    #[test]
    fn every_rule_says_what_confirms_and_what_refutes() {
        for &claim in CLAIMS {
            let Rule { confirmed, refuted } = claim.rule();
            assert_ne!(confirmed, refuted, "{claim}");
            for text in [confirmed, refuted] {
                let is_filled = !text.contains(['{', '}']);
                assert!(is_filled, "{claim}: {text}");
                assert!(text.ends_with('.') && !text.contains("  "), "{claim}: {text}");
            }
        }
    }
}
