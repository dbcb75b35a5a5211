//! Sorting and grouping of rows.

use std::cmp::Ordering;

/// Sorts rows by a key; rows with equal keys keep their order. `None` comes before any value. A NaN counts as equal to
/// all keys.
pub(crate) fn sorted<'r, R, K: PartialOrd>(
    rows: impl IntoIterator<Item = &'r R>,
    key: impl Fn(&'r R) -> K,
) -> Vec<&'r R> {
    let mut sorted: Vec<&R> = rows.into_iter().collect();
    sorted.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal));
    sorted
}

/// Groups the rows that have equal keys; groups are in the order of their first rows.
pub(crate) fn groups<'r, R, K: PartialEq>(
    rows: impl IntoIterator<Item = &'r R>,
    key: impl Fn(&'r R) -> K,
) -> Vec<Vec<&'r R>> {
    let keyed = by_key(rows.into_iter().map(|row| (key(row), row)));
    keyed.into_iter().map(|(_, group)| group).collect()
}

/// Gathers the values of equal keys; keys are in the order in which they first occur.
pub(crate) fn by_key<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (own, value) in pairs {
        match groups.iter_mut().find(|(key, _)| *key == own) {
            Some((_, group)) => group.push(value),
            None => groups.push((own, vec![value])),
        }
    }
    groups
}

/// Returns, for each key, the row with the greatest value; the first one of equal rows.
pub(crate) fn greatest_of_each<'r, R, K: PartialEq>(
    rows: impl IntoIterator<Item = &'r R>,
    key: impl Fn(&'r R) -> K,
    value: impl Fn(&R) -> f64,
) -> Vec<&'r R> {
    let greater = |a, b| if value(b) > value(a) { b } else { a };
    groups(rows, key).into_iter().filter_map(|alike| alike.into_iter().reduce(greater)).collect()
}

/// Sorts the values in ascending order and removes duplicates.
pub(crate) fn distinct<T: PartialOrd>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    values.dedup();
    values
}

/// Returns the errors ε of rows of trained heads without duplicates, in descending order.
pub(crate) fn epsilons(all: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all = distinct(all);
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [(&str, f64); 5] = [("b", 1.0), ("a", 4.0), ("b", 3.0), ("a", 2.0), ("b", 3.0)];

    #[test]
    fn groups_stand_in_the_order_of_their_first_rows() {
        let found = groups(&ROWS, |row| row.0);
        assert_eq!(found, [vec![&ROWS[0], &ROWS[2], &ROWS[4]], vec![&ROWS[1], &ROWS[3]]]);
    }

    #[test]
    fn of_equal_rows_the_first_is_the_greatest() {
        let rows = [("a", 1.0, 1), ("a", 3.0, 2), ("b", 2.0, 3), ("a", 3.0, 4)];
        let found = greatest_of_each(&rows, |row| row.0, |row| row.1);
        assert_eq!(found, [&rows[1], &rows[2]]);
    }

    #[test]
    fn values_are_distinct_and_ascend() {
        assert_eq!(distinct([3.0, 1.0, 3.0, 2.0]), [1.0, 2.0, 3.0]);
        assert_eq!(epsilons([0.01, 0.1, 0.01].into_iter()), [0.1, 0.01]);
    }
}
