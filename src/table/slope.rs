//! A straight line through a few points, with Student's interval for its slope.

use nalgebra::{Matrix2, Vector2};

use super::interval::{shown, student};

/// A slope by ordinary least squares and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// The slope.
    pub slope: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
    /// How many points the line was drawn through.
    pub points: usize,
}

impl Slope {
    /// The line y = a + b·x of least squares through `points` (x, y).
    ///
    /// The interval is b ± t₀.₉₇₅(N − 2) · √(s² (XᵀX)⁻¹)₂₂ with s² the residual variance on N − 2
    /// degrees of freedom. None where fewer than three points, or a single x, leave it undefined.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len();
        if count < 3 {
            return None;
        }
        let freedom = count - 2;
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
        let error = (residual / freedom as f64 * inverse[(1, 1)]).sqrt();
        let quantile = student(freedom)?;
        let slope = fitted[1];
        let interval = Self {
            slope,
            low: slope - quantile * error,
            high: slope + quantile * error,
            points: count,
        };
        (slope.is_finite() && interval.low.is_finite()).then_some(interval)
    }

    /// `slope [low, high]` with so many significant digits.
    pub fn shown(&self, digits: usize) -> String {
        shown(self.slope, self.low, self.high, digits)
    }
}

#[cfg(test)]
mod tests {
    use super::Slope;

    #[test]
    fn matches_a_worked_example() {
        // Anscombe's first set: slope 0.5001, standard error 0.1179, t(9) = 2.2622.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<_> = x.into_iter().zip(y).collect();
        let slope = Slope::through(&points).unwrap();
        assert!((slope.slope - 0.50009).abs() < 1e-5, "{slope:?}");
        assert!((slope.low - 0.23337).abs() < 1e-4, "{slope:?}");
        assert!((slope.high - 0.76681).abs() < 1e-4, "{slope:?}");
    }

    #[test]
    fn three_points_use_the_wide_quantile() {
        // One degree of freedom: t₀.₉₇₅ = 12.7062, residuals (1, −2, 1)/6 so that s² = 1/6.
        let slope = Slope::through(&[(0.0, 0.0), (1.0, 0.5), (2.0, 2.0)]).unwrap();
        assert!((slope.slope - 1.0).abs() < 1e-12);
        assert!((slope.high - 1.0 - 12.7062 * (1.0_f64 / 12.0).sqrt()).abs() < 1e-3, "{slope:?}");
    }

    #[test]
    fn undefined_lines_are_none() {
        assert_eq!(Slope::through(&[(0.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(Slope::through(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
