//! Rows that are alike.

use std::cmp::Ordering;

/// The rows in the order of a key, those of equal keys in the order in which they stood; a key that is not there, or
/// no number, comes first.
pub(super) fn sorted<'r, R, K: PartialOrd>(
    rows: impl IntoIterator<Item = &'r R>,
    key: impl Fn(&'r R) -> K,
) -> Vec<&'r R> {
    let mut sorted: Vec<&R> = rows.into_iter().collect();
    sorted.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal));
    sorted
}

/// The rows that are alike in a key, group by group in the order of their first rows.
pub(super) fn groups<'r, R, K: PartialEq>(
    rows: impl IntoIterator<Item = &'r R>,
    key: impl Fn(&'r R) -> K,
) -> Vec<Vec<&'r R>> {
    let mut groups: Vec<(K, Vec<&R>)> = Vec::new();
    for row in rows {
        let own = key(row);
        match groups.iter_mut().find(|(key, _)| *key == own) {
            Some((_, group)) => group.push(row),
            None => groups.push((own, vec![row])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Keeps the rows of each model's last step.
pub(super) fn keep_last_steps<R, M: PartialEq>(
    rows: &mut Vec<R>,
    model: impl Fn(&R) -> M,
    step: impl Fn(&R) -> usize,
) {
    let mut last: Vec<(M, usize)> = Vec::new();
    for row in rows.iter() {
        let own = model(row);
        match last.iter_mut().find(|(other, _)| *other == own) {
            Some((_, last)) => *last = step(row).max(*last),
            None => last.push((own, step(row))),
        }
    }
    rows.retain(|row| last.contains(&(model(row), step(row))));
}
