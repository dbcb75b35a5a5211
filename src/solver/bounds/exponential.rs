//! Error of low-degree polynomials as approximations of the exponential in a softmax row.
//!
//! A row of √p with largest logit h is √pⱼ ∝ e^{xⱼ} with xⱼ = (zⱼ − h)/2 ∈ [−ℓ, 0], one of them 0. With a polynomial q in place
//! of e^x the squared error of the row is Σ(q(xⱼ) − e^{xⱼ})², relative to its squared norm Σe^{2xⱼ}. q is found numerically,
//! but the result bounds the error of exactly this q: a poor q makes a bound weak, never wrong.

use std::f64::consts::PI;

use nalgebra::{DMatrix, DVector};

/// Rounds of Lawson's reweighting: enough to come within a few per cent of the minimal maximum.
const ROUNDS: usize = 12;
/// Points of the search per coefficient.
const POINTS: usize = 8;
/// Assumed share of small entries in the row, relative to its largest: of 0.2, 0.5, 1 and 2 the one with the smallest bounds
/// over degrees 1 to 20.
const SMALL_ENTRIES: f64 = 0.5;
/// Cells of the check per coefficient; their slack decreases with the square of this number.
const CELLS: usize = 128;
/// Added to every checked value, for the rounding of its evaluation.
const ROUNDING: f64 = 1e-11;

/// An upper bound on the smallest ρ for which some polynomial q of degree `degree` has
///
/// > Σⱼ (q(xⱼ) − e^{xⱼ})² ≤ ρ² Σⱼ e^{2xⱼ}
///
/// for every x of at most `columns` ≥ 2 entries in [−`length`, 0] of which one is 0. The result is at most 1, because q = 0
/// reaches 1.
///
/// The entry at 0 adds (q(0) − 1)² on the left and 1 on the right. So with m = columns − 1 others it is enough that
/// (q(0) − 1)² + m·e² ≤ ρ²(1 + m·e^{2x}) wherever |q(x) − e^x| = e. The error of small entries may be about 1/√m of the row,
/// which is why ρ stays below 1 for ℓ far above the degree. q comes from least squares reweighted towards the largest weighted
/// error (Lawson's algorithm; Rice and Usow 1968, *The Lawson algorithm and extensions*). The check walks x = ℓ(cos φ − 1)/2 in
/// steps h of φ and adds the largest possible change between two steps, (h²/8)·max|d²/dφ²| ≤ (h²/8)(Σⱼ j²|cⱼ| + ℓ): a Chebyshev
/// series Σ cⱼ cos jφ contributes at most the first term, and e^x at most ℓ(1/e + 1/2) < ℓ.
pub(super) fn row_error(degree: usize, length: f64, columns: usize) -> f64 {
    let others = (columns - 1) as f64;
    search(degree, length, others).map_or(1.0, |q| checked(&q, length, others).min(1.0))
}

/// Chebyshev coefficients on [−length, 0] of a polynomial of small ρ; `None` if the normal equations cannot be solved.
fn search(degree: usize, length: f64, others: f64) -> Option<DVector<f64>> {
    let (count, points) = (degree + 1, POINTS * (degree + 1));
    // The end x = 0 is the first point.
    let angle = |i: usize| PI * i as f64 / (points - 1) as f64;
    let basis = DMatrix::from_fn(points, count, |i, j| (j as f64 * angle(i)).cos());
    let exact = DVector::from_fn(points, |i, _| exponential(angle(i).cos(), length));
    let scale: Vec<f64> =
        exact.iter().map(|e| (others / (SMALL_ENTRIES + others * e * e)).sqrt()).collect();
    let mut weights = vec![1.0 / points as f64; points];
    let mut best: Option<(f64, DVector<f64>)> = None;
    for _ in 0..ROUNDS {
        let root = |i: usize| weights[i].sqrt() * scale[i];
        let scaled = DMatrix::from_fn(points, count, |i, j| root(i) * basis[(i, j)]);
        let aim = DVector::from_fn(points, |i, _| root(i) * exact[i]);
        let Some(normal) = scaled.tr_mul(&scaled).cholesky() else { break };
        let q = normal.solve(&scaled.tr_mul(&aim));
        let miss = &basis * &q - &exact;
        let weighted: Vec<f64> = scale.iter().zip(&miss).map(|(s, miss)| s * miss.abs()).collect();
        let greatest = weighted.iter().copied().fold(0.0, f64::max);
        if best.as_ref().is_none_or(|(least, _)| greatest < *least) {
            best = Some((greatest, q));
        }
        weights.iter_mut().zip(&weighted).for_each(|(weight, miss)| *weight *= miss);
        let sum: f64 = weights.iter().sum();
        if sum <= f64::MIN_POSITIVE {
            break;
        }
        weights.iter_mut().for_each(|weight| *weight /= sum);
    }
    best.map(|(_, q)| q)
}

/// A proven upper bound on ρ of the polynomial q.
fn checked(q: &DVector<f64>, length: f64, others: f64) -> f64 {
    let cells = CELLS * q.len();
    let step = PI / cells as f64;
    let curvature: f64 = q.iter().enumerate().map(|(j, c)| (j * j) as f64 * c.abs()).sum();
    let slack = step * step / 8.0 * (curvature + length) + ROUNDING;
    let miss = |t: f64| (clenshaw(q, t) - exponential(t, length)).abs();
    let mut before = miss(1.0);
    let at_zero = (before + ROUNDING).powi(2);
    let mut greatest = at_zero;
    for cell in 1..=cells {
        let t = (step * cell as f64).cos();
        let here = miss(t);
        let within_cell = (before.max(here) + slack).powi(2);
        // e^x decreases along the cell, so its far end has the smallest value.
        let least = exponential(t, length).powi(2);
        greatest = greatest.max((at_zero + others * within_cell) / (1.0 + others * least));
        before = here;
    }
    greatest.sqrt()
}

/// e^x at x = length·(t − 1)/2.
fn exponential(t: f64, length: f64) -> f64 {
    (0.5 * length * (t - 1.0)).exp()
}

/// Σⱼ cⱼTⱼ(t) by Clenshaw's recurrence.
fn clenshaw(c: &DVector<f64>, t: f64) -> f64 {
    let (mut next, mut after) = (0.0, 0.0);
    for &coefficient in c.iter().skip(1).rev() {
        (next, after) = (coefficient + 2.0 * t * next - after, next);
    }
    c[0] + t * next - after
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn no_row_is_missed_by_more_than_the_bound() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for (degree, length, columns) in [
            (1, 2.0, 8),
            (2, 6.0, 64),
            (3, 10.0, 300),
            (5, 24.0, 64),
            (10, 40.0, 512),
            (20, 90.0, 9),
        ] {
            let bound = row_error(degree, length, columns);
            let q = search(degree, length, (columns - 1) as f64).unwrap();
            assert!(bound < 0.75, "degree {degree} on {length}: {bound} shows nothing");
            let mut greatest = 0.0f64;
            for draw in 0..4000 {
                // All others in one place is the worst possible row; random rows test the bound as well.
                let place: f64 = -length * rng.random::<f64>();
                let x: Vec<f64> = (0..columns)
                    .map(|j| match (j, draw % 2) {
                        (0, _) => 0.0,
                        (_, 0) => place,
                        _ => -length * rng.random::<f64>(),
                    })
                    .collect();
                let miss = |x: f64| clenshaw(&q, 2.0 * x / length + 1.0) - x.exp();
                let missed: f64 = x.iter().map(|&x| miss(x).powi(2)).sum();
                let row: f64 = x.iter().map(|x| (2.0 * x).exp()).sum();
                greatest = greatest.max((missed / row).sqrt());
            }
            assert!(greatest <= bound, "degree {degree} on {length}: {greatest} over {bound}");
            assert!(greatest > 0.8 * bound, "degree {degree} on {length}: {greatest} of {bound}");
        }
    }

    #[test]
    fn a_higher_degree_misses_less_and_a_longer_interval_more() {
        for columns in [16, 512] {
            let errors: Vec<f64> = (1..12).map(|degree| row_error(degree, 12.0, columns)).collect();
            assert!(errors.is_sorted_by(|a, b| a >= b), "by degree: {errors:?}");
            let errors: Vec<f64> = (1..12).map(|i| row_error(4, 3.0 * i as f64, columns)).collect();
            assert!(errors.is_sorted(), "by length: {errors:?}");
        }
    }
}
