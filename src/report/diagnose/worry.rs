//! The heads most worth worrying about, and what is said of each. Every threshold stands here, and every word rests on
//! the head's row: what was not measured is not said.

use super::model::{DiagnosedHead, DiagnosedModel};
use crate::fit::Outcome;
use crate::row::{HeadFound, HeadOutcome};
use crate::table::{LARGE_NATS, significant};

/// A part of a logit is told of where it multiplies it by so much.
const TOLD_TIMES: f64 = 1.5;
/// Attention of which so much lies within 16 tokens is called local.
const LOCAL: f64 = 0.8;
/// Attention of less entropy, in nats, is nearly that of one token: e^½ = 1.6 of them.
const PEAKED_NATS: f64 = 0.5;
/// Logits of an effective rank of less than this share of the head dimension use little of it.
const LITTLE_RANK: f64 = 0.1;
/// From such a share on (R²) logits are called a ramp.
const RAMP: f64 = 0.5;
/// A token, or a sink, that takes such a share of all attention is told of.
const SUNK: f64 = 0.5;
/// Heads that the list names at most.
const MOST: usize = 16;
/// Heads that it names where none is worth a look: the largest.
const LARGEST: usize = 3;

/// What is said of one head.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Worry {
    /// The layer, from 0.
    pub layer: usize,
    /// The head within it, from 0.
    pub head: usize,
    /// One sentence, without its place.
    pub sentence: String,
}

/// The heads of a model that are worth a look, the one whose largest logit is farthest above what it is known to need
/// first; where none is, those of the largest logits.
pub(super) fn worries(model: &DiagnosedModel, before: Option<&DiagnosedModel>) -> Vec<Worry> {
    let mut heads: Vec<&DiagnosedHead> = model.heads.iter().collect();
    heads.sort_by(|a, b| surplus(&b.found).total_cmp(&surplus(&a.found)));
    let mut told: Vec<&DiagnosedHead> =
        heads.iter().copied().filter(|head| head.found.actual >= LARGE_NATS).take(MOST).collect();
    if told.is_empty() {
        heads.sort_by(|a, b| b.found.actual.total_cmp(&a.found.actual));
        told = heads.into_iter().take(LARGEST).collect();
    }
    let one = |head: &DiagnosedHead| {
        let (layer, at) = (head.layer, head.found.head);
        let earlier =
            before.and_then(|before| Some((before.step?, before.head(layer, at)?.found.actual)));
        Worry { layer, head: at, sentence: sentence(&head.found, earlier) }
    };
    told.into_iter().map(one).collect()
}

/// How far the largest logit lies above what the head is known to need, in nats: at its rank, or, where it was not
/// fitted, at any.
fn surplus(head: &HeadFound) -> f64 {
    head.actual - head.needed.or(head.floor).unwrap_or(0.0)
}

/// What is said of a head, of which `earlier` tells step and largest logit of another one of its run's.
fn sentence(head: &HeadFound, earlier: Option<(usize, f64)>) -> String {
    let mut told = vec![beginning(head)];
    if let Some((step, actual)) = earlier
        && (head.actual >= TOLD_TIMES * actual || actual >= TOLD_TIMES * head.actual)
    {
        told.push(format!("{} at step {step}", nats(actual)));
    }
    told.extend(parts(head));
    told.extend(attention(head));
    told.join("; ") + "."
}

/// The logit beside what is needed.
fn beginning(head: &HeadFound) -> String {
    let (actual, rank) = (nats(head.actual), head.rank);
    // What is needed is told of logits that no cap follows.
    let uncapped = if head.softcap.is_some() { " without a softcap" } else { "" };
    match (head.needed, head.floor) {
        (Some(0.0), _) => {
            format!("{actual} where none would do: within ε its attention is uniform")
        }
        (Some(needed), _) if head.actual >= TOLD_TIMES * needed => {
            format!("{actual} where {} would do at its rank of {rank}{uncapped}", number(needed))
        }
        (Some(needed), _) => {
            let needed = number(needed);
            format!("{actual}, and its attention needs {needed} at its rank of {rank}{uncapped}")
        }
        (None, _) if head.outcome == HeadOutcome::Fitted(Outcome::Infeasible) => {
            format!("{actual}; no logits up to 128 were found that do at its rank of {rank}")
        }
        (None, Some(floor)) => {
            let floor = number(floor);
            format!("{actual} where logits of any rank need {floor}{uncapped} (not fitted)")
        }
        (None, None) => actual,
    }
}

/// What the logit is made of.
fn parts(head: &HeadFound) -> Vec<String> {
    let mut told = Vec::new();
    let half_spread = 0.5 * head.spread;
    if head.actual >= TOLD_TIMES * half_spread {
        let shifts = number(head.actual - half_spread);
        told.push(format!("{shifts} nats of it shift whole rows, which softmax does not see"));
    }
    if let Some(tied) = head.needed_tied
        && head.tying.is_some_and(|tying| tying >= TOLD_TIMES)
    {
        told.push(format!("made of its own inputs it needs {}", number(tied)));
    }
    if let (Some(inflation), Some(floor)) = (head.inflation, head.floor)
        && inflation >= TOLD_TIMES
    {
        let times = number(inflation);
        told.push(format!(
            "its rank costs {times} times the {} that any rank needs",
            number(floor)
        ));
    }
    if let Some(share) = head.share_ramp.filter(|&share| share >= RAMP) {
        // Softmax of c·j is that of −c(i − j): rows differ by a shift.
        let share = percent(share);
        told.push(format!(
            "{share} of how its logits vary is a ramp over positions, which a slope over the lag gives without them"
        ));
    }
    if let (Some(largest), Some(capped)) = (head.max_logit, head.max_logit_capped)
        && largest >= TOLD_TIMES * capped
    {
        told.push(format!("its softcap leaves {} nats", number(capped)));
    }
    if head.effective_rank_logits < LITTLE_RANK * head.rank as f64 {
        told.push(format!(
            "its logits have an effective rank of {} of {}",
            number(head.effective_rank_logits),
            head.rank
        ));
    }
    told
}

/// What it attends to.
fn attention(head: &HeadFound) -> Vec<String> {
    let mut told = Vec::new();
    if head.entropy_nats < PEAKED_NATS {
        let tokens = number(head.entropy_nats.exp());
        told.push(format!("a row attends to {tokens} tokens"));
    }
    if head.mass_within_16 >= LOCAL && head.n > 2 * 16 {
        told.push(format!(
            "{} of its attention lies within 16 tokens",
            percent(head.mass_within_16)
        ));
    }
    if let Some(share) = head.first_mass.filter(|&share| share >= SUNK) {
        told.push(format!("{} of its attention goes to the first token", percent(share)));
    }
    if let Some(share) = head.sink_mass.filter(|&share| share >= SUNK) {
        told.push(format!("a learned sink takes {} of its attention", percent(share)));
    }
    told
}

fn nats(value: f64) -> String {
    format!("{} nats", number(value))
}

fn number(value: f64) -> String {
    significant(value, 3)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{fitted, model, screened};
    use super::*;

    /// floor, inflation, tying, drift and gauge of a head of 148 nats that needs 4.3.
    const LARGE: [f64; 5] = [4.0, 1.075, 1.2, 20.0, 148.0 / (4.0 * 1.075 * 1.2 * 20.0)];

    fn said(head: DiagnosedHead) -> String {
        sentence(&head.found, None)
    }

    #[test]
    fn a_logit_stands_beside_what_is_needed() {
        let large = said(fitted(7, 3, LARGE));
        assert_eq!(large, "148 nats where 4.30 would do at its rank of 16.");
        let near = said(fitted(0, 0, [20.0, 1.1, 1.1, 1.1, 1.0]));
        assert_eq!(near, "26.6 nats, and its attention needs 22.0 at its rank of 16.");
        let mut uniform = fitted(0, 0, LARGE);
        uniform.found.needed = Some(0.0);
        assert!(said(uniform).starts_with("148 nats where none would do: within ε"));
    }

    #[test]
    fn of_a_head_that_was_not_fitted_only_the_floor_is_said() {
        let told = said(screened(7, 3, LARGE));
        let expected = "148 nats where logits of any rank need 4.00 (not fitted)";
        assert!(told.starts_with(expected), "{told}");
        for unknown in ["would do", "at its rank of", "inputs", "times"] {
            assert!(!told.contains(unknown), "{told}");
        }
        let mut lost = screened(7, 3, LARGE);
        lost.found.outcome = HeadOutcome::Fitted(Outcome::Infeasible);
        assert!(said(lost).contains("no logits up to 128 were found that do at its rank of 16"));
    }

    #[test]
    fn each_part_is_told_from_its_threshold_on_and_not_before() {
        const JUST: f64 = TOLD_TIMES * 1.0001;
        const UNDER: f64 = TOLD_TIMES * 0.999;
        let words = ["its rank costs", "made of its own inputs", "shift whole rows"];
        for (part, words) in [1, 2, 4].into_iter().zip(words) {
            for (times, is_told) in [(JUST, true), (UNDER, false)] {
                let mut parts = [20.0, 1.0, 1.0, 1.0, 1.0];
                parts[part] = times;
                let told = said(fitted(0, 0, parts));
                assert_eq!(told.contains(words), is_told, "{told}");
            }
        }
        let shifted = said(fitted(0, 0, [10.0, 1.0, 1.0, 1.0, 3.0]));
        assert!(shifted.contains("20.0 nats of it shift whole rows"), "{shifted}");
        let wide = said(fitted(0, 0, [10.0, 3.0, 2.0, 1.0, 1.0]));
        assert!(wide.contains("made of its own inputs it needs 60.0"), "{wide}");
        assert!(wide.contains("its rank costs 3.00 times the 10.0 that any rank needs"), "{wide}");
    }

    #[test]
    fn what_a_head_attends_to_is_told_where_it_stands_out() {
        let plain = said(fitted(0, 0, LARGE));
        let mut head = fitted(0, 0, LARGE);
        (head.found.entropy_nats, head.found.mass_within_16) = (0.2, 0.86);
        head.found.effective_rank_logits = 1.4;
        (head.found.share_ramp, head.found.first_mass) = (Some(0.62), Some(0.51));
        (head.found.sink_mass, head.found.max_logit_capped) = (Some(0.7), Some(30.0));
        let told = said(head.clone());
        for words in [
            "an effective rank of 1.40 of 16",
            "a row attends to 1.22 tokens",
            "86 % of its attention lies within 16 tokens",
            "62 % of how its logits vary is a ramp over positions",
            "51 % of its attention goes to the first token",
            "a learned sink takes 70 % of its attention",
            "its softcap leaves 30.0 nats",
        ] {
            assert!(told.contains(words) && !plain.contains(words), "{told}");
        }
        // On passages that are hardly longer every head is local.
        head.found.n = 32;
        assert!(!said(head).contains("within 16"));
    }

    #[test]
    fn what_a_head_had_at_another_step_is_told_where_it_differs() {
        let head = fitted(0, 0, LARGE).found;
        assert!(sentence(&head, Some((500, 8.0))).contains("; 8.00 nats at step 500"));
        assert!(!sentence(&head, Some((500, 140.0))).contains("step 500"));
    }

    #[test]
    fn the_list_is_by_what_lies_above_the_need_and_the_largest_where_nothing_is_large() {
        let of = |parts: [[f64; 5]; 4]| {
            let heads = parts.into_iter().enumerate().map(|(at, parts)| fitted(0, at, parts));
            worries(&model("run", None, heads.collect()), None)
        };
        let needs_all = [60.0, 1.0, 1.0, 1.0, 1.0];
        let small = [1.0, 1.0, 1.0, 2.0, 1.0];
        let order: Vec<usize> = of([needs_all, small, LARGE, [10.0, 1.0, 1.0, 3.0, 1.0]])
            .iter()
            .map(|w| w.head)
            .collect();
        assert_eq!(order, [2, 3, 0], "the one of 2 nats is not worth a look");
        let none = of([small, [3.0, 1.0, 1.0, 1.0, 1.0], [4.0; 5].map(|_| 1.0), small]);
        let order: Vec<usize> = none.iter().map(|worry| worry.head).collect();
        assert_eq!(order, [1, 0, 3], "the largest {LARGEST}");
    }
}
