//! All claims, in the order of the report.

use std::sync::LazyLock;

use crate::claims::Claim;
use crate::experiments::fits::claims::{controls, growth, layouts};
use crate::experiments::flatness;
use crate::experiments::heads::claims::{heads, published};
use crate::experiments::interventions::claims as surgery;
use crate::experiments::latency::claims as latency;
use crate::experiments::ramp;
use crate::experiments::training::claims::{
    head_size, long_range, position_bias, single_key, stabilisers, training,
};

/// Every claim, by group, in the order of the report.
pub static CLAIMS: LazyLock<Vec<Claim>> = LazyLock::new(|| {
    let mut all = [
        growth::CLAIMS,
        controls::CLAIMS,
        layouts::CLAIMS,
        training::CLAIMS,
        stabilisers::CLAIMS,
        long_range::CLAIMS,
        head_size::CLAIMS,
        single_key::CLAIMS,
        position_bias::CLAIMS,
        heads::CLAIMS,
        ramp::keys::CLAIMS,
        surgery::CLAIMS,
        published::CLAIMS,
        flatness::CLAIMS,
        latency::CLAIMS,
    ]
    .concat();
    all.sort_by_key(|claim| claim.group);
    all
});

/// The most important claims: the main ones of the paper, and the main findings against them.
pub const LEADING: &[Claim] = &[
    training::LOGITS_IN_TRAINING,
    position_bias::SLOPES_FREE_LOGITS,
    growth::DENSE_LOCAL_GROWS,
    training::NO_WORSE,
    layouts::SPLIT_HELPS,
    heads::RANK_MAKES_LOGITS,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Rule;

    #[test]
    fn every_rule_says_what_confirms_and_what_refutes() {
        for &claim in CLAIMS.iter() {
            let Rule { confirmed, refuted } = claim.rule();
            assert_ne!(confirmed, refuted, "{claim}");
            for text in [confirmed, refuted] {
                // Without a bound that was not filled in, or a line that was broken badly.
                assert!(!text.is_empty() && !text.contains(['{', '}']), "{claim}: {text}");
                assert!(!text.contains("  "), "{claim}: {text}");
            }
        }
    }
}
