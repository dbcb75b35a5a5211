//! Passes over one row of logits, from which softmax is computed.

use super::{Number, Simd};

/// The smallest and the largest element of `z`; (∞, −∞) if it is empty.
#[inline(always)]
pub(crate) fn extremes<T: Number, S: Simd<T>>(simd: S, z: &[T]) -> (f64, f64) {
    let Some(&first) = z.first() else {
        return (f64::INFINITY, f64::NEG_INFINITY);
    };
    let mut low = [simd.splat(first); 2];
    let mut high = low;
    let mut pairs = z.chunks_exact(2 * S::LANES);
    for pair in &mut pairs {
        for (half, (low, high)) in low.iter_mut().zip(&mut high).enumerate() {
            let z = simd.load(&pair[half * S::LANES..]);
            *low = simd.min(*low, z);
            *high = simd.max(*high, z);
        }
    }
    for rest in pairs.remainder().chunks(S::LANES) {
        let z = simd.load_partial(rest, first);
        low[0] = simd.min(low[0], z);
        high[0] = simd.max(high[0], z);
    }
    let low = simd.least(simd.min(low[0], low[1]));
    let high = simd.greatest(simd.max(high[0], high[1]));
    (low.to_f64(), high.to_f64())
}

/// Replaces every z by exp(z − shift) and returns their sum. `shift` must be at least max z.
#[inline(always)]
pub(crate) fn exponentials<T: Number, S: Simd<T>>(simd: S, z: &mut [T], shift: T) -> f64 {
    let shift = simd.splat(shift);
    let mut sums = [simd.splat(T::default()); 2];
    let mut pairs = z.chunks_exact_mut(2 * S::LANES);
    for pair in &mut pairs {
        for (half, sum) in sums.iter_mut().enumerate() {
            let place = half * S::LANES;
            let e = simd.exp(simd.sub(simd.load(&pair[place..]), shift));
            simd.store(e, &mut pair[place..]);
            *sum = simd.add(*sum, e);
        }
    }
    for rest in pairs.into_remainder().chunks_mut(S::LANES) {
        // Lanes past the end add 0 or e^{LOWEST}, which is negligible beside the 1 of the largest.
        let e = simd.exp(simd.sub(simd.load_partial(rest, T::NEGATIVE_INFINITY), shift));
        simd.store_partial(e, rest);
        sums[0] = simd.add(sums[0], e);
    }
    simd.sum(simd.add(sums[0], sums[1])).to_f64()
}

/// Replaces every z by exp(z − shift) and returns Σ e^(z − shift) and Σ (z − shift) e^(z − shift). `shift` must be at
/// least max z.
#[cfg(feature = "lm")]
#[inline(always)]
pub(crate) fn weighted_exponentials<T: Number, S: Simd<T>>(
    simd: S,
    z: &mut [T],
    shift: T,
) -> (f64, f64) {
    let shift = simd.splat(shift);
    let zero = simd.splat(T::default());
    let (mut sums, mut weighted) = ([zero; 2], [zero; 2]);
    let mut pairs = z.chunks_exact_mut(2 * S::LANES);
    for pair in &mut pairs {
        for half in 0..2 {
            let place = half * S::LANES;
            let shifted = simd.sub(simd.load(&pair[place..]), shift);
            let e = simd.exp(shifted);
            simd.store(e, &mut pair[place..]);
            sums[half] = simd.add(sums[half], e);
            weighted[half] = simd.mul_add(e, shifted, weighted[half]);
        }
    }
    let lowest = simd.splat(T::LOWEST_EXPONENT);
    for rest in pairs.into_remainder().chunks_mut(S::LANES) {
        // Lanes past the end add 0, or e^{LOWEST} and a hundred times that, which is negligible beside the 1 of
        // the largest.
        let shifted = simd.sub(simd.load_partial(rest, T::NEGATIVE_INFINITY), shift);
        let e = simd.exp(shifted);
        simd.store_partial(e, rest);
        sums[0] = simd.add(sums[0], e);
        weighted[0] = simd.mul_add(e, simd.max(shifted, lowest), weighted[0]);
    }
    let total = |two: [S::V; 2]| simd.sum(simd.add(two[0], two[1])).to_f64();
    (total(sums), total(weighted))
}
