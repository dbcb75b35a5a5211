//! Softmax of one row of a dense matrix, where speed does not matter.

use std::ops::Range;

use ndarray::{ArrayViewMut1, NdFloat, s};

/// Replaces the logits z of the columns `seen` by e^(z − max z) / Σ e^(z − max z), and all others by 0.
/// A logit of −∞ becomes 0; a NaN makes all of `seen` NaN.
///
/// # Panics
/// If `seen` is out of range.
pub(crate) fn softmax<T: NdFloat>(mut row: ArrayViewMut1<'_, T>, seen: Range<usize>) {
    row.slice_mut(s![..seen.start]).fill(T::zero());
    row.slice_mut(s![seen.end..]).fill(T::zero());
    let mut row = row.slice_mut(s![seen]);
    let greatest = row.iter().copied().fold(T::neg_infinity(), T::max);
    row.mapv_inplace(|z| (z - greatest).exp());
    let sum = row.sum();
    row.mapv_inplace(|e| e / sum);
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn what_is_seen_sums_to_one_and_the_rest_is_zero() {
        let mut row = array![7.0f64, 900.0, 901.0, f64::NEG_INFINITY, f64::NAN];
        softmax(row.view_mut(), 1..4);
        let e = 1f64.exp();
        let expected = [0.0, 1.0 / (1.0 + e), e / (1.0 + e), 0.0, 0.0];
        let off = row.iter().zip(expected).map(|(p, q)| (p - q).abs()).fold(0.0, f64::max);
        assert!(off < 1e-15, "{row} differs by {off:e}");
        softmax(row.view_mut(), 0..5);
        assert!((row.sum() - 1.0).abs() < 1e-15, "{row}");
        row[2] = f64::NAN;
        softmax(row.view_mut(), 0..5);
        assert!(row.iter().all(|p| p.is_nan()), "{row}");
    }
}
