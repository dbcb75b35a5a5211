//! Vectors as arrays of 128 bits, for which every 64-bit processor has registers.

use super::number::Number;
use super::simd::Simd;

/// Vectors for any processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

/// Defines an operation lane by lane.
macro_rules! lanewise {
    ($name:ident($($of:ident),*) = $value:expr) => {
        #[inline(always)]
        fn $name(self, $($of: Self::V),*) -> Self::V {
            std::array::from_fn(|lane| {
                $(let $of = $of[lane];)*
                $value
            })
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
            fn store(self, value: Self::V, to: &mut [$real]) {
                to[..$lanes].copy_from_slice(&value);
            }
            lanewise!(add(a, b) = a + b);
            lanewise!(sub(a, b) = a - b);
            lanewise!(mul(a, b) = a * b);
            #[cfg(feature = "lm")]
            lanewise!(div(a, b) = a / b);
            // Fused only if that is one instruction; otherwise it would be a slow library call.
            lanewise!(
                mul_add(a, b, c) = if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
                    a.mul_add(b, c)
                } else {
                    a * b + c
                }
            );
            lanewise!(max(a, b) = if a > b { a } else { b });
            lanewise!(min(a, b) = if a < b { a } else { b });
            #[inline(always)]
            fn power_of_two(self, rounded: Self::V) -> Self::V {
                rounded.map(|x| {
                    let k = x.to_bits().wrapping_sub(<$real>::ROUND.to_bits());
                    <$real>::from_bits(k.wrapping_add($bias) << $mantissa)
                })
            }
        }
    };
}

portable!(f32, 4, 127, 23);
portable!(f64, 2, 1023, 52);
