//! Verdicts on the heads of models from elsewhere.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::row::HeadFound;
use crate::table::{PublishedHeads, PublishedModel, Spread};

/// A head that needs this share of its logits or more at its rank has them because it needs them.
pub(super) const NEEDED: f64 = 0.5;
/// A ramp that explains this share of a head's logits or more is what they are.
pub(super) const IS_A_RAMP: f64 = 0.5;
/// A share up to here is next to nothing.
pub(super) const NO_RAMP: f64 = 0.1;

/// Whether heads of large logits need them at their rank: the share needed / actual in the median head above
/// [`LARGE_NATS`](crate::table::LARGE_NATS) of each model.
///
/// *Not yet measured*: no fitted head of so large logits.
pub(crate) fn needed(study: &PublishedHeads) -> Verdict {
    of_models(
        study,
        Claim::PublishedNeed,
        |head| Some(head.needed? / head.actual),
        |medians| match medians {
            _ if medians.iter().all(|&share| share >= NEEDED) => Word::Confirmed,
            _ if medians.iter().all(|&share| share < NEEDED) => Word::Refuted,
            _ => Word::Qualified,
        },
    )
}

/// Whether their logits are a ramp over positions: the share of the variance that c·j explains in the median such head
/// of each model that sees what is before a token alone.
///
/// *Not yet measured*: no such head.
pub(crate) fn ramp(study: &PublishedHeads) -> Verdict {
    of_models(
        study,
        Claim::PublishedRamp,
        |head| head.share_ramp,
        |medians| match medians {
            _ if medians.iter().all(|&share| share >= IS_A_RAMP) => Word::Confirmed,
            _ if medians.iter().all(|&share| share <= NO_RAMP) => Word::Refuted,
            _ => Word::Qualified,
        },
    )
}

/// The verdict on the medians over the large heads of each model of what `value` says of one.
fn of_models(
    study: &PublishedHeads,
    claim: Claim,
    value: fn(&HeadFound) -> Option<f64>,
    word: fn(&[f64]) -> Word,
) -> Verdict {
    let models = study.models();
    let told: Vec<String> = models.iter().map(PublishedModel::told).collect();
    let told = format!("{}.", told.join(". "));
    let median = |model: &PublishedModel<'_>| {
        Some(Spread::of(model.large.iter().filter_map(|head| value(head)))?.median)
    };
    let medians: Vec<f64> = models.iter().filter_map(median).collect();
    match medians.is_empty() {
        true => Verdict::new(claim, told, Word::NotYetMeasured, 0),
        false => Verdict::new(claim, told, word(&medians), medians.len()),
    }
}
