//! The median of a few seeds, with the least and the greatest.

use super::digits::significant;

/// The median, least and greatest of a few values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median; of an even count, the mean of the middle two.
    pub median: f64,
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
}

impl Spread {
    /// The spread of the finite values among `values`; none where there is none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            0.5 * (sorted[middle - 1] + sorted[middle])
        };
        Some(Self { median, low, high })
    }

    /// `median (low–high)` with so many significant digits, or the one number that all three show; `low to high` where
    /// one has a sign. Brackets are for intervals.
    pub fn shown(&self, digits: usize) -> String {
        let [median, low, high] =
            [self.median, self.low, self.high].map(|value| significant(value, digits));
        if low == high { median } else { format!("{median} ({})", range(&low, &high)) }
    }

    /// `low–high` with so many significant digits.
    pub fn range(&self, digits: usize) -> String {
        let [low, high] = [self.low, self.high].map(|value| significant(value, digits));
        if low == high { low } else { range(&low, &high) }
    }
}

fn range(low: &str, high: &str) -> String {
    let to = if low.starts_with('-') || high.starts_with('-') { " to " } else { "–" };
    format!("{low}{to}{high}")
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).unwrap().median, 2.0);
        let even = Spread::of([4.0, 1.0, f64::NAN, 2.0, 3.0]).unwrap();
        assert_eq!((even.median, even.low, even.high), (2.5, 1.0, 4.0));
        assert_eq!(Spread::of([f64::NAN]), None);
    }

    #[test]
    fn one_value_shows_no_range() {
        assert_eq!(Spread::of([2.0, 2.0001]).unwrap().shown(3), "2.00");
        assert_eq!(Spread::of([1.0, 2.0, 4.0]).unwrap().shown(2), "2.0 (1.0–4.0)");
        assert_eq!(Spread::of([-1.0, 2.0, 4.0]).unwrap().shown(2), "2.0 (-1.0 to 4.0)");
        assert_eq!(Spread::of([1.0, 2.0, 4.0]).unwrap().range(1), "1–4");
    }
}
