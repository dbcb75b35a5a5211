//! Fits lines by maximum likelihood when some values are only known to exceed a limit (censored regression).

use nalgebra::{DMatrix, DVector};
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use crate::table::Interval;
use crate::table::summary::student;

/// One point: regressors, and a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub regressors: Vec<f64>,
    pub value: Value,
}

/// A known value, or a limit that the value exceeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Known(f64),
    Above(f64),
}

/// The maximum-likelihood line, with normally distributed residuals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// The coefficients with their 95 % intervals.
    pub coefficients: Vec<Interval>,
    pub log_likelihood: f64,
}

const ROUNDS: usize = 5000;
const ENOUGH: f64 = 1e-10;
/// The smallest residual deviation, in nats; without it, a model through every point would have none.
const LEAST_DEVIATION: f64 = 1e-6;

impl Line {
    /// Maximises the censored normal likelihood by expectation–maximisation (Tobin 1958, *Econometrica* 26; Dempster,
    /// Laird and Rubin 1977). Intervals are Wald's from the observed information, with Student's quantile; its degrees
    /// of freedom count known values only. Returns `None` if known values are too few, the regressors are collinear, or
    /// a value is not finite.
    pub fn through(points: &[Point]) -> Option<Self> {
        let columns = points.first()?.regressors.len();
        let is_finite = |point: &Point| {
            let (Value::Known(value) | Value::Above(value)) = point.value;
            value.is_finite() && point.regressors.iter().all(|x| x.is_finite())
        };
        if !points.iter().all(is_finite) {
            return None;
        }
        let known = points.iter().filter(|p| matches!(p.value, Value::Known(_))).count();
        let freedom = known.checked_sub(columns + 1).filter(|&freedom| freedom > 0)?;
        let x = DMatrix::from_fn(points.len(), columns, |row, at| points[row].regressors[at]);
        // The known values alone must determine the coefficients.
        let of_known = DMatrix::from_row_iterator(
            known,
            columns,
            points
                .iter()
                .filter(|p| matches!(p.value, Value::Known(_)))
                .flat_map(|p| p.regressors.iter().copied()),
        );
        let singular = of_known.singular_values();
        if singular.min() <= 1e-9 * singular.max() {
            return None;
        }
        let inverse = (x.transpose() * &x).cholesky()?.inverse();
        let normal = Normal::standard();
        let mut beta = DVector::zeros(columns);
        let mut deviation = 1.0f64;
        for round in 0..ROUNDS {
            let fitted = &x * &beta;
            let (mut filled, mut spread) = (DVector::zeros(points.len()), 0.0);
            for (at, point) in points.iter().enumerate() {
                filled[at] = match point.value {
                    Value::Known(value) => value,
                    Value::Above(limit) => {
                        let z = (limit - fitted[at]) / deviation;
                        let hazard = hazard(&normal, z);
                        spread += deviation * deviation * (1.0 + z * hazard - hazard * hazard);
                        fitted[at] + deviation * hazard
                    }
                };
            }
            let next = &inverse * (x.transpose() * &filled);
            let residual = (&filled - &x * &next).norm_squared() + spread;
            let next_deviation = (residual / points.len() as f64).sqrt().max(LEAST_DEVIATION);
            let moved = (&next - &beta).amax().max((next_deviation - deviation).abs());
            (beta, deviation) = (next, next_deviation);
            if moved < ENOUGH && round > 0 {
                break;
            }
        }
        let quantile = student(freedom)?;
        let covariance = information(points, &x, &beta, deviation).try_inverse()?;
        let coefficient = |at: usize| {
            let half = quantile * covariance[(at, at)].max(0.0).sqrt();
            Interval { value: beta[at], low: beta[at] - half, high: beta[at] + half }
        };
        Some(Self {
            log_likelihood: log_likelihood(points, &x, &beta, deviation),
            coefficients: (0..columns).map(coefficient).collect(),
        })
    }
}

/// φ(z) / (1 − Φ(z)), or its asymptote if both are tiny.
fn hazard(normal: &Normal, z: f64) -> f64 {
    let tail = normal.sf(z);
    if tail > 1e-280 { normal.pdf(z) / tail } else { z + 1.0 / z }
}

fn log_likelihood(points: &[Point], x: &DMatrix<f64>, beta: &DVector<f64>, deviation: f64) -> f64 {
    let normal = Normal::standard();
    let fitted = x * beta;
    let one = |(at, point): (usize, &Point)| match point.value {
        Value::Known(value) => normal.ln_pdf((value - fitted[at]) / deviation) - deviation.ln(),
        Value::Above(limit) => {
            normal.sf((limit - fitted[at]) / deviation).max(f64::MIN_POSITIVE).ln()
        }
    };
    points.iter().enumerate().map(one).sum()
}

/// The negative Hessian of the log-likelihood in the coefficients and the deviation, by central differences.
fn information(
    points: &[Point],
    x: &DMatrix<f64>,
    beta: &DVector<f64>,
    deviation: f64,
) -> DMatrix<f64> {
    let size = beta.len() + 1;
    let steps: Vec<f64> = (0..size)
        .map(|at| if at + 1 == size { 1e-3 * deviation } else { 1e-3 * deviation.max(1e-3) })
        .collect();
    let at = |shift: &[f64]| {
        let moved = DVector::from_fn(beta.len(), |i, _| beta[i] + shift[i]);
        log_likelihood(points, x, &moved, deviation + shift[size - 1])
    };
    DMatrix::from_fn(size, size, |i, j| {
        let value = |a: f64, b: f64| {
            let mut shift = vec![0.0; size];
            shift[i] += a * steps[i];
            shift[j] += b * steps[j];
            at(&shift)
        };
        let second = value(1.0, 1.0) - value(1.0, -1.0) - value(-1.0, 1.0) + value(-1.0, -1.0);
        -second / (4.0 * steps[i] * steps[j])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f64, value: Value) -> Point {
        Point { regressors: vec![1.0, x], value }
    }

    #[test]
    fn without_censoring_it_is_least_squares() {
        // Anscombe's first set: slope 0.5001, standard error 0.1179 on 9 degrees of freedom. The likelihood's deviation
        // divides by N, so the interval is narrower by √(9/11), and the quantile has one degree of freedom less.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<Point> =
            x.into_iter().zip(y).map(|(x, y)| point(x, Value::Known(y))).collect();
        let line = Line::through(&points).unwrap();
        let Interval { value, high, .. } = line.coefficients[1];
        assert!((value - 0.50009).abs() < 1e-5, "{line:?}");
        let expected = 2.306 * 0.1179 * (9.0f64 / 11.0).sqrt();
        assert!((high - value - expected).abs() < 2e-3, "{line:?} against {expected}");
    }

    #[test]
    fn values_that_are_only_known_to_be_large_still_pull() {
        // y = 2x + noise, cut off at 9: without the censored points the line is flatter, with the likelihood it is not.
        let noise = |at: usize| 0.3 * ((at * 7 % 11) as f64 - 5.0) / 5.0;
        let all: Vec<(f64, f64)> =
            (0..40).map(|at| (at as f64 / 5.0, 2.0 * at as f64 / 5.0 + noise(at))).collect();
        let cut = |&(x, y): &(f64, f64)| {
            point(x, if y > 9.0 { Value::Above(9.0) } else { Value::Known(y) })
        };
        let points: Vec<Point> = all.iter().map(cut).collect();
        assert!(points.iter().filter(|p| matches!(p.value, Value::Above(_))).count() > 10);
        let line = Line::through(&points).unwrap();
        let Interval { value, high, .. } = line.coefficients[1];
        assert!((value - 2.0).abs() < 0.05, "{line:?}");
        assert!(high - value < 0.2);
    }

    #[test]
    fn what_cannot_be_told_apart_is_none() {
        let same: Vec<Point> = (0..6).map(|at| point(1.0, Value::Known(at as f64))).collect();
        assert_eq!(Line::through(&same), None);
        assert_eq!(Line::through(&same[..2]), None);
    }
}
