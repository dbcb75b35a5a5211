//! The sentences that a fit ends with, made of its rows.

use crate::experiments::fits::FrontierRow;
use crate::solver::{BoundKind, LARGEST_CAP};
use crate::table::significant;

/// A larger logit bound that lowers the KL by less than this share is reported as no gain.
const GAIN: f64 = 0.1;
/// A logit within this share of the floor is reported as free of a rank penalty.
const NO_COST: f64 = 0.01;
/// A KL below this, in nats, is rounding.
const ROUNDING: f64 = 1e-9;
/// A logit within this share of its bound is at the bound.
const AT_CAP: f64 = 1e-6;

/// The sentences on a fit's rows: what its rank costs in logits, or in KL within its logit bounds.
pub fn fit_conclusion(rows: &[FrontierRow]) -> Vec<String> {
    match rows {
        [row] if row.terms.tolerance.is_some() => for_tolerance(row).into_iter().collect(),
        rows => for_bounds(rows),
    }
}

/// Whether a fit's logits reach its bound. Its inflation is then an upper bound: a smaller logit bound may allow the same
/// KL.
pub fn is_at_cap(row: &FrontierRow) -> bool {
    let found = &row.found;
    row.terms.tolerance.is_none()
        && found.cap.zip(found.max_abs_logit()).is_some_and(|(cap, at)| at >= cap * (1.0 - AT_CAP))
}

/// `Rank 8` or `Rank 8 in 2 heads`.
fn heads(row: &FrontierRow) -> String {
    let heads = row.asked.layout.heads().len();
    let several = if heads > 1 { format!(" in {heads} heads") } else { String::new() };
    format!("Rank {}{several}", row.asked.rank)
}

/// The logit that a KL needs.
fn for_tolerance(row: &FrontierRow) -> Option<String> {
    let (tolerance, found) = (row.terms.tolerance?, &row.found);
    let (rank, kl) = (heads(row), format!("KL {} nats", shown(tolerance)));
    let floor = found.floor_max_abs_logit;
    let Some(at) = found.max_abs_logit() else {
        let any = floor.map_or_else(String::new, |floor| {
            format!(" The floor, the least at unlimited rank, is {}.", shown(floor))
        });
        return Some(match found.unreached_max_abs_logit.zip(found.kl_nats) {
            Some((cap, least)) => format!(
                "{rank} did not reach {kl} with max |logit| up to {LARGEST_CAP}. The smallest KL found is {} nats, at max \
                 |logit| {}.{any}",
                shown(least),
                shown(cap)
            ),
            None => format!("{rank} cannot reach {kl}: its heads do not cover the target.{any}"),
        });
    };
    let Some(floor) = floor.filter(|floor| *floor > 0.0) else {
        return Some(format!("{rank} needs no logits for {kl}: uniform attention reaches it."));
    };
    let times = |logit: f64| shown(logit / floor);
    let proven = found.proven.as_ref().filter(|bound| bound.lower_bound_by != BoundKind::Floor);
    Some(match proven.map(|bound| bound.lower_bound_max_abs_logit) {
        _ if at <= floor * (1.0 + NO_COST) => format!(
            "{rank} reaches {kl} with max |logit| {}, the floor: the rank costs nothing.",
            shown(at)
        ),
        Some(least) => format!(
            "{rank} reaches {kl} with max |logit| {}, and no less than {} is possible: {} to {} × the floor of {}, the \
             least at unlimited rank.",
            shown(at),
            shown(least),
            times(least),
            times(at),
            shown(floor)
        ),
        None => format!(
            "{rank} reaches {kl} with max |logit| {}: at most {} × the floor of {}, the least at unlimited rank.",
            shown(at),
            times(at),
            shown(floor)
        ),
    })
}

/// The KL within logit bounds, and the bound from which larger ones gain nothing.
fn for_bounds(rows: &[FrontierRow]) -> Vec<String> {
    let mut reached: Vec<(f64, f64, Option<f64>)> = rows
        .iter()
        .filter_map(|row| Some((row.found.cap?, row.found.kl_nats?, row.found.floor_kl_nats)))
        .collect();
    reached.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(&(least, at_least, _)), Some(&(most, at_most, floor)), Some(row)) =
        (reached.first(), reached.last(), rows.first())
    else {
        return vec!["No fit: the heads do not cover the target.".to_owned()];
    };
    let rank = heads(row);
    let any = floor.map_or_else(String::new, |floor| {
        let floor = if floor < ROUNDING { 0.0 } else { floor };
        format!(", where unlimited rank reaches {} nats", shown(floor))
    });
    if reached.len() == 1 {
        return vec![format!(
            "{rank} reaches KL {} nats with max |logit| ≤ {most}{any}.",
            shown(at_most)
        )];
    }
    let mut sentences = vec![format!(
        "{rank} reaches KL {} nats with max |logit| ≤ {least} and {} nats with max |logit| ≤ {most}{any}.",
        shown(at_least),
        shown(at_most)
    )];
    let enough = reached.iter().find(|(_, kl, _)| *kl <= at_most * (1.0 + GAIN));
    if let Some((enough, ..)) = enough.filter(|(cap, ..)| *cap < most) {
        sentences.push(format!(
            "Raising the logit bound from {enough} to {most} lowers the KL by less than 10 %."
        ));
    }
    sentences
}

fn shown(value: f64) -> String {
    // A KL of rounding below 0 is 0.
    significant(value.max(0.0), 3)
}
