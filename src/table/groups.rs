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
pub(crate) fn groups<'r, R, K: PartialEq>(
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

/// Of the rows that are alike in a key the one of the greatest value, of equal ones the first.
pub(super) fn greatest_of_each<'r, R, K: PartialEq>(
    rows: impl IntoIterator<Item = &'r R>,
    key: impl Fn(&'r R) -> K,
    value: impl Fn(&R) -> f64,
) -> Vec<&'r R> {
    let greater = |a, b| if value(b) > value(a) { b } else { a };
    groups(rows, key).into_iter().filter_map(|alike| alike.into_iter().reduce(greater)).collect()
}

/// Each value once, from small to large.
pub(crate) fn distinct<T: PartialOrd>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    values.dedup();
    values
}

/// The errors ε of rows of trained heads, each once, from large to small.
pub(super) fn epsilons(all: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all = distinct(all);
    all.reverse();
    all
}

/// The ε that figures and verdicts show: 0.01 where it is among `all`, or else the middle one.
pub(super) fn main_epsilon(all: &[f64]) -> f64 {
    all.iter().copied().find(|e| *e == 0.01).unwrap_or(all[all.len() / 2])
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
