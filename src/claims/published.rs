//! Verdicts on the heads of published models.

use super::claim::{Claim, Group, Origin, Rule};
use super::verdict::{Verdict, VerdictStatus};
use crate::row::HeadFound;
use crate::table::{LARGE_NATS, PublishedHeads, PublishedModel, Spread, plural, significant};

pub(super) const PUBLISHED_NEED: Claim = Claim {
    id: "PublishedNeed",
    text: "Heads of published models with max |logit| above 20 need such logits at their rank",
    group: Group::PublishedModels,
    origin: Origin::Derived,
    place: "the rank argument, published models",
    rule: || Rule {
        confirmed: format!(
            "In every model the median head above {LARGE_NATS} needs {NEEDED} or more of its \
            largest logit, with free queries and keys at its rank."
        ),
        refuted: "It needs less in every model.".to_owned(),
    },
    ..Claim::PLAIN
};

pub(super) const PUBLISHED_RAMP: Claim = Claim {
    id: "PublishedRamp",
    text: "Logits above 20 in published models are ramps over positions",
    group: Group::PublishedModels,
    origin: Origin::Here,
    place: "found here, published models",
    rule: || Rule {
        confirmed: format!(
            "In every causal model a ramp c·j explains {IS_A_RAMP} or more of the row-centred \
            logits of the median head above {LARGE_NATS}."
        ),
        refuted: format!("It explains {NO_RAMP} or less in every model."),
    },
    ..Claim::PLAIN
};

/// A head that needs this share of its logits or more at its rank has them because it needs them.
const NEEDED: f64 = 0.5;
/// A ramp that explains this share of a head's logits or more is what they are.
const IS_A_RAMP: f64 = 0.5;
/// A share up to here is next to nothing.
const NO_RAMP: f64 = 0.1;

/// Whether heads of large logits need them at their rank: the share needed / actual in the median head above
/// [`LARGE_NATS`](crate::table::LARGE_NATS) of each model.
///
/// *Not measured*: no fitted head of so large logits.
pub(crate) fn needed(study: &PublishedHeads) -> Verdict {
    of_models(
        study,
        PUBLISHED_NEED,
        "needed/actual logits",
        |head| Some(head.needed? / head.actual),
        |medians| match medians {
            _ if medians.iter().all(|&share| share >= NEEDED) => VerdictStatus::Confirmed,
            _ if medians.iter().all(|&share| share < NEEDED) => VerdictStatus::Refuted,
            _ => VerdictStatus::Qualified,
        },
    )
}

/// Whether their logits are a ramp over positions: the share of the variance that c·j explains in the median such head
/// of each model that sees what is before a token alone.
///
/// *Not measured*: no such head.
pub(crate) fn ramp(study: &PublishedHeads) -> Verdict {
    of_models(
        study,
        PUBLISHED_RAMP,
        "ramp explains a share of",
        |head| head.share_ramp,
        |medians| match medians {
            _ if medians.iter().all(|&share| share >= IS_A_RAMP) => VerdictStatus::Confirmed,
            _ if medians.iter().all(|&share| share <= NO_RAMP) => VerdictStatus::Refuted,
            _ => VerdictStatus::Qualified,
        },
    )
}

/// The verdict on the median of `value`, which is `what`, over the large heads of each model.
fn of_models(
    study: &PublishedHeads,
    claim: Claim,
    what: &str,
    value: fn(&HeadFound) -> Option<f64>,
    status: fn(&[f64]) -> VerdictStatus,
) -> Verdict {
    let models = study.models();
    let median = |model: &PublishedModel<'_>| {
        Some(Spread::of(model.large.iter().filter_map(|head| value(head)))?.median)
    };
    let medians: Vec<f64> = models.iter().filter_map(median).collect();
    if medians.is_empty() {
        let lacking = "no fitted heads of that kind";
        return Verdict::lacking(claim, lacking, models.iter().map(counts).collect::<String>());
    }
    let of = |model: &PublishedModel<'_>| {
        let large = || model.large.iter().copied();
        let spread = |value: &dyn Fn(&HeadFound) -> Option<f64>| {
            Spread::of(large().filter_map(value)).map_or_else(|| "–".to_owned(), |s| s.shown(2))
        };
        let median = |value: &dyn Fn(&HeadFound) -> Option<f64>| {
            let spread = Spread::of(large().filter_map(value));
            spread.map_or_else(|| "–".to_owned(), |spread| significant(spread.median, 2))
        };
        let factors: [fn(&HeadFound) -> Option<f64>; 4] =
            [|head| head.inflation, |head| head.tying, |head| head.drift, |head| head.gauge];
        let [rank, input, excess, shift] = factors.map(|value| median(&value));
        format!(
            "{} In those {}: needed/actual {}, rank penalty {rank}, input factor {input}, excess factor {excess}, shift factor \
             {shift}, ramp share {}.",
            counts(model),
            model.large.len(),
            spread(&|head| Some(head.needed? / head.actual)),
            median(&|head| head.share_ramp),
        )
    };
    let measured: Vec<String> = models.iter().map(of).collect();
    let each: Vec<String> = medians.iter().map(|share| significant(*share, 2)).collect();
    let headline = format!(
        "{what} {} in the median large head, {}",
        each.join(", "),
        plural(medians.len(), "model")
    );
    Verdict::new(claim, [headline, measured.join(" ")], status(&medians), medians.len())
}

/// How many heads are large: by max |logit|, by half the range, which is what softmax sees, and by the signed maximum,
/// which most tools log.
fn counts(model: &PublishedModel<'_>) -> String {
    let PublishedModel { run, heads, large, .. } = model;
    let count = |value: fn(&HeadFound) -> Option<f64>| {
        heads.iter().filter(|head| value(head).is_some_and(|v| v >= LARGE_NATS)).count()
    };
    format!(
        "{run}: of {}, {} are above {LARGE_NATS} by max |logit|, {} by half-range, {} by signed maximum.",
        plural(heads.len(), "head"),
        large.len(),
        count(|head| Some(0.5 * head.spread)),
        count(|head| head.max_logit)
    )
}
