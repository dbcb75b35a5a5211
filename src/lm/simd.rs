//! Vectorised loops over slices of float32: softmax and GELU with the crate's
//! vector types, sums with loops that the compiler vectorises.

use crate::numerics::rows::{extremes, weighted_exponentials};
use crate::numerics::{Kernel, Real as _, Simd};

/// √(2/π).
pub(in crate::lm) const GELU_SLOPE: f32 = 0.797_884_6;
pub(in crate::lm) const GELU_CUBIC: f32 = 0.044_715;
/// The largest x whose e^x is computed, so that it stays within float32.
const HIGHEST_EXPONENT: f32 = 87.0;
/// 2⁻⁶⁴: a gate of this or less becomes 0. Gradients times a smaller gate are subnormal, and matrix products with such
/// entries take several times longer.
const CLOSED: f32 = 5.421_011e-20;

/// Computes the GELU of each x.
pub(in crate::lm) fn gelu(x: &[f32], to: &mut [f32]) {
    f32::run(Gelu { x, to });
}

/// Replaces each x by (σ + 2 x σ (1 − σ) u′) times the gradient of its GELU, and that gradient by the GELU.
pub(in crate::lm) fn gelu_gradient(x: &mut [f32], gradient: &mut [f32]) {
    f32::run(GeluGradient { x, gradient });
}

struct Gelu<'a> {
    x: &'a [f32],
    to: &'a mut [f32],
}

impl Kernel<f32> for Gelu<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<f32>>(self, simd: S) {
        for (x, to) in self.x.chunks(S::LANES).zip(self.to.chunks_mut(S::LANES)) {
            let x = simd.load_partial(x, 0.0);
            let (sigma, _) = gate(simd, x);
            simd.store_partial(simd.mul(x, sigma), to);
        }
    }
}

struct GeluGradient<'a> {
    x: &'a mut [f32],
    gradient: &'a mut [f32],
}

impl Kernel<f32> for GeluGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<f32>>(self, simd: S) {
        for (at_x, at_g) in self.x.chunks_mut(S::LANES).zip(self.gradient.chunks_mut(S::LANES)) {
            let (x, g) = (simd.load_partial(at_x, 0.0), simd.load_partial(at_g, 0.0));
            let (sigma, square) = gate(simd, x);
            let value = simd.mul(x, sigma);
            simd.store_partial(value, at_g);
            let bend = simd.mul_add(
                simd.splat(6.0 * GELU_SLOPE * GELU_CUBIC),
                square,
                simd.splat(2.0 * GELU_SLOPE),
            );
            let left = simd.mul(value, simd.sub(simd.splat(1.0), sigma));
            simd.store_partial(simd.mul(g, simd.mul_add(left, bend, sigma)), at_x);
        }
    }
}

/// σ(2u) and x².
#[inline(always)]
fn gate<S: Simd<f32>>(simd: S, x: S::V) -> (S::V, S::V) {
    let square = simd.mul(x, x);
    let factor = simd.mul_add(
        simd.splat(-2.0 * GELU_SLOPE * GELU_CUBIC),
        square,
        simd.splat(-2.0 * GELU_SLOPE),
    );
    // In this order, so that NaN is propagated.
    let exponent = simd.min(simd.splat(HIGHEST_EXPONENT), simd.mul(factor, x));
    let one = simd.splat(1.0);
    let sigma = simd.div(one, simd.add(one, simd.exp(exponent)));
    // A gate above 2⁻⁴⁰ is unchanged.
    (simd.above(sigma, CLOSED), square)
}

/// Results of [`softmax_terms`] for one row of logits.
#[derive(Clone, Copy, Debug)]
pub(in crate::lm) struct RowTerms {
    /// The largest logit, before any softcap.
    pub(in crate::lm) max: f32,
    /// The smallest logit, before any softcap.
    pub(in crate::lm) min: f32,
    /// The largest y: the logit after any softcap and with any position bias.
    pub(in crate::lm) shift: f32,
    /// Σ e^(y − shift), at least 1.
    pub(in crate::lm) sum: f64,
    /// Σ (y − shift) e^(y − shift), at most 0.
    weighted: f64,
}

impl RowTerms {
    /// −Σ p ln p, in nats.
    pub(in crate::lm) fn entropy(&self) -> f64 {
        self.sum.ln() - self.weighted / self.sum
    }
}

/// Linear position bias of one row of logits: m times the negated relative distance −|j − i|.
#[derive(Clone, Copy, Debug)]
pub(in crate::lm) struct Slope<'a> {
    /// m.
    pub(in crate::lm) slope: f32,
    /// The negated relative distance of each of the row's logits.
    pub(in crate::lm) lags: &'a [f32],
}

/// Replaces each logit z of a row by e^(y − shift) and returns the row's extremes and sums; log-sum-exp = shift + ln sum.
/// y is z, or c tanh(z/c) with a softcap c, plus the position bias if there is one.
#[inline(always)]
pub(in crate::lm) fn softmax_terms<S: Simd<f32>>(
    simd: S,
    row: &mut [f32],
    softcap: Option<f32>,
    slope: Option<Slope<'_>>,
) -> RowTerms {
    let (min, max) = extremes(simd, row);
    let (min, max) = (min as f32, max as f32);
    let mut shift = max;
    if let Some(cap) = softcap {
        let inverse = simd.splat(1.0 / cap);
        for z in row.chunks_mut(S::LANES) {
            let share = tanh(simd, simd.mul(simd.load_partial(z, 0.0), inverse));
            simd.store_partial(simd.mul(simd.splat(cap), share), z);
        }
        shift = extremes(simd, row).1 as f32;
    }
    if let Some(Slope { slope, lags }) = slope {
        let slope = simd.splat(slope);
        for (y, lags) in row.chunks_mut(S::LANES).zip(lags.chunks(S::LANES)) {
            let added = simd.mul(slope, simd.load_partial(lags, 0.0));
            simd.store_partial(simd.add(simd.load_partial(y, 0.0), added), y);
        }
        shift = extremes(simd, row).1 as f32;
    }
    let (sum, weighted) = weighted_exponentials(simd, row, shift);
    RowTerms { max, min, shift, sum, weighted }
}

/// tanh x = 1 − 2/(1 + e²ˣ), with an absolute error of up to 3 × 10⁻⁷.
#[inline(always)]
fn tanh<S: Simd<f32>>(simd: S, x: S::V) -> S::V {
    // Above 10, tanh is 1 in float32, and e²ˣ would overflow; in this order NaN is propagated.
    let x = simd.min(simd.splat(10.0), x);
    let (one, two) = (simd.splat(1.0), simd.splat(2.0));
    let e = simd.exp(simd.mul(two, x));
    simd.sub(one, simd.div(two, simd.add(one, e)))
}

/// [`softmax_terms`] with the widest vectors.
pub(in crate::lm) fn softmax_terms_of(
    row: &mut [f32],
    softcap: Option<f32>,
    slope: Option<Slope<'_>>,
) -> RowTerms {
    f32::run(Terms { row, softcap, slope })
}

struct Terms<'a> {
    row: &'a mut [f32],
    softcap: Option<f32>,
    slope: Option<Slope<'a>>,
}

impl Kernel<f32> for Terms<'_> {
    type Output = RowTerms;

    #[inline(always)]
    fn run<S: Simd<f32>>(self, simd: S) -> RowTerms {
        softmax_terms(simd, self.row, self.softcap, self.slope)
    }
}

/// Takes log Σ e^y of a row and the mean Σ p g of its gradient. Each logit z becomes the probability
/// p = e^(y − log Σ e^y), and the gradient g of p becomes that of z, p (g − mean), times
/// 1 − (y/c)² with a softcap c. Returns the gradient of the slope m, Σ −|j − i| p (g − mean), or 0 without a
/// position bias.
#[inline(always)]
pub(in crate::lm) fn softmax_gradient<S: Simd<f32>>(
    simd: S,
    logits: &mut [f32],
    gradient: &mut [f32],
    (log_sum_exp, mean): (f32, f32),
    softcap: Option<f32>,
    slope: Option<Slope<'_>>,
) -> f64 {
    let (shift, mean) = (simd.splat(log_sum_exp), simd.splat(mean));
    let mut of_slope = 0.0;
    for (at, (z, g)) in logits.chunks_mut(S::LANES).zip(gradient.chunks_mut(S::LANES)).enumerate() {
        let (mut y, mut d) = (simd.load_partial(z, 0.0), simd.load_partial(g, 0.0));
        d = simd.sub(d, mean);
        let of_y = d;
        if let Some(cap) = softcap {
            let share = tanh(simd, simd.mul(y, simd.splat(1.0 / cap)));
            y = simd.mul(simd.splat(cap), share);
            let lost = simd.mul(share, share);
            d = simd.mul(d, simd.sub(simd.splat(1.0), lost));
        }
        let lags = slope.map(|Slope { slope, lags }| {
            let lags = simd.load_partial(&lags[at * S::LANES..][..z.len()], 0.0);
            y = simd.add(y, simd.mul(simd.splat(slope), lags));
            lags
        });
        let p = simd.exp(simd.sub(y, shift));
        if let Some(lags) = lags {
            // Lanes past the row's end have a distance of 0.
            of_slope += f64::from(simd.sum(simd.mul(lags, simd.mul(p, of_y))));
        }
        simd.store_partial(p, z);
        simd.store_partial(simd.mul(p, d), g);
    }
    of_slope
}

/// Number of values processed together, and of parallel partial sums.
const LANES: usize = 16;

/// Σ aᵢ bᵢ, in [`LANES`] partial sums.
pub(in crate::lm) fn dot(a: &[f32], b: &[f32]) -> f32 {
    f32::run(Sum { a, b, term: |a, b| a * b })
}

/// Σ aᵢ, in [`LANES`] partial sums.
pub(in crate::lm) fn sum(a: &[f32]) -> f32 {
    f32::run(Sum { a, b: a, term: |a, _| a })
}

/// A sum of terms of two slices. The compiler vectorises it for each extension, with the same sums.
struct Sum<'a, F> {
    a: &'a [f32],
    b: &'a [f32],
    term: F,
}

impl<F: Fn(f32, f32) -> f32> Kernel<f32> for Sum<'_, F> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd<f32>>(self, _simd: S) -> f32 {
        let Self { a, b, term } = self;
        let mut lanes = [0.0f32; LANES];
        let (a_groups, a_rest) = a.as_chunks::<LANES>();
        let (b_groups, b_rest) = b.as_chunks::<LANES>();
        for (a, b) in a_groups.iter().zip(b_groups) {
            for lane in 0..LANES {
                lanes[lane] += term(a[lane], b[lane]);
            }
        }
        for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
            lanes[lane] += term(*a, *b);
        }
        lanes.into_iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Extension;

    fn exact(x: f64) -> (f64, f64) {
        let u = f64::from(GELU_SLOPE) * (x + f64::from(GELU_CUBIC) * x.powi(3));
        let slope = f64::from(GELU_SLOPE) * (1.0 + 3.0 * f64::from(GELU_CUBIC) * x * x);
        let sigma = 1.0 / (1.0 + (-2.0 * u).exp());
        (x * sigma, sigma + 2.0 * x * sigma * (1.0 - sigma) * slope)
    }

    #[test]
    fn values_and_slopes_are_those_of_the_formula_on_every_extension() {
        // A length that is not a multiple of the lanes, and inputs whose exponentials exceed float32.
        let x: Vec<f32> = (-407..=407).map(|i| i as f32 * 0.05).collect();
        for extension in Extension::available() {
            let mut value = vec![0.0; x.len()];
            f32::run_with(extension, Gelu { x: &x, to: &mut value });
            let (mut gradient, mut again) = (x.clone(), vec![2.0; x.len()]);
            let work = GeluGradient { x: &mut gradient, gradient: &mut again };
            f32::run_with(extension, work);
            assert_eq!(value, again);
            for ((x, value), gradient) in x.iter().zip(value).zip(gradient) {
                let (expected, slope) = exact(f64::from(*x));
                assert!((f64::from(value) - expected).abs() < 2e-6, "{x}: {value}, not {expected}");
                let off = (f64::from(gradient) - 2.0 * slope).abs();
                assert!(off < 4e-6, "{x}: a slope of {gradient}, not {}", 2.0 * slope);
            }
        }
        let (mut below, mut gradient) = ([-9.0, -20.0, -1e6], [1e-6; 3]);
        gelu_gradient(&mut below, &mut gradient);
        assert_eq!((below, gradient), ([0.0; 3], [0.0; 3]), "nothing subnormal");
        let mut value = [0.0];
        gelu(&[f32::NAN], &mut value);
        assert!(value[0].is_nan());
    }

    #[test]
    fn a_row_of_logits_gives_its_softmax_extremes_and_entropy() {
        for n in [1, 5, 16, 17, 100] {
            let logits: Vec<f32> = (0..n).map(|i| ((i * 37) % 11) as f32 * 0.9 - 4.0).collect();
            let mut row = logits.clone();
            let terms = softmax_terms_of(&mut row, None, None);
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

    #[test]
    fn a_cap_is_c_tanh_of_z_over_c_and_leaves_nan() {
        let cap = 3.0f32;
        let mut x = -200.0f32;
        while x < 200.0 {
            // Beside a logit far above c, so that y follows from e^(y − shift).
            let mut row = [x, 1e4];
            let terms = softmax_terms_of(&mut row, Some(cap), None);
            let truth = f64::from(cap) * (f64::from(x) / f64::from(cap)).tanh();
            let found = f64::from(row[0]).ln() + f64::from(terms.shift);
            assert!((found - truth).abs() < 3e-6, "{x}: {found} against {truth}");
            assert_eq!((terms.min, terms.max), (x, 1e4));
            x += 0.37;
        }
        assert!(softmax_terms_of(&mut [f32::NAN, 0.0], Some(cap), None).sum.is_nan());
    }
}
