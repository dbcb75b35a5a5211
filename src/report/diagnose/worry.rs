//! The heads of a model that stand out, with a sentence on each. All thresholds are here.

use super::model::{DiagnosedHead, DiagnosedModel};
use crate::experiments::heads::HeadMeasurement;
use crate::experiments::heads::tables::published::LARGE_NATS;
use crate::solver::Outcome;
use crate::table::significant;

/// A factor from this size on is mentioned.
const LARGE_FACTOR: f64 = 1.5;
/// Attention with this share within 16 tokens is mentioned.
const LOCAL: f64 = 0.8;
/// Attention with less entropy, in nats, is mentioned: e^½ = 1.6 tokens.
const PEAKED_NATS: f64 = 0.5;
/// An effective rank below this share of the head dimension is mentioned.
const LITTLE_RANK: f64 = 0.1;
/// A ramp share (R²) from this size on is mentioned.
const RAMP: f64 = 0.5;
/// A change of the attention by rounding of logits to bfloat16 is mentioned from this size on, in nats.
const IMPRECISE_NATS: f64 = 1e-3;
/// A token or sink with this share of the attention is mentioned.
const SUNK: f64 = 0.5;
/// The list has at most this many heads.
const MOST: usize = 16;
/// Number of heads listed if none has large logits.
const LARGEST: usize = 3;

/// The heads with large logits, sorted by the excess of max |logit| over what the head needs. If no logit is large, the
/// heads with the largest logits.
pub(super) fn worries(model: &DiagnosedModel) -> Vec<&DiagnosedHead> {
    let mut heads: Vec<&DiagnosedHead> = model.heads.iter().collect();
    heads.sort_by(|a, b| surplus(&b.found).total_cmp(&surplus(&a.found)));
    let mut told: Vec<&DiagnosedHead> =
        heads.iter().copied().filter(|head| head.found.actual >= LARGE_NATS).take(MOST).collect();
    if told.is_empty() {
        heads.sort_by(|a, b| b.found.actual.total_cmp(&a.found.actual));
        told = heads.into_iter().take(LARGEST).collect();
    }
    told
}

/// A sentence on the number of heads with large logits that are not listed; `None` if all are listed.
pub(super) fn left_out(model: &DiagnosedModel) -> Option<String> {
    let large = model.heads.iter().filter(|head| head.found.actual >= LARGE_NATS).count();
    let more = large.checked_sub(MOST).filter(|more| *more > 0)?;
    Some(format!("{more} more heads have max |logit| ≥ {LARGE_NATS}; see rows.csv."))
}

/// Excess of max |logit| over what the head needs at its rank, or over the floor if it was not fitted.
fn surplus(head: &HeadMeasurement) -> f64 {
    head.actual - head.needed.or(head.floor).unwrap_or(0.0)
}

/// The sentence on a head.
pub(in crate::report) fn sentence(head: &HeadMeasurement) -> String {
    let mut parts = vec![beginning(head)];
    parts.extend(factors(head));
    parts.extend(signs(head));
    parts.extend(attention(head));
    parts.join("; ") + "."
}

/// Compares max |logit| with what the head needs.
fn beginning(head: &HeadMeasurement) -> String {
    let (actual, rank) = (format!("max |logit| {}", number(head.actual)), head.rank);
    // The needed logits refer to those before a softcap.
    let uncapped = if head.softcap.is_some() { ", before the softcap" } else { "" };
    let times = |needed: f64| number(head.actual / needed);
    match (head.needed, head.floor) {
        (Some(0.0), _) => {
            format!(
                "{actual}; its attention needs no logits, as it is uniform within the tolerance"
            )
        }
        (Some(needed), _) if head.actual >= LARGE_FACTOR * needed => format!(
            "{actual}, {} × the {} that its attention needs at rank {rank}{uncapped}",
            times(needed),
            number(needed)
        ),
        (Some(needed), _) => {
            format!("{actual}; its attention needs {} at rank {rank}{uncapped}", number(needed))
        }
        (None, _) if head.outcome == Outcome::Infeasible => {
            format!("{actual}; no logits up to 128 reach the tolerance at rank {rank}")
        }
        (None, Some(floor)) if floor > 0.0 => format!(
            "{actual}, {} × the floor of {}{uncapped} (not fitted)",
            times(floor),
            number(floor)
        ),
        (None, _) => match head.bias_range {
            Some(range) => format!(
                "{actual}, beside a position bias with a range of {}, so it was not fitted",
                number(range)
            ),
            None => format!("{actual} (not fitted)"),
        },
    }
}

/// The factors by which max |logit| exceeds the floor, the largest first; `None` if they are unknown or none is large. The
/// last ones are what the logit is not due to.
fn factors(head: &HeadMeasurement) -> Option<String> {
    let [floor, rank, input, excess, shift] = head.parts()?;
    let mut all = [("rank penalty", rank), ("input", input), ("excess", excess), ("shift", shift)];
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let is_large = all[0].1 >= LARGE_FACTOR;
    let each = all.map(|(name, factor)| match name {
        "input" if !head.is_restricted_by_input() => {
            "input not tested (no more tokens than channels; raise --tokens)".to_owned()
        }
        name => format!("{name} {} ×", number(factor)),
    });
    is_large.then(|| format!("over the floor of {}: {}", number(floor), each.join(", ")))
}

/// Mentions what else is unusual about the logits.
fn signs(head: &HeadMeasurement) -> Vec<String> {
    let mut parts = Vec::new();
    let half_range = 0.5 * head.spread;
    if head.actual >= LARGE_FACTOR * half_range {
        let half_range = number(half_range);
        parts.push(format!("half-range {half_range}"));
    }
    if let Some(share) = head.share_ramp.filter(|&share| share >= RAMP) {
        // Softmax of c·j equals that of −c(i − j): rows differ by a shift.
        let share = percent(share);
        parts.push(format!(
            "a ramp over positions explains {share} of the variance of its logits, and a linear position bias can \
             replace it"
        ));
    }
    if let (Some(largest), Some(capped)) = (head.max_logit, head.max_logit_capped)
        && largest >= LARGE_FACTOR * capped
    {
        parts.push(format!("max logit {} after the softcap", number(capped)));
    }
    if let Some(risk) = head.precision.as_ref().filter(|risk| risk.kl_bf16 >= IMPRECISE_NATS) {
        parts.push(format!(
            "rounding its logits to bfloat16 changes its attention by KL {} nats",
            number(risk.kl_bf16)
        ));
    }
    if head.effective_rank_logits < LITTLE_RANK * head.rank as f64 {
        parts.push(format!(
            "effective rank of its logits {} of {}",
            number(head.effective_rank_logits),
            head.rank
        ));
    }
    parts
}

/// Mentions unusual properties of the attention.
fn attention(head: &HeadMeasurement) -> Vec<String> {
    let mut parts = Vec::new();
    if head.entropy_nats < PEAKED_NATS {
        let tokens = number(head.entropy_nats.exp());
        parts.push(format!("a query attends to {tokens} tokens on average"));
    }
    let share = |share: f64, place: &str| format!("{} of its attention is {place}", percent(share));
    if head.mass_within_16 >= LOCAL && head.n > 2 * 16 {
        parts.push(share(head.mass_within_16, "within 16 tokens"));
    }
    if let Some(first) = head.first_mass.filter(|&first| first >= SUNK) {
        parts.push(share(first, "on the first token"));
    }
    if let Some(sink) = head.sink_mass.filter(|&sink| sink >= SUNK) {
        parts.push(share(sink, "on a learned sink"));
    }
    parts
}

fn number(value: f64) -> String {
    significant(value, 3)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fitted, model, screened};
    use super::*;

    /// Factors floor, inflation, input_factor, excess_factor and shift_factor of a head with max |logit| 148 that needs 4.3.
    const LARGE: [f64; 5] = [4.0, 1.075, 1.2, 20.0, 148.0 / (4.0 * 1.075 * 1.2 * 20.0)];

    /// Checks that the sentence about a head has each of `parts`, in order, and none of `others`.
    #[track_caller]
    fn tells(head: &DiagnosedHead, parts: &[&str], others: &[&str]) {
        let told = sentence(&head.found);
        let places: Option<Vec<usize>> = parts.iter().map(|part| told.find(part)).collect();
        assert!(places.is_some_and(|places| places.is_sorted()), "{told} lacks one of {parts:?}");
        assert!(others.iter().all(|part| !told.contains(part)), "{told} has one of {others:?}");
    }

    #[test]
    fn the_logit_is_compared_with_the_need() {
        let mut head = fitted(7, 3, LARGE);
        tells(&head, &["148, 34.4 × the 4.30", "input 1.20 ×"], &[]);
        // Of 512 tokens with 512 independent inputs, any queries and keys are projections.
        head.found.input_rank = Some(512);
        tells(&head, &["input not tested"], &["1.20"]);
        head.found.needed = Some(0.0);
        tells(&head, &["148", "needs no logits"], &[]);
        let near = fitted(0, 0, [20.0, 1.1, 1.1, 1.1, 1.0]);
        tells(&near, &["26.6", "22.0 at rank 16"], &["×"]);
    }

    #[test]
    fn an_unfitted_head_is_compared_with_the_floor_only() {
        let mut head = screened(7, 3, LARGE);
        let of_fits = ["needs", "at rank", "inputs", "penalty"];
        tells(&head, &["148, 37.0 × the floor of 4.00 (not fitted)"], &of_fits);
        (head.found.floor, head.found.bias_range) = (None, Some(7.5));
        tells(&head, &["position bias", "7.50"], &of_fits);
        head.found.outcome = Outcome::Infeasible;
        tells(&head, &["no logits up to 128 ", " at rank 16"], &[]);
    }

    #[test]
    fn the_factors_follow_the_largest_first_if_one_is_large() {
        let parts = ["excess 8.00 ×", "input 2.00 ×", "rank penalty 1.25 ×", "shift 1.00 ×"];
        tells(&fitted(0, 0, [10.0, 1.25, 2.0, 8.0, 1.0]), &parts, &[]);
        tells(&fitted(0, 0, [20.0, 1.4, 1.4, 1.4, 1.4]), &[], &["over the floor of"]);
        // Softmax does not depend on the shift: the half-range stands beside it.
        tells(&fitted(0, 0, [10.0, 1.0, 1.0, 1.0, 3.0]), &["half-range 10.0"], &[]);
    }

    #[test]
    fn unusual_attention_is_mentioned() {
        let mut head = fitted(0, 0, LARGE);
        (head.found.entropy_nats, head.found.mass_within_16) = (0.2, 0.86);
        head.found.effective_rank_logits = 1.4;
        (head.found.share_ramp, head.found.first_mass) = (Some(0.62), Some(0.51));
        (head.found.sink_mass, head.found.max_logit_capped) = (Some(0.7), Some(30.0));
        let numbers =
            ["1.40 of 16", "1.22 tokens", "86 %", "62 %", "51 %", "70 %", "30.0 after the softcap"];
        for number in numbers {
            tells(&head, &[number], &[]);
        }
        tells(&fitted(0, 0, LARGE), &[], &numbers);
        // On passages that are not much longer than 16 tokens, every head is local.
        head.found.n = 32;
        tells(&head, &[], &["86 %"]);
    }

    #[test]
    fn the_list_is_sorted_by_excess_or_by_size_where_nothing_is_large() {
        let of = |parts: [[f64; 5]; 4]| {
            let heads = parts.into_iter().enumerate().map(|(at, parts)| fitted(0, at, parts));
            let model = model("run", None, heads.collect());
            worries(&model).into_iter().map(|head| head.found.head).collect::<Vec<_>>()
        };
        let needs_all = [60.0, 1.0, 1.0, 1.0, 1.0];
        let small = [1.0, 1.0, 1.0, 2.0, 1.0];
        let order = of([needs_all, small, LARGE, [10.0, 1.0, 1.0, 3.0, 1.0]]);
        assert_eq!(order, [2, 3, 0], "the head of 2 is not listed");
        let order = of([small, [3.0, 1.0, 1.0, 1.0, 1.0], [1.0; 5], small]);
        assert_eq!(order, [1, 0, 3], "the largest {LARGEST}");
    }
}
