//! Verdicts on the heads of published models.

use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::joined;
use crate::claims::{Claim, Group, Origin, Verdict};
use crate::experiments::heads::HeadMeasurement;
use crate::experiments::heads::tables::published::{LARGE_NATS, PublishedHeads, PublishedModel};
use crate::table::groups::distinct;
use crate::table::{Spread, plural, significant};

/// A head that needs at least this share of its logits at its rank counts as needing them.
const NEEDED: f64 = 0.5;
/// A head counts as a ramp if a ramp explains at least this share of its logits.
const IS_A_RAMP: f64 = 0.5;
/// A share of at most this is next to nothing.
const NO_RAMP: f64 = 0.1;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[PUBLISHED_NEED, PUBLISHED_RAMP];

pub(crate) const PUBLISHED_NEED: Claim = Claim {
    id: "PublishedNeed",
    text: "Heads of published models with max |logit| above 20 need such logits at their rank",
    group: Group::PublishedModels,
    origin: Origin::Derived,
    place: "the rank argument, published models",
    rule: [
        "In every model the median head above {0} needs {1} or more of its largest logit, with free \
            queries and keys at its rank.",
        "It needs less in every model.",
    ],
    bounds: &[LARGE_NATS, NEEDED],
    ..Claim::PLAIN
};

pub(crate) const PUBLISHED_RAMP: Claim = Claim {
    id: "PublishedRamp",
    text: "Logits above 20 in published models are ramps over positions",
    group: Group::PublishedModels,
    origin: Origin::Here,
    place: "found here, published models",
    rule: [
        "In every causal model a ramp c·j explains {1} or more of the row-centred logits of the \
            median head above {0}.",
        "It explains {2} or less in every model.",
    ],
    bounds: &[LARGE_NATS, IS_A_RAMP, NO_RAMP],
    ..Claim::PLAIN
};

/// The verdicts on [`CLAIMS`].
pub(crate) fn verdicts(study: &PublishedHeads) -> Vec<Verdict> {
    vec![needed(study), ramp(study)]
}

/// Tests whether heads with large logits need them at their rank, by the share needed / actual in the median head above
/// [`LARGE_NATS`](crate::experiments::heads::tables::published::LARGE_NATS) of each model.
fn needed(study: &PublishedHeads) -> Verdict {
    let ruling = |share: f64| Ruling::of_rule(share >= NEEDED, share < NEEDED);
    of_models(study, PUBLISHED_NEED, "needed/actual logits", needed_of_actual, ruling)
}

/// Tests whether their logits are a ramp over positions, by the share of the variance that c·j explains. It takes the
/// median such head of each model with a causal mask.
fn ramp(study: &PublishedHeads) -> Verdict {
    let ruling = |share: f64| Ruling::of_rule(share >= IS_A_RAMP, share <= NO_RAMP);
    of_models(study, PUBLISHED_RAMP, "ramp explains a share of", |head| head.share_ramp, ruling)
}

fn needed_of_actual(head: &HeadMeasurement) -> Option<f64> {
    Some(head.needed? / head.actual)
}

type ValueOfHead = fn(&HeadMeasurement) -> Option<f64>;

/// The verdict on the median of `value`, described by `what`, over the large heads of each model.
///
/// *Not measured*: no head with such large logits was fitted.
fn of_models(
    study: &PublishedHeads,
    claim: Claim,
    what: &str,
    value: ValueOfHead,
    ruling: fn(f64) -> Ruling,
) -> Verdict {
    let models = study.models();
    let median = |model: &PublishedModel<'_>| {
        Some(Spread::of(model.large.iter().filter_map(|head| value(head)))?.median)
    };
    let medians: Vec<(&str, f64)> =
        models.iter().filter_map(|model| Some((model.run, median(model)?))).collect();
    // A model has a median for each ε, and the same heads at each.
    let counted = models.iter().filter(|model| model.epsilon == models[0].epsilon).map(counts);
    if medians.is_empty() {
        let counts = joined(counted, ". ") + ".";
        return Verdict::unmeasured(claim, "no fitted heads of that kind", counts);
    }
    let shares = distinct(medians.iter().map(|(_, share)| *share)).into_iter();
    let shares = joined(shares.map(|share| significant(share, 2)), ", ");
    let headline = format!("{what} {shares} in the median large head");
    let measured = distinct(medians.iter().map(|(run, _)| *run)).len();
    let seeds = Seeds::all(measured).called("model");
    let ruling = Ruling::every(medians.into_iter().map(|(_, median)| ruling(median)));
    Verdict::new(claim, ruling, seeds, headline, counted)
}

/// Counts the large heads by max |logit|, by half-range, which is what softmax receives, and by the signed maximum,
/// which most tools log.
fn counts(model: &PublishedModel<'_>) -> String {
    let PublishedModel { run, heads, large, .. } = model;
    let count = |value: ValueOfHead| {
        heads.iter().filter(|head| value(head).is_some_and(|v| v >= LARGE_NATS)).count()
    };
    format!(
        "{run}: of {}, {} are above {LARGE_NATS} by max |logit|, {} by half-range, {} by signed maximum",
        plural(heads.len(), "head"),
        large.len(),
        count(|head| Some(0.5 * head.spread)),
        count(|head| head.max_logit)
    )
}
