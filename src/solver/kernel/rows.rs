//! Passes over one row of logits: sums over the target's entries, the hinge of the logit bound, the gradient.

use crate::numerics::{Real, Simd};

/// Σ aᵢ in eight independent sums.
#[inline(always)]
pub(super) fn sum(a: &[f64]) -> f64 {
    let (a, rest) = a.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for a in a {
        for lane in 0..8 {
            sums[lane] += a[lane];
        }
    }
    for (sum, a) in sums.iter_mut().zip(rest) {
        *sum += a;
    }
    sum_of_eight(sums)
}

#[inline(always)]
fn sum_of_eight(s: [f64; 8]) -> f64 {
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

/// Writes the gradient of (slope/2)·Σⱼ max(|zⱼ| − cap, 0)² to `gradient` and returns that sum.
#[inline(always)]
pub(super) fn hinge<T: Real, S: Simd<T>>(
    simd: S,
    z: &[T],
    cap: f64,
    slope: f64,
    gradient: &mut [T],
) -> f64 {
    let zero = simd.splat(T::default());
    let (cap, minus_cap) = (simd.splat(T::from_f64(cap)), simd.splat(T::from_f64(-cap)));
    let factor = simd.splat(T::from_f64(slope));
    let mut squares = zero;
    for (z, gradient) in z.chunks(S::LANES).zip(gradient.chunks_mut(S::LANES)) {
        let z = simd.load_partial(z, T::default());
        let above = simd.max(simd.sub(z, cap), zero);
        let excess = simd.add(above, simd.min(simd.sub(z, minus_cap), zero));
        simd.store_partial(simd.mul(factor, excess), gradient);
        squares = simd.mul_add(excess, excess, squares);
    }
    0.5 * slope * simd.sum(squares).to_f64()
}

/// Replaces exponentials by a row's gradient: e ← scale·e, plus `extra` if given.
#[inline(always)]
pub(super) fn gradient<T: Real, S: Simd<T>>(simd: S, e: &mut [T], scale: f64, extra: Option<&[T]>) {
    let scale = simd.splat(T::from_f64(scale));
    match extra {
        None => {
            for e in e.chunks_mut(S::LANES) {
                simd.store_partial(simd.mul(simd.load_partial(e, T::default()), scale), e);
            }
        }
        Some(extra) => {
            for (e, extra) in e.chunks_mut(S::LANES).zip(extra.chunks(S::LANES)) {
                let extra = simd.load_partial(extra, T::default());
                let scaled = simd.mul_add(simd.load_partial(e, T::default()), scale, extra);
                simd.store_partial(scaled, e);
            }
        }
    }
}
