//! The linear position bias that brings one attention nearest to another.

use ndarray::Array2;

/// The most Newton steps; from 0 about ten are needed.
const STEPS: usize = 100;
/// Tolerance of the slope times the passage's length.
const NATS: f64 = 1e-9;
/// Sums that differ by less than this share count as equal.
const ROUNDING: f64 = 1e-14;

/// The c of least Σᵢ KL(Pᵢ ‖ P̃ᵢ) over all rows of all passages, with P̃ᵢⱼ ∝ Bᵢⱼ·e^(c·j) for attention P and B, (T, T) each,
/// passage by passage. The problem is convex, and its optimum has Σᵢ E_P̃ᵢ[j] = Σᵢ E_Pᵢ[j]. A linear position bias c·(j − i)
/// gives the same P̃, because softmax cancels row shifts. Returns 0 if every row has all its weight on one column.
pub(super) fn nearest_slope(attention: &[Array2<f64>], base: &[Array2<f64>]) -> f64 {
    let mean = |p: &Array2<f64>| -> f64 {
        p.indexed_iter().map(|((_, column), p)| p * column as f64).sum()
    };
    let wanted: f64 = attention.iter().map(mean).sum();
    let longest = base.iter().map(Array2::ncols).max().unwrap_or(0).max(1) as f64;
    // At this slope every column has e^37 times the weight of the one before; a larger slope changes nothing in float64.
    let most = 37.0;
    let (mut least, mut greatest, mut slope) = (-most, most, 0.0f64);
    for _ in 0..STEPS {
        let (found, variance) = moments(base, slope);
        if (found - wanted).abs() <= ROUNDING * wanted.abs() {
            break;
        }
        if found < wanted {
            least = slope;
        } else {
            greatest = slope;
        }
        let newton = slope + (wanted - found) / variance;
        // A step that leaves the bracket, for example because the variance is 0, is replaced by bisection.
        let inside = newton > least && newton < greatest;
        let next = if inside { newton } else { 0.5 * (least + greatest) };
        let step = (next - slope).abs();
        slope = next;
        if step * longest < NATS {
            break;
        }
    }
    slope
}

/// Sums over rows of the mean and the variance of the column index under P̃.
fn moments(base: &[Array2<f64>], slope: f64) -> (f64, f64) {
    let (mut means, mut variances) = (0.0, 0.0);
    for row in base.iter().flat_map(|base| base.rows()) {
        // The largest exponent is at the last or the first column with weight.
        let there = || row.iter().enumerate().filter(|(_, b)| **b > 0.0);
        let first = there().next().map_or(0, |(column, _)| column);
        let last = there().next_back().map_or(0, |(column, _)| column);
        let from = if slope > 0.0 { last } else { first } as f64;
        let (mut sum, mut mean, mut square) = (0.0, 0.0, 0.0);
        for (column, b) in there() {
            let away = column as f64 - from;
            let weight = b * (slope * away).exp();
            sum += weight;
            mean += weight * away;
            square += weight * away * away;
        }
        if sum > 0.0 {
            (mean, square) = (mean / sum, square / sum);
            means += from + mean;
            variances += square - mean * mean;
        }
    }
    (means, variances)
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use crate::heads::surgery::operation::Divergence;

    /// P̃ᵢⱼ ∝ Bᵢⱼ·e^(c·j).
    fn tilted(base: &Array2<f64>, slope: f64) -> Array2<f64> {
        let mut tilted = base.clone();
        for mut row in tilted.rows_mut() {
            let last = row.len() as f64;
            row.iter_mut()
                .enumerate()
                .for_each(|(column, b)| *b *= (slope * (column as f64 - last)).exp());
            let sum = row.sum();
            row /= sum;
        }
        tilted
    }

    fn noisy(tokens: usize, seed: usize) -> Array2<f64> {
        let mut p = Array2::from_shape_fn((tokens, tokens), |(row, column)| {
            if column > row { 0.0 } else { 1.0 + ((row * 7 + column * 13 + seed * 5) % 11) as f64 }
        });
        p.rows_mut().into_iter().for_each(|mut row| {
            let sum = row.sum();
            row /= sum;
        });
        p
    }

    #[test]
    fn a_slope_that_was_added_is_found_again() {
        for slope in [-0.3, 0.0, 0.02, 0.5, 3.0] {
            let bases = [noisy(30, 1), noisy(30, 2)];
            let attention = bases.each_ref().map(|base| tilted(base, slope));
            let found = nearest_slope(&attention, &bases);
            assert!((found - slope).abs() < 1e-9, "{found} for {slope}");
        }
    }

    #[test]
    fn no_other_slope_is_nearer() {
        let (attention, base) = (noisy(25, 3), noisy(25, 4));
        let attention = tilted(&attention, 0.2) * 0.5 + &attention * 0.5;
        let found = nearest_slope(from_ref(&attention), from_ref(&base));
        let kl = |slope: f64| Divergence::between(&attention, &tilted(&base, slope)).kl_nats;
        for off in [-0.05, -1e-3, 1e-3, 0.05] {
            assert!(kl(found + off) > kl(found), "{off} away from {found}");
        }
    }

    /// If the last column has all the weight, no slope is large enough, but the search ends.
    #[test]
    fn attention_that_no_slope_reaches_ends_the_search() {
        let base = noisy(10, 1);
        let found = nearest_slope(&[Array2::eye(10)], &[base]);
        assert!(found > 20.0, "{found}");
        assert_eq!(nearest_slope(&[Array2::eye(10)], &[Array2::eye(10)]), 0.0);
    }
}
