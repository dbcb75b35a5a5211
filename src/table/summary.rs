//! Statistics of a few values (median, mean, slope, with ranges and intervals), and numbers formatted for people.

use nalgebra::{Matrix2, Vector2};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Formats `value` with `digits` significant digits, as a plain decimal if that is short, else as `1.2e-7`. NaN and
/// infinities are written as words.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "NaN".to_owned() } else { format!("{value}") };
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = digits.max(1);
    let written = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        return format!("{mantissa}e{exponent}");
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    let rounded: f64 = written.parse().unwrap_or(value);
    format!("{rounded:.decimals$}")
}

/// Formats a count with its noun: `1 head`, `2 heads`; `1 study`, `2 studies`.
pub fn plural(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// [`plural`] of a range: `3 seeds`, or `1–3 seeds` if the ends differ.
pub fn plural_range(least: usize, most: usize, noun: &str) -> String {
    let from = if least < most { format!("{least}–") } else { String::new() };
    from + &plural(most, noun)
}

/// Median, minimum and maximum of a few values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median; for an even count, the mean of the middle two values.
    pub median: f64,
    /// The minimum.
    pub low: f64,
    /// The maximum.
    pub high: f64,
}

impl Spread {
    /// Computes the spread of the finite values among `values`, or `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        Self::of_values(values.into_iter().collect())
    }

    fn of_values(mut sorted: Vec<f64>) -> Option<Self> {
        sorted.retain(|value| value.is_finite());
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

    /// Formats as `median (low–high)` with `digits` significant digits, or as the median alone if low and high look the
    /// same. Writes `low to high` if one is negative. Brackets are reserved for intervals.
    pub fn shown(&self, digits: usize) -> String {
        let [median, low, high] =
            [self.median, self.low, self.high].map(|value| significant(value, digits));
        if low == high { median } else { format!("{median} ({})", range(&low, &high)) }
    }

    /// Formats as `low–high` with `digits` significant digits.
    pub fn range(&self, digits: usize) -> String {
        let [low, high] = [self.low, self.high].map(|value| significant(value, digits));
        if low == high { low } else { range(&low, &high) }
    }
}

fn range(low: &str, high: &str) -> String {
    let to = if low.starts_with('-') || high.starts_with('-') { " to " } else { "–" };
    format!("{low}{to}{high}")
}

/// The quantile t₀.₉₇₅ for `freedom` degrees of freedom; `None` for 0.
pub(crate) fn student(freedom: usize) -> Option<f64> {
    let student = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    Some(student.inverse_cdf(0.975))
}

/// A number with its uncertainty: a mean, a slope, a coefficient or a median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    ends: Ends,
}

/// The uncertainty of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    /// A 95 % interval.
    Interval([f64; 2]),
    /// The smallest and the largest measured value.
    Range([f64; 2]),
    /// Unknown: there is one seed.
    Unknown,
}

impl Ends {
    fn map(self, turned: impl Fn([f64; 2]) -> [f64; 2]) -> Self {
        match self {
            Self::Interval(ends) => Self::Interval(turned(ends)),
            Self::Range(ends) => Self::Range(turned(ends)),
            Self::Unknown => Self::Unknown,
        }
    }
}

impl Estimate {
    /// The mean with Student's interval over seeds. One seed gives its value without an interval, no seed gives `None`.
    pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let alone = Self { value: mean, ends: Ends::Unknown };
        (!values.is_empty()).then(|| Self::interval(values).unwrap_or(alone))
    }

    /// The mean x̄ ± t₀.₉₇₅(N − 1)·s/√N, where s² is the variance with N − 1 degrees of freedom. Returns `None` for fewer
    /// than two values, or if one is not finite.
    pub fn interval(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len();
        let quantile = student(count.checked_sub(1).filter(|&freedom| freedom > 0)?)?;
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self::around(mean, quantile * (squares / (count - 1) as f64 / count as f64).sqrt())
    }

    /// The slope of the line y = a + b·x, fitted by least squares to `points` (x, y).
    ///
    /// The interval is b ± t₀.₉₇₅(N − 2) · √(s² (XᵀX)⁻¹)₂₂, where s² is the residual variance with N − 2 degrees of
    /// freedom. Returns `None` for fewer than three points, or if all have the same x.
    pub fn of_slope(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len();
        let quantile = student(count.checked_sub(2).filter(|&freedom| freedom > 0)?)?;
        let centre = points.iter().map(|&(x, _)| x).sum::<f64>() / count as f64;
        let mut gram = Matrix2::zeros();
        let mut moment = Vector2::zeros();
        for &(x, y) in points {
            let row = Vector2::new(1.0, x - centre);
            gram += row * row.transpose();
            moment += row * y;
        }
        let inverse = gram.cholesky()?.inverse();
        let fitted = inverse * moment;
        let residual: f64 =
            points.iter().map(|&(x, y)| (y - fitted[0] - fitted[1] * (x - centre)).powi(2)).sum();
        let error = (residual / (count - 2) as f64 * inverse[(1, 1)]).sqrt();
        Self::around(fitted[1], quantile * error)
    }

    /// value ± half; `None` unless both are finite.
    pub(super) fn around(value: f64, half: f64) -> Option<Self> {
        let found = Self::within(value, [value - half, value + half]);
        (value.is_finite() && half.is_finite()).then_some(found)
    }

    /// A value with the ends of its 95 % interval.
    pub(crate) fn within(value: f64, ends: [f64; 2]) -> Self {
        Self { value, ends: Ends::Interval(ends) }
    }

    /// The median with the smallest and the largest value; `None` without values.
    pub fn median(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let Spread { median, low, high } = Spread::of(values)?;
        Some(Self { value: median, ends: Ends::Range([low, high]) })
    }

    /// A value with the ends of its range.
    pub fn range(value: f64, ends: [f64; 2]) -> Self {
        Self { value, ends: Ends::Range(ends) }
    }

    /// The ends of the interval or range; `None` if unknown.
    pub fn ends(&self) -> Option<[f64; 2]> {
        match self.ends {
            Ends::Interval(ends) | Ends::Range(ends) => Some(ends),
            Ends::Unknown => None,
        }
    }

    /// Applies an increasing function to the value and its ends.
    pub fn map(self, rises: impl Fn(f64) -> f64) -> Self {
        Self { value: rises(self.value), ends: self.ends.map(|ends| ends.map(&rises)) }
    }

    /// The value without its ends.
    pub fn without_ends(self) -> Self {
        Self { ends: Ends::Unknown, ..self }
    }

    /// Applies the exponential; this turns a mean of logarithms into the geometric mean.
    pub fn exp(self) -> Self {
        self.map(f64::exp)
    }

    /// `0.28 [0.20, 0.38]` with an interval, `0.28 (0.20–0.38)` with a range, else `0.28`.
    pub fn shown(&self, digits: usize) -> String {
        self.with_unit("", digits)
    }

    /// As [`shown`](Self::shown), followed by `(1 seed)` if the ends are unknown.
    pub fn shown_of_seeds(&self, digits: usize) -> String {
        let note = if self.ends == Ends::Unknown { " (1 seed)" } else { "" };
        self.shown(digits) + note
    }

    /// Written as a factor: `0.28× [0.20, 0.38]`.
    pub fn times(&self, digits: usize) -> String {
        self.with_unit("×", digits)
    }

    /// Written as a difference: `0.25 nats lower [0.19, 0.31]` or `0.0064 nats higher [-0.0093, 0.022]`. `unit` is
    /// empty or begins with a space.
    pub fn apart(&self, digits: usize, unit: &str) -> String {
        if self.value >= 0.0 {
            return self.with_unit(&format!("{unit} higher"), digits);
        }
        let ends = self.ends.map(|[low, high]| [-high, -low]);
        Self { value: -self.value, ends }.with_unit(&format!("{unit} lower"), digits)
    }

    fn with_unit(&self, unit: &str, digits: usize) -> String {
        let value = significant(self.value, digits);
        match self.ends {
            Ends::Interval(ends) => {
                let [low, high] = ends.map(|end| significant(end, digits));
                format!("{value}{unit} [{low}, {high}]")
            }
            Ends::Range([low, high]) => {
                Spread { median: self.value, low, high }.shown(digits) + unit
            }
            Ends::Unknown => value + unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_digits_asked_for() {
        for (value, digits, expected) in [
            (0.058_123, 3, "0.0581"),
            (12.0, 3, "12.0"),
            (61_234.0, 3, "61200"),
            (9.999, 3, "10.0"),
            (-0.5, 2, "-0.50"),
            (1.0e-7, 2, "1.0e-7"),
            (2.5e8, 2, "2.5e8"),
            (0.0, 3, "0"),
            (f64::NAN, 3, "NaN"),
        ] {
            assert_eq!(significant(value, digits), expected, "{value} to {digits}");
        }
    }

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

    #[test]
    fn intervals_are_those_of_worked_examples() {
        // Mean 2, s = 1, t₀.₉₇₅(2) = 4.3027: half of 4.3027/√3.
        let found = Estimate::interval([1.0, 2.0, 3.0]).unwrap();
        assert!((found.value - 2.0).abs() < 1e-12);
        let [low, high] = found.ends().unwrap();
        assert!((high - 2.0 - 4.302_653 / 3f64.sqrt()).abs() < 1e-4, "{found:?}");
        assert!((low + high - 4.0).abs() < 1e-12);
        assert_eq!(found.shown(2), "2.0 [-0.48, 4.5]");
        // Student's sleep data, the differences of the two drugs: 1.58 [0.70, 2.46].
        let sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        assert_eq!(Estimate::interval(sleep).unwrap().shown(2), "1.6 [0.70, 2.5]");
    }

    #[test]
    fn equal_values_have_equal_ends_and_one_or_an_infinite_value_none() {
        for values in [&[][..], &[2.0], &[1.0, f64::INFINITY]] {
            assert_eq!(Estimate::interval(values.iter().copied()), None);
        }
        let found = Estimate::interval([0.1, 0.1, 0.1]).unwrap();
        assert!(found.ends().unwrap().iter().all(|end| (end - 0.1).abs() < 1e-12));
        assert!((found.exp().value - 0.1f64.exp()).abs() < 1e-12);
    }

    #[test]
    fn slopes_are_those_of_worked_examples() {
        // Anscombe's first set: slope 0.5001, standard error 0.1179, t(9) = 2.2622.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<_> = x.into_iter().zip(y).collect();
        let slope = Estimate::of_slope(&points).unwrap();
        assert!((slope.value - 0.50009).abs() < 1e-5, "{slope:?}");
        let [low, high] = slope.ends().unwrap();
        assert!((low - 0.23337).abs() < 1e-4 && (high - 0.76681).abs() < 1e-4, "{slope:?}");
        // One degree of freedom: t₀.₉₇₅ = 12.7062, residuals (1, −2, 1)/6 so that s² = 1/6.
        let slope = Estimate::of_slope(&[(0.0, 0.0), (1.0, 0.5), (2.0, 2.0)]).unwrap();
        assert!((slope.value - 1.0).abs() < 1e-12);
        let [_, high] = slope.ends().unwrap();
        assert!((high - 1.0 - 12.7062 * (1.0_f64 / 12.0).sqrt()).abs() < 1e-3, "{slope:?}");
        // Two points have no interval, and a vertical line has no slope.
        assert_eq!(Estimate::of_slope(&[(0.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(Estimate::of_slope(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
