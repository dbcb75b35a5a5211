//! Vectors as arrays of 128 bits, for which every 64-bit processor has registers.

use super::number::Number;
use super::simd::Simd;

/// Vectors for any processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

/// a·b + c: fused only if that is one instruction; otherwise it would be a slow library call.
macro_rules! multiply_add {
    ($a:expr, $b:expr, $c:expr) => {
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
            $a.mul_add($b, $c)
        } else {
            $a * $b + $c
        }
    };
}

macro_rules! portable {
    ($real:ty, $lanes:literal, $bias:literal, $mantissa:literal) => {
        impl Simd<$real> for Portable {
            type V = [$real; $lanes];
            const LANES: usize = $lanes;
            const REGISTERS: usize = if cfg!(target_arch = "aarch64") { 32 } else { 16 };

            #[inline(always)]
            fn splat(self, value: $real) -> Self::V {
                [value; $lanes]
            }
            #[inline(always)]
            fn load(self, from: &[$real]) -> Self::V {
                std::array::from_fn(|lane| from[lane])
            }
            #[inline(always)]
            fn load_partial(self, from: &[$real], fill: $real) -> Self::V {
                if from.len() >= $lanes {
                    return self.load(from);
                }
                std::array::from_fn(|lane| from.get(lane).copied().unwrap_or(fill))
            }
            #[inline(always)]
            fn store(self, value: Self::V, to: &mut [$real]) {
                to[..$lanes].copy_from_slice(&value);
            }
            #[inline(always)]
            fn store_partial(self, value: Self::V, to: &mut [$real]) {
                if to.len() >= $lanes {
                    return self.store(value, to);
                }
                to.iter_mut().zip(value).for_each(|(to, value)| *to = value);
            }
            #[inline(always)]
            fn add(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|lane| a[lane] + b[lane])
            }
            #[inline(always)]
            fn sub(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|lane| a[lane] - b[lane])
            }
            #[inline(always)]
            fn mul(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|lane| a[lane] * b[lane])
            }
            #[cfg(feature = "lm")]
            #[inline(always)]
            fn div(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|lane| a[lane] / b[lane])
            }
            #[inline(always)]
            fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                std::array::from_fn(|lane| multiply_add!(a[lane], b[lane], c[lane]))
            }
            #[inline(always)]
            fn max(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|lane| if a[lane] > b[lane] { a[lane] } else { b[lane] })
            }
            #[inline(always)]
            fn min(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|lane| if a[lane] < b[lane] { a[lane] } else { b[lane] })
            }
            #[inline(always)]
            fn power_of_two(self, rounded: Self::V) -> Self::V {
                rounded.map(|x| {
                    let k = x.to_bits().wrapping_sub(<$real>::ROUND.to_bits());
                    <$real>::from_bits(k.wrapping_add($bias) << $mantissa)
                })
            }
            #[inline(always)]
            fn sum(self, a: Self::V) -> $real {
                a.iter().sum()
            }
            #[inline(always)]
            fn greatest(self, a: Self::V) -> $real {
                a.into_iter().fold(<$real>::NEG_INFINITY, <$real>::max)
            }
            #[inline(always)]
            fn least(self, a: Self::V) -> $real {
                a.into_iter().fold(<$real>::INFINITY, <$real>::min)
            }
        }
    };
}

portable!(f32, 4, 127, 23);
portable!(f64, 2, 1023, 52);
