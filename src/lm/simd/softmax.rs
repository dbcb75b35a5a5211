//! Softmax of one row, and its gradient.

use crate::simd::rows::{extremes, weighted_exponentials};
use crate::simd::{Kernel, Real as _, Simd};

/// What [`softmax_terms`] found in one row of logits.
#[derive(Clone, Copy, Debug)]
pub(in crate::lm) struct RowTerms {
    /// The largest logit.
    pub(in crate::lm) max: f32,
    /// The smallest logit.
    pub(in crate::lm) min: f32,
    /// Σ e^(z − max), at least 1.
    pub(in crate::lm) sum: f64,
    /// Σ (z − max) e^(z − max), at most 0.
    weighted: f64,
}

impl RowTerms {
    /// −Σ p ln p, in nats.
    pub(in crate::lm) fn entropy(&self) -> f64 {
        self.sum.ln() - self.weighted / self.sum
    }
}

/// Replaces each logit z of a row by e^(z − max) and returns the row's extremes and sums; of these,
/// log-sum-exp = max + ln sum.
#[inline(always)]
pub(in crate::lm) fn softmax_terms<S: Simd<f32>>(simd: S, row: &mut [f32]) -> RowTerms {
    let (min, max) = extremes(simd, row);
    let (min, max) = (min as f32, max as f32);
    let (sum, weighted) = weighted_exponentials(simd, row, max);
    RowTerms { max, min, sum, weighted }
}

/// [`softmax_terms`] by the widest vectors.
pub(in crate::lm) fn softmax_terms_of(row: &mut [f32]) -> RowTerms {
    f32::run(Terms(row))
}

struct Terms<'a>(&'a mut [f32]);

impl Kernel<f32> for Terms<'_> {
    type Output = RowTerms;

    #[inline(always)]
    fn run<S: Simd<f32>>(self, simd: S) -> RowTerms {
        softmax_terms(simd, self.0)
    }
}

/// Given log Σ e^z of a row and the mean Σ p g of its own: each logit z becomes the probability
/// p = e^(z − log Σ e^z), and the gradient g of p becomes that of z, p (g − mean).
#[inline(always)]
pub(in crate::lm) fn softmax_gradient<S: Simd<f32>>(
    simd: S,
    logits: &mut [f32],
    gradient: &mut [f32],
    (log_sum_exp, mean): (f32, f32),
) {
    let (shift, mean) = (simd.splat(log_sum_exp), simd.splat(mean));
    for (z, g) in logits.chunks_mut(S::LANES).zip(gradient.chunks_mut(S::LANES)) {
        let p = simd.exp(simd.sub(simd.load_partial(z, 0.0), shift));
        simd.store_partial(p, z);
        simd.store_partial(simd.mul(p, simd.sub(simd.load_partial(g, 0.0), mean)), g);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_logits_gives_its_softmax_extremes_and_entropy() {
        for n in [1, 5, 16, 17, 100] {
            let logits: Vec<f32> = (0..n).map(|i| ((i * 37) % 11) as f32 * 0.9 - 4.0).collect();
            let mut row = logits.clone();
            let terms = softmax_terms_of(&mut row);
            let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let min = logits.iter().copied().fold(f32::INFINITY, f32::min);
            let sum: f64 = logits.iter().map(|&z| f64::from(z - max).exp()).sum();
            let entropy: f64 =
                logits.iter().map(|&z| f64::from(z - max).exp() / sum).map(|p| -p * p.ln()).sum();
            assert_eq!((terms.max, terms.min), (max, min));
            assert!((terms.sum / sum - 1.0).abs() < 1e-6, "{} {sum}", terms.sum);
            let off = (terms.entropy() - entropy).abs();
            assert!(off < 1e-5, "entropy {} against {entropy}", terms.entropy());
        }
    }
}
