//! A mean over a few seeds, with Student's interval.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::digits::significant;

/// t₀.₉₇₅ on so many degrees of freedom; none for fewer than one.
pub(super) fn student(freedom: usize) -> Option<f64> {
    let student = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    Some(student.inverse_cdf(0.975))
}

/// A mean and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many values.
    pub count: usize,
}

impl Interval {
    /// x̄ ± t₀.₉₇₅(N − 1)·s/√N with s² the variance on N − 1 degrees of freedom. None for fewer than two values, or
    /// where one is not finite.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len();
        let quantile = student(count.checked_sub(1).filter(|&freedom| freedom > 0)?)?;
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half = quantile * (squares / (count - 1) as f64 / count as f64).sqrt();
        half.is_finite().then_some(Self { mean, low: mean - half, high: mean + half, count })
    }

    /// e to each: of a mean of logarithms the geometric mean of what they are of.
    pub fn exp(self) -> Self {
        let Self { mean, low, high, count } = self;
        Self { mean: mean.exp(), low: low.exp(), high: high.exp(), count }
    }

    /// Whether all of it is at most `bound`.
    pub fn is_at_most(&self, bound: f64) -> bool {
        self.high <= bound
    }

    /// Whether all of it is at least `bound`.
    pub fn is_at_least(&self, bound: f64) -> bool {
        self.low >= bound
    }

    /// `mean [low, high]` with so many significant digits.
    pub fn shown(&self, digits: usize) -> String {
        shown(self.mean, self.low, self.high, digits)
    }
}

/// `value [low, high]`: brackets hold a 95 % interval, always.
pub fn shown(value: f64, low: f64, high: f64, digits: usize) -> String {
    let [value, low, high] = [value, low, high].map(|v| significant(v, digits));
    format!("{value} [{low}, {high}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_that_of_a_worked_example() {
        // Mean 2, s = 1, t₀.₉₇₅(2) = 4.3027: half of 4.3027/√3.
        let found = Interval::of([1.0, 2.0, 3.0]).unwrap();
        assert!((found.mean - 2.0).abs() < 1e-12);
        assert!((found.high - 2.0 - 4.302_653 / 3f64.sqrt()).abs() < 1e-4, "{found:?}");
        assert!((found.low + found.high - 4.0).abs() < 1e-12);
        assert_eq!(found.shown(2), "2.0 [-0.48, 4.5]");
        // Student's sleep data, the differences of the two drugs: 1.58 [0.70, 2.46].
        let sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        assert_eq!(Interval::of(sleep).unwrap().shown(2), "1.6 [0.70, 2.5]");
    }

    #[test]
    fn one_value_has_no_interval_and_neither_has_infinity() {
        assert_eq!(Interval::of([2.0]), None);
        assert_eq!(Interval::of([]), None);
        assert_eq!(Interval::of([1.0, f64::INFINITY]), None);
    }

    #[test]
    fn ends_are_compared_as_a_whole() {
        let found = Interval::of([0.1, 0.1, 0.1]).unwrap();
        assert!(found.is_at_most(0.1 + 1e-12) && !found.is_at_most(0.05));
        assert!(found.is_at_least(0.1 - 1e-12) && !found.is_at_least(0.15));
        assert!((found.exp().mean - 0.1f64.exp()).abs() < 1e-12);
    }
}
