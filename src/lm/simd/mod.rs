//! Loops over slices of float32 that must run at the speed of the vector units: softmax by the vectors
//! that the whole crate shares, and GELU and sums by loops that the compiler vectorises.
//!
//! Each of the latter is written once, over fixed groups of [`LANES`] values, and compiled for AVX-512,
//! AVX2 and the baseline; the variant is chosen at run time. Neither the grouping nor the order
//! of additions depends on the variant, so all of them return the same bits.

mod softmax;

pub(super) use softmax::{softmax_gradient, softmax_terms, softmax_terms_of};

/// Values handled together, and partial sums kept side by side.
const LANES: usize = 16;

/// Compiles one loop for every vector extension worth having.
macro_rules! vectorised {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? $body:block) => {
        $(#[$doc])*
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2")]
                fn avx512($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                if is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the processor has the features that this variant was compiled for.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: as above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}

/// eˣ to within 2 × 10⁻⁷ of its value for x in [−87, 88]; smaller x give at most 1.7 × 10⁻³⁸ and
/// larger x the value at 88.
///
/// x = n ln 2 + r with |r| ≤ ½ ln 2; eʳ is its Taylor polynomial of degree 7, whose remainder
/// r⁸/8! is below 6 × 10⁻⁹; 2ⁿ is put together from its exponent bits.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Adding 1.5 × 2²³ leaves the nearest whole number in the low bits of the mantissa.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first short enough that n times it is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.3, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    let power = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    p * f32::from_bits(power)
}

/// √(2/π), the slope of the tanh form of GELU.
const GELU_SLOPE: f32 = 0.797_884_6;
/// The cubic coefficient of the tanh form of GELU (Hendrycks and Gimpel 2016, arXiv 1606.08415).
const GELU_CUBIC: f32 = 0.044_715;

vectorised! {
    /// GELU in its tanh form, written as x σ(2u) with u = √(2/π) (x + 0.044715 x³).
    pub(super) fn gelu(input: &[f32], output: &mut [f32]) {
        for (y, &x) in output.iter_mut().zip(input) {
            let u = GELU_SLOPE * (x + GELU_CUBIC * x * x * x);
            *y = x / (1.0 + exp(-2.0 * u));
        }
    }
}

vectorised! {
    /// The gradient of [`gelu`]: σ + 2 x σ (1 − σ) u′, times the output's gradient.
    pub(super) fn gelu_gradient(input: &[f32], upstream: &[f32], output: &mut [f32]) {
        for ((out, &x), &g) in output.iter_mut().zip(input).zip(upstream) {
            let square = x * x;
            let u = GELU_SLOPE * (x + GELU_CUBIC * x * square);
            let slope = GELU_SLOPE * (1.0 + 3.0 * GELU_CUBIC * square);
            let sigma = 1.0 / (1.0 + exp(-2.0 * u));
            *out = g * (sigma + 2.0 * x * sigma * (1.0 - sigma) * slope);
        }
    }
}

vectorised! {
    /// Σ aᵢ bᵢ, in [`LANES`] partial sums.
    pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
        let mut lanes = [0.0f32; LANES];
        let (a_groups, a_rest) = a.as_chunks::<LANES>();
        let (b_groups, b_rest) = b.as_chunks::<LANES>();
        for (x, y) in a_groups.iter().zip(b_groups) {
            for lane in 0..LANES {
                lanes[lane] += x[lane] * y[lane];
            }
        }
        for (lane, (x, y)) in a_rest.iter().zip(b_rest).enumerate() {
            lanes[lane] += x * y;
        }
        lanes.into_iter().sum()
    }
}

vectorised! {
    /// Σ aᵢ, in [`LANES`] partial sums.
    pub(super) fn sum(a: &[f32]) -> f32 {
        let mut lanes = [0.0f32; LANES];
        let (groups, rest) = a.as_chunks::<LANES>();
        for group in groups {
            for lane in 0..LANES {
                lanes[lane] += group[lane];
            }
        }
        for (lane, x) in rest.iter().enumerate() {
            lanes[lane] += x;
        }
        lanes.into_iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_to_one_part_in_a_million() {
        let mut worst = 0.0f64;
        let mut x = -87.0f32;
        while x < 88.0 {
            let truth = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) / truth - 1.0).abs());
            x += 0.000_71;
        }
        assert!(worst < 2e-7, "largest relative error {worst:e}");
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NEG_INFINITY) < 1.7e-38);
    }

    #[test]
    fn the_gradient_of_gelu_is_its_slope() {
        let x: Vec<f32> = (-40..=40).map(|i| i as f32 * 0.1).collect();
        let step = 1e-2;
        let at = |shift: f32| {
            let moved: Vec<f32> = x.iter().map(|x| x + shift).collect();
            let mut y = vec![0.0; x.len()];
            gelu(&moved, &mut y);
            y
        };
        let (ahead, behind) = (at(step), at(-step));
        let mut gradient = vec![0.0; x.len()];
        gelu_gradient(&x, &vec![1.0; x.len()], &mut gradient);
        for i in 0..x.len() {
            let slope = (ahead[i] - behind[i]) / (2.0 * step);
            assert!((slope - gradient[i]).abs() < 2e-4, "at {}: {slope} {}", x[i], gradient[i]);
        }
    }
}
