//! GELU in its tanh form (Hendrycks and Gimpel 2016, arXiv 1606.08415), written as x σ(2u) with
//! u = √(2/π) (x + 0.044715 x³).

use crate::numerics::{Kernel, Real as _, Simd};

/// √(2/π).
const SLOPE: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;
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
            let bend =
                simd.mul_add(simd.splat(6.0 * SLOPE * CUBIC), square, simd.splat(2.0 * SLOPE));
            let left = simd.mul(value, simd.sub(simd.splat(1.0), sigma));
            simd.store_partial(simd.mul(g, simd.mul_add(left, bend, sigma)), at_x);
        }
    }
}

/// σ(2u) and x².
#[inline(always)]
fn gate<S: Simd<f32>>(simd: S, x: S::V) -> (S::V, S::V) {
    let square = simd.mul(x, x);
    let factor = simd.mul_add(simd.splat(-2.0 * SLOPE * CUBIC), square, simd.splat(-2.0 * SLOPE));
    // In this order, so that NaN is propagated.
    let exponent = simd.min(simd.splat(HIGHEST_EXPONENT), simd.mul(factor, x));
    let one = simd.splat(1.0);
    let sigma = simd.div(one, simd.add(one, simd.exp(exponent)));
    // A gate above 2⁻⁴⁰ is unchanged.
    (simd.above(sigma, CLOSED), square)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Extension;

    fn exact(x: f64) -> (f64, f64) {
        let u = f64::from(SLOPE) * (x + f64::from(CUBIC) * x.powi(3));
        let slope = f64::from(SLOPE) * (1.0 + 3.0 * f64::from(CUBIC) * x * x);
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
}
