//! Passes over one row of logits: extremes, exponentials, the cap's hinge.
//!
//! Each pass is written once as a plain loop over lanes and compiled three times, for AVX-512, for
//! AVX2 with FMA, and for any machine; which one runs is chosen at run time.

/// Independent accumulators of a reduction, so that it vectorises and sums in one fixed order.
const LANES: usize = 8;

/// Adding this to a float64 of moderate size leaves its nearest integer in the low mantissa bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// Below this exp(x) is not a normal number; softmax loses nothing there.
const LOWEST: f64 = -708.0;
const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Taylor coefficients 1/k! for k = 13 down to 0. On |r| ≤ ½ ln 2 the first term left out is under
/// 5e-18 of the result.
const INVERSE_FACTORIALS: [f64; 14] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    // Without the instruction `mul_add` is a library call, many times slower than two roundings.
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// exp(x) for x ≤ 0 by Cody and Waite's reduction x = k ln 2 + r and a polynomial in r.
#[inline(always)]
fn exp<const FUSED: bool>(x: f64) -> f64 {
    let x = x.max(LOWEST);
    let shifted = multiply_add::<FUSED>(x, std::f64::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = multiply_add::<FUSED>(k, -LN2_HIGH, x);
    let r = multiply_add::<FUSED>(k, -LN2_LOW, r);
    let mut p = INVERSE_FACTORIALS[0];
    for &c in &INVERSE_FACTORIALS[1..] {
        p = multiply_add::<FUSED>(p, r, c);
    }
    p * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

#[inline(always)]
fn extremes_body(z: &[f64]) -> (f64, f64) {
    let mut low = [f64::INFINITY; LANES];
    let mut high = [f64::NEG_INFINITY; LANES];
    let chunks = z.chunks_exact(LANES);
    for (lane, &v) in chunks.remainder().iter().enumerate() {
        low[lane] = v;
        high[lane] = v;
    }
    for chunk in chunks {
        for lane in 0..LANES {
            low[lane] = if chunk[lane] < low[lane] { chunk[lane] } else { low[lane] };
            high[lane] = if chunk[lane] > high[lane] { chunk[lane] } else { high[lane] };
        }
    }
    (
        low.into_iter().fold(f64::INFINITY, f64::min),
        high.into_iter().fold(f64::NEG_INFINITY, f64::max),
    )
}

#[inline(always)]
fn exponentials_body<const FUSED: bool>(z: &[f64], shift: f64, out: &mut [f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let whole = z.len() - z.len() % LANES;
    for (z, out) in z[..whole].chunks_exact(LANES).zip(out[..whole].chunks_exact_mut(LANES)) {
        for lane in 0..LANES {
            let e = exp::<FUSED>(z[lane] - shift);
            out[lane] = e;
            sums[lane] += e;
        }
    }
    for (lane, (z, out)) in z[whole..].iter().zip(&mut out[whole..]).enumerate() {
        *out = exp::<FUSED>(z - shift);
        sums[lane] += *out;
    }
    sums.iter().sum()
}

#[inline(always)]
fn hinge_body(z: &[f64], cap: f64, slope: f64, gradient: &mut [f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let whole = z.len() - z.len() % LANES;
    for (z, g) in z[..whole].chunks_exact(LANES).zip(gradient[..whole].chunks_exact_mut(LANES)) {
        for lane in 0..LANES {
            let over = excess(z[lane], cap);
            g[lane] += slope * over;
            sums[lane] += over * over;
        }
    }
    for (lane, (&z, g)) in z[whole..].iter().zip(&mut gradient[whole..]).enumerate() {
        let over = excess(z, cap);
        *g += slope * over;
        sums[lane] += over * over;
    }
    0.5 * slope * sums.iter().sum::<f64>()
}

/// How far z lies outside [−cap, cap], with its sign.
#[inline(always)]
fn excess(z: f64, cap: f64) -> f64 {
    let above = z - cap;
    let below = z + cap;
    (if above > 0.0 { above } else { 0.0 }) + (if below < 0.0 { below } else { 0.0 })
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The same loops, compiled for wider vectors.

    macro_rules! compiled_for {
        ($features:literal, $extremes:ident, $exponentials:ident, $hinge:ident) => {
            #[target_feature(enable = $features)]
            pub(super) fn $extremes(z: &[f64]) -> (f64, f64) {
                super::extremes_body(z)
            }
            #[target_feature(enable = $features)]
            pub(super) fn $exponentials(z: &[f64], shift: f64, out: &mut [f64]) -> f64 {
                super::exponentials_body::<true>(z, shift, out)
            }
            #[target_feature(enable = $features)]
            pub(super) fn $hinge(z: &[f64], cap: f64, slope: f64, gradient: &mut [f64]) -> f64 {
                super::hinge_body(z, cap, slope, gradient)
            }
        };
    }

    compiled_for!("avx512f,avx512dq,avx512vl,fma", extremes_512, exponentials_512, hinge_512);
    compiled_for!("avx2,fma", extremes_256, exponentials_256, hinge_256);

    pub(super) fn has_512() -> bool {
        std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("fma")
    }

    pub(super) fn has_256() -> bool {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
}

macro_rules! dispatch {
    ($wide:ident, $half:ident, $portable:expr, ($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_512() {
                // SAFETY: the features that the function was compiled for were just detected.
                return unsafe { x86::$wide($($argument),*) };
            }
            if x86::has_256() {
                // SAFETY: as above.
                return unsafe { x86::$half($($argument),*) };
            }
        }
        $portable($($argument),*)
    }};
}

/// The least and the greatest of `z`; (∞, −∞) when empty.
pub(super) fn extremes(z: &[f64]) -> (f64, f64) {
    dispatch!(extremes_512, extremes_256, extremes_body, (z))
}

/// Writes exp(zⱼ − shift) to `out` and returns their sum; `shift` is at least max z.
pub(super) fn exponentials(z: &[f64], shift: f64, out: &mut [f64]) -> f64 {
    dispatch!(exponentials_512, exponentials_256, exponentials_body::<false>, (z, shift, out))
}

/// Adds the gradient of (slope/2)·Σⱼ max(|zⱼ| − cap, 0)² to `gradient` and returns that sum.
pub(super) fn hinge(z: &[f64], cap: f64, slope: f64, gradient: &mut [f64]) -> f64 {
    dispatch!(hinge_512, hinge_256, hinge_body, (z, cap, slope, gradient))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(n: usize) -> Vec<f64> {
        (0..n).map(|i| -700.0 * (i as f64 / n as f64).powi(2)).collect()
    }

    #[test]
    fn exponentials_are_accurate_on_every_path() {
        let z = ramp(100_003);
        let mut out = vec![0.0; z.len()];
        for (name, sum) in [
            ("chosen", exponentials(&z, 0.0, &mut out)),
            ("portable", exponentials_body::<false>(&z, 0.0, &mut out)),
        ] {
            let worst = z
                .iter()
                .zip(&out)
                .map(|(z, e)| ((e - z.exp()) / z.exp()).abs())
                .fold(0.0, f64::max);
            assert!(worst < 4.0 * f64::EPSILON, "{name}: largest relative error {worst:e}");
            let plain: f64 = z.iter().map(|z| z.exp()).sum();
            assert!((sum / plain - 1.0).abs() < 1e-12, "{name}: sum {sum} against {plain}");
        }
    }

    #[test]
    fn extremes_see_every_element() {
        for n in [1, 7, 8, 9, 31] {
            for place in 0..n {
                let mut z = vec![0.5; n];
                z[place] = -3.0;
                assert_eq!(extremes(&z).0, -3.0, "n {n}, place {place}");
                z[place] = 3.0;
                assert_eq!(extremes(&z).1, 3.0, "n {n}, place {place}");
            }
        }
    }

    #[test]
    fn the_hinge_is_zero_within_the_cap_and_quadratic_outside() {
        let z = [-5.0, -4.0, 0.0, 4.0, 4.5, 1.0, 2.0, 3.0, 7.0];
        let mut gradient = [1.0; 9];
        let value = hinge(&z, 4.0, 2.0, &mut gradient);
        assert!((value - (1.0 + 0.25 + 9.0)).abs() < 1e-12, "{value}");
        assert_eq!(gradient, [-1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 7.0]);
    }
}
