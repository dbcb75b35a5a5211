//! Least squares on several variables, with points in clusters.

use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A coefficient with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficient {
    /// The coefficient.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Ordinary least squares y = a + Σ bₖ xₖ, with intervals that allow for dependence within clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// The coefficients bₖ, without the constant a.
    pub coefficients: Vec<Coefficient>,
    /// Number of points N.
    pub points: usize,
    /// Number of clusters G.
    pub clusters: usize,
}

impl Regression {
    /// Fits `points`; each is (cluster, x, y).
    ///
    /// The intervals are b ± t₀.₉₇₅(G − 1)·√V. V = c (XᵀX)⁻¹ (Σ_g X_gᵀ u_g u_gᵀ X_g) (XᵀX)⁻¹ is the sandwich estimator,
    /// with residuals u and c = G/(G − 1) · (N − 1)/(N − K). Source: Cameron and Miller 2015, *A practitioner's guide
    /// to cluster-robust inference*, equations 10 to 12. With few clusters the intervals are too narrow rather than too
    /// wide. Returns `None` if there are no more clusters or points than coefficients, constant included, or if the
    /// variables are collinear.
    pub fn of<C: PartialEq>(points: &[(C, Vec<f64>, f64)]) -> Option<Self> {
        let count = points.len();
        let width = 1 + points.first()?.1.len();
        let mut known: Vec<&C> = Vec::new();
        let mut cluster_of = Vec::with_capacity(count);
        for (cluster, _, _) in points {
            let at = known.iter().position(|other| *other == cluster);
            cluster_of.push(at.unwrap_or(known.len()));
            if at.is_none() {
                known.push(cluster);
            }
        }
        let clusters = known.len();
        if clusters <= width || count <= width {
            return None;
        }
        let means: Vec<f64> = (0..width - 1)
            .map(|k| points.iter().map(|(_, x, _)| x[k]).sum::<f64>() / count as f64)
            .collect();
        let x = DMatrix::from_fn(count, width, |row, k| match k.checked_sub(1) {
            None => 1.0,
            Some(k) => points[row].1[k] - means[k],
        });
        let y = DVector::from_iterator(count, points.iter().map(|(_, _, y)| *y));
        let gram = x.transpose() * &x;
        // Collinear variables leave a pivot that is only rounding error, which Cholesky may accept.
        let inverse = gram.clone().cholesky()?.inverse();
        if (&inverse * &gram - DMatrix::identity(width, width)).amax() > 1e-6 {
            return None;
        }
        let fitted = &inverse * (x.transpose() * &y);
        let residual = &y - &x * &fitted;
        let mut scores = DMatrix::<f64>::zeros(clusters, width);
        for (row, &cluster) in cluster_of.iter().enumerate() {
            for k in 0..width {
                scores[(cluster, k)] += x[(row, k)] * residual[row];
            }
        }
        let [g, n, k] = [clusters, count, width].map(|value| value as f64);
        let correction = g / (g - 1.0) * (n - 1.0) / (n - k);
        let sandwich: DMatrix<f64> =
            &inverse * (scores.transpose() * &scores) * &inverse * correction;
        let quantile = StudentsT::new(0.0, 1.0, g - 1.0).ok()?.inverse_cdf(0.975);
        let coefficient = |k: usize| {
            let (value, room) = (fitted[k], quantile * sandwich[(k, k)].sqrt());
            Coefficient { value, low: value - room, high: value + room }
        };
        let coefficients: Vec<Coefficient> = (1..width).map(coefficient).collect();
        let are_numbers = coefficients.iter().all(|c| c.value.is_finite() && c.low.is_finite());
        are_numbers.then_some(Self { coefficients, points: count, clusters })
    }
}

#[cfg(test)]
mod tests {
    use super::Regression;

    /// Doubling every point within its cluster leaves the coefficients and the sandwich as they were, except for the
    /// correction: (2N − 1)/(2N − K) replaces (N − 1)/(N − K).
    #[test]
    fn a_cluster_that_repeats_itself_says_nothing_new() {
        let once: Vec<(usize, Vec<f64>, f64)> = (0..9)
            .map(|at| {
                let x = vec![at as f64, (at * at % 5) as f64];
                (at, x.clone(), 1.0 + 2.0 * x[0] - x[1] + [0.3, -0.2, 0.1][at % 3])
            })
            .collect();
        let twice: Vec<_> = once.iter().chain(&once).cloned().collect();
        let [once, twice] = [&once, &twice].map(|points| Regression::of(points).unwrap());
        assert_eq!((once.points, twice.points, once.clusters, twice.clusters), (9, 18, 9, 9));
        let correction = ((17.0_f64 / 15.0) / (8.0 / 6.0)).sqrt();
        for (a, b) in once.coefficients.iter().zip(&twice.coefficients) {
            assert!((a.value - b.value).abs() < 1e-12);
            let [wide, narrow] = [a, b].map(|c| c.high - c.low);
            assert!((narrow / wide - correction).abs() < 1e-12, "{narrow} of {wide}");
        }
    }

    /// A fit with a = 0 and three clusters of two points, computed by hand.
    #[test]
    fn the_sandwich_is_that_of_the_formula() {
        // x is centred and orthogonal to 1; b = Σxy/Σx² = 12/10 with residuals of mean 0.
        let x = [-2.0, -1.0, 0.0, 0.0, 1.0, 2.0];
        let y = [-2.0, -2.0, 1.0, -1.0, 2.0, 2.0];
        let points: Vec<(usize, Vec<f64>, f64)> =
            x.iter().zip(y).enumerate().map(|(at, (x, y))| (at / 2, vec![*x], y)).collect();
        let found = Regression::of(&points).unwrap();
        let [b] = found.coefficients[..] else { panic!("{found:?}") };
        assert!((b.value - 1.2).abs() < 1e-12, "{b:?}");
        // Scores of b by cluster: residuals (0.4, −0.8, 1, −1, 0.8, −0.4) give −0.8 + 0.8 = 0, 0 and 0.8 − 0.8 = 0.
        assert!(b.high - b.low < 1e-9, "{b:?}");
        // With the clusters (0, 2), (1, 3), (4, 5): −0.8, 0.8, 0; t₀.₉₇₅(2) = 4.3027, c = 3/2 · 5/4.
        let clusters = [0, 1, 0, 1, 2, 2];
        let points: Vec<_> =
            points.into_iter().zip(clusters).map(|((_, x, y), cluster)| (cluster, x, y)).collect();
        let [b] = Regression::of(&points).unwrap().coefficients[..] else { panic!() };
        let variance: f64 = 1.5 * 1.25 * (0.64 + 0.64) / 100.0;
        assert!((b.high - b.value - 4.302_653 * variance.sqrt()).abs() < 1e-5, "{b:?}");
    }

    #[test]
    fn what_cannot_be_told_is_none() {
        let same = |at: usize| (at, vec![at as f64, 2.0 * at as f64], at as f64);
        assert_eq!(
            Regression::of(&(0..9).map(same).collect::<Vec<_>>()),
            None,
            "one variable twice"
        );
        let few = |at: usize| (at % 2, vec![at as f64], (at * at) as f64);
        assert_eq!(Regression::of(&(0..9).map(few).collect::<Vec<_>>()), None, "two clusters");
        assert_eq!(Regression::of::<usize>(&[]), None);
    }
}
