//! Vectors of 512 bits (AVX-512) and 256 bits (AVX2) for x86-64.

use std::arch::x86_64::*;

use half::f16;
use pastey::paste;

use super::number::Number;
use super::simd::{Kernel, Simd};

macro_rules! extension {
    ($(#[$doc:meta])* $name:ident, $features:literal, [$($feature:tt),*]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(());

        impl $name {
            /// The extension, if this processor has it.
            #[inline]
            #[expect(clippy::disallowed_macros, reason = "the one place that it is allowed in")]
            pub fn detect() -> Option<Self> {
                ($(is_x86_feature_detected!($feature))&&*).then_some(Self(()))
            }

            pub fn run<T: Number, K: Kernel<T>>(self, kernel: K) -> K::Output
            where
                Self: Simd<T>,
            {
                #[target_feature(enable = $features)]
                fn run<T: Number, S: Simd<T>, K: Kernel<T>>(simd: S, kernel: K) -> K::Output {
                    kernel.run(simd)
                }
                // SAFETY: `self` exists only where the features were detected.
                unsafe { run(self, kernel) }
            }
        }
    };
}

extension!(
    /// AVX-512 with its extensions for bytes, words, doublewords and quadwords.
    Avx512,
    "avx512f,avx512dq,avx512bw,avx512vl,fma",
    ["avx512f", "avx512dq", "avx512bw", "avx512vl", "fma"]
);
extension!(
    /// AVX2 with fused multiply-add and float16 loads.
    Avx2,
    "avx2,fma,f16c",
    ["avx2", "fma", "f16c"]
);

/// Defines the methods that are the same instructions for vectors of both lengths, which differ in the start of their names
/// (`$mm`), and for both types of numbers, which differ in its end (`$ps`). `$epi` and `$set` end the names for integers of the
/// same size.
macro_rules! shared {
    ($real:ty, $vector:ty, lanes: $lanes:literal, registers: $registers:literal,
     exponent: ($bias:literal, $mantissa:literal),
     $mm:ident, $ps:ident, $si:ident, $epi:ident, $set:ident) => {
        type V = $vector;
        const LANES: usize = $lanes;
        const REGISTERS: usize = $registers;

        #[inline(always)]
        fn splat(self, value: $real) -> $vector {
            // SAFETY: `self` exists only where the features were detected.
            unsafe { paste!([<$mm _set1_ $ps>](value)) }
        }
        #[inline(always)]
        fn load(self, from: &[$real]) -> $vector {
            let from = &from[..$lanes];
            // SAFETY: as above; the slice has as many elements as are read.
            unsafe { paste!([<$mm _loadu_ $ps>](from.as_ptr())) }
        }
        #[inline(always)]
        fn store(self, value: $vector, to: &mut [$real]) {
            let to = &mut to[..$lanes];
            // SAFETY: as above; the slice has as many elements as are written.
            unsafe { paste!([<$mm _storeu_ $ps>](to.as_mut_ptr(), value)) }
        }
        paste! {
            instruction!(add(a, b) -> $vector = [<$mm _add_ $ps>]);
            instruction!(sub(a, b) -> $vector = [<$mm _sub_ $ps>]);
            instruction!(mul(a, b) -> $vector = [<$mm _mul_ $ps>]);
            #[cfg(feature = "lm")]
            instruction!(div(a, b) -> $vector = [<$mm _div_ $ps>]);
            instruction!(mul_add(a, b, c) -> $vector = [<$mm _fmadd_ $ps>]);
            instruction!(max(a, b) -> $vector = [<$mm _max_ $ps>]);
            instruction!(min(a, b) -> $vector = [<$mm _min_ $ps>]);
        }
        #[inline(always)]
        fn power_of_two(self, rounded: $vector) -> $vector {
            // The shift drops the bits of `ROUND`, whose low bits are zero.
            // SAFETY: as above.
            unsafe {
                paste! {
                    let bits = [<$mm _cast $ps _ $si>](rounded);
                    let biased = [<$mm _add_ $epi>](bits, [<$mm _set1_ $set>]($bias));
                    [<$mm _cast $si _ $ps>]([<$mm _slli_ $epi>]::<$mantissa>(biased))
                }
            }
        }
    };
}

/// Defines a method that is one instruction.
macro_rules! instruction {
    ($name:ident($($argument:ident),*) -> $result:ty = $intrinsic:ident) => {
        #[inline(always)]
        fn $name(self, $($argument: Self::V),*) -> $result {
            // SAFETY: `self` exists only where the features were detected.
            unsafe { $intrinsic($($argument),*) }
        }
    };
}

/// Defines the methods specific to AVX-512: masks for partial vectors, and reductions over the lanes.
macro_rules! avx512 {
    ($real:ty, $lanes:literal, $mask:ty, $ps:ident) => {
        #[inline(always)]
        fn load_partial(self, from: &[$real], fill: $real) -> Self::V {
            let mask = lowest_bits(from.len().min($lanes)) as $mask;
            // SAFETY: `self` exists only where the features were detected; the mask has at most as
            // many bits as the slice has elements.
            unsafe { paste!([<_mm512_mask_loadu_ $ps>](self.splat(fill), mask, from.as_ptr())) }
        }
        #[inline(always)]
        fn store_partial(self, value: Self::V, to: &mut [$real]) {
            let mask = lowest_bits(to.len().min($lanes)) as $mask;
            // SAFETY: as above.
            unsafe { paste!([<_mm512_mask_storeu_ $ps>](to.as_mut_ptr(), mask, value)) }
        }
        paste! {
            instruction!(sum(a) -> $real = [<_mm512_reduce_add_ $ps>]);
            instruction!(greatest(a) -> $real = [<_mm512_reduce_max_ $ps>]);
            instruction!(least(a) -> $real = [<_mm512_reduce_min_ $ps>]);
        }
    };
}

#[inline(always)]
fn lowest_bits(count: usize) -> u32 {
    (1u32 << count) - 1
}

impl Simd<f32> for Avx512 {
    shared!(
        f32, __m512, lanes: 16, registers: 32, exponent: (127, 23),
        _mm512, ps, si512, epi32, epi32
    );
    avx512!(f32, 16, __mmask16, ps);

    #[inline(always)]
    fn load_half(self, from: &[f16]) -> Self::V {
        let from = &from[..<Self as Simd<f32>>::LANES];
        // SAFETY: `self` exists only where the features were detected; the slice has as many elements as are read.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }
}

impl Simd<f64> for Avx512 {
    shared!(
        f64, __m512d, lanes: 8, registers: 32, exponent: (1023, 52),
        _mm512, pd, si512, epi64, epi64
    );
    avx512!(f64, 8, __mmask8, pd);
}

impl Simd<f32> for Avx2 {
    shared!(
        f32, __m256, lanes: 8, registers: 16, exponent: (127, 23),
        _mm256, ps, si256, epi32, epi32
    );

    #[inline(always)]
    fn load_half(self, from: &[f16]) -> Self::V {
        let from = &from[..<Self as Simd<f32>>::LANES];
        // SAFETY: as for AVX-512.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())) }
    }
}

impl Simd<f64> for Avx2 {
    shared!(
        f64, __m256d, lanes: 4, registers: 16, exponent: (1023, 52),
        _mm256, pd, si256, epi64, epi64x
    );
}
