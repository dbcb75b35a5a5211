//! Text that several claims share: ranges and lists.

use std::collections::BTreeSet;

use crate::table::Spread;

/// A range such as `0.45–0.46`, or one number if both ends are equal.
pub(crate) fn from_to(values: impl IntoIterator<Item = f64>, digits: usize) -> String {
    Spread::of(values).map_or_else(|| "–".to_owned(), |spread| spread.range(digits))
}

/// The distinct values in order, separated by commas.
pub(crate) fn listed<T: Ord + ToString>(values: impl Iterator<Item = T>) -> String {
    let values: BTreeSet<T> = values.collect();
    joined(values.iter().map(ToString::to_string), ", ")
}

/// Joins texts with `between` between them.
pub(crate) fn joined(texts: impl IntoIterator<Item = String>, between: &str) -> String {
    texts.into_iter().collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_their_ends() {
        assert_eq!(from_to([3.0, 1.0], 2), "1.0–3.0");
        assert_eq!(from_to([1.0], 2), "1.0");
        assert_eq!(from_to([-1.0, 1.0], 1), "-1 to 1");
        assert_eq!(from_to([], 1), "–");
    }
}
