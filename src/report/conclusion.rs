//! What a fit comes to, in sentences made of its rows.

use crate::fit::{BoundKind, LARGEST_CAP, Outcome};
use crate::row::FrontierRow;
use crate::table::significant;

/// An error within this share of another gains nothing to tell of.
const GAIN: f64 = 0.1;
/// A logit within this share of the floor costs nothing to tell of.
const NO_COST: f64 = 0.01;
/// An error under this, in nats, is what rounding leaves of none.
const ROUNDING: f64 = 1e-9;
/// A logit within this share of its cap is at it.
const AT_CAP: f64 = 1e-6;

/// The sentences on a fit's rows: what its rank costs in logits, or in error within its caps.
pub fn fit_conclusion(rows: &[FrontierRow]) -> Vec<String> {
    match rows {
        [row] if row.terms.tolerance.is_some() => of_tolerance(row).into_iter().collect(),
        rows => of_caps(rows),
    }
}

/// Whether a fit's logits go up to its cap, so that its inflation is the cap's over the floor: a bound on what the error
/// costs, since a smaller cap may reach it too.
pub fn is_at_cap(row: &FrontierRow) -> bool {
    let found = &row.found;
    row.terms.tolerance.is_none()
        && found.cap.zip(found.max_abs_logit()).is_some_and(|(cap, at)| at >= cap * (1.0 - AT_CAP))
}

/// `rank 8` or `rank 8 in 2 heads`.
fn heads(row: &FrontierRow) -> String {
    let heads = row.asked.layout.heads().len();
    let several = if heads > 1 { format!(" in {heads} heads") } else { String::new() };
    format!("rank {}{several}", row.asked.rank)
}

/// What an error needs.
fn of_tolerance(row: &FrontierRow) -> Option<String> {
    let (tolerance, found) = (row.terms.tolerance?, &row.found);
    let (heads, kl) = (heads(row), shown(tolerance));
    let proven = found.proven.as_ref().filter(|bound| bound.lower_bound_by != BoundKind::Floor);
    let bound = proven.map(|bound| (bound.lower_bound_max_abs_logit, bound.lower_bound_by));
    let floor = found.floor_max_abs_logit;
    let any = floor.map_or_else(String::new, |floor| format!(" Any rank needs {}.", shown(floor)));
    let (Some(at), true) = (found.max_abs_logit(), found.outcome != Outcome::Infeasible) else {
        return Some(match found.cap.zip(found.kl_nats()) {
            Some((cap, least)) => format!(
                "No logits up to {LARGEST_CAP} nats were found that bring {heads} to kl {kl}: the least error found is {}, within \
                 {}.{any}",
                shown(least),
                shown(cap)
            ),
            None => format!(
                "{heads} cannot come to kl {kl}: its heads do not see all of the target.{any}"
            ),
        });
    };
    let Some(floor) = floor.filter(|floor| *floor > 0.0) else {
        return Some(format!("For kl {kl} {heads} needs no logits: uniform attention has it."));
    };
    let times = |logit: f64| shown(logit / floor);
    Some(match bound {
        _ if at <= floor * (1.0 + NO_COST) => format!(
            "For kl {kl} {heads} needs logits of {} nats, within a hundredth of what any rank needs.",
            shown(at)
        ),
        Some((least, by)) => format!(
            "For kl {kl} {heads} needs logits of {} (proven, by {by}) to {} nats (found): {} to {} times the floor of {}, \
             which any rank needs.",
            shown(least),
            shown(at),
            times(least),
            times(at),
            shown(floor)
        ),
        None => format!(
            "For kl {kl} {heads} needs logits of {} nats at most (found): {} times the floor of {}, which any rank needs.",
            shown(at),
            times(at),
            shown(floor)
        ),
    })
}

/// What logits within caps come to, and from which cap on more of them gain nothing.
fn of_caps(rows: &[FrontierRow]) -> Vec<String> {
    let mut reached: Vec<(f64, f64, Option<f64>)> = rows
        .iter()
        .filter_map(|row| Some((row.found.cap?, row.found.kl_nats()?, row.found.floor_kl_nats)))
        .collect();
    reached.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(&(least, at_least, _)), Some(&(most, at_most, floor)), Some(row)) =
        (reached.first(), reached.last(), rows.first())
    else {
        return vec!["No factors were found: the heads do not see all of the target.".to_owned()];
    };
    let heads = heads(row);
    let any = floor.map_or_else(String::new, |floor| match floor < ROUNDING {
        true => ", where any rank has none".to_owned(),
        false => format!(", where any rank has {}", shown(floor)),
    });
    if reached.len() == 1 {
        return vec![format!("Within {most} nats {heads} comes to kl {}{any}.", shown(at_most))];
    }
    let mut told = vec![format!(
        "Within {least} nats {heads} comes to kl {}, within {most} to {}{any}.",
        shown(at_least),
        shown(at_most)
    )];
    let enough = reached.iter().find(|(_, kl, _)| *kl <= at_most * (1.0 + GAIN));
    if let Some((enough, ..)) = enough.filter(|(cap, ..)| *cap < most) {
        told.push(format!(
            "From {enough} nats on no cap up to {most} was found to gain a tenth of the error."
        ));
    }
    told
}

fn shown(value: f64) -> String {
    significant(value, 3)
}
