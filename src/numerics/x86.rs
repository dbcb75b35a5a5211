//! Vectors of 512 bits (AVX-512) and 256 bits (AVX2) for x86-64.

use std::arch::x86_64::*;

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
    /// AVX2 with fused multiply-add.
    Avx2,
    "avx2,fma",
    ["avx2", "fma"]
);

/// Defines a method that is one instruction.
macro_rules! instruction {
    ($name:ident($($argument:ident),*) = $intrinsic:ident($($passed:expr),*)) => {
        #[inline(always)]
        fn $name(self, $($argument: Self::V),*) -> Self::V {
            // SAFETY: `self` exists only where the features were detected.
            unsafe { $intrinsic($($passed),*) }
        }
    };
}

/// Defines the methods that are the same instructions for vectors of both lengths.
macro_rules! shared {
    ($real:ty, $vector:ty, $lanes:literal, $registers:literal, $bias:literal, $mantissa:literal,
     $set1:ident, $load:ident, $store:ident,
     $add:ident, $sub:ident, $mul:ident, $div:ident, $fma:ident, $max:ident, $min:ident,
     $to_bits:ident, $from_bits:ident, $set1_bits:ident, $add_bits:ident, $shift:ident) => {
        type V = $vector;
        const LANES: usize = $lanes;
        const REGISTERS: usize = $registers;

        #[inline(always)]
        fn splat(self, value: $real) -> $vector {
            // SAFETY: `self` exists only where the features were detected.
            unsafe { $set1(value) }
        }
        #[inline(always)]
        fn load(self, from: &[$real]) -> $vector {
            let from = &from[..$lanes];
            // SAFETY: as above; the slice has as many elements as are read.
            unsafe { $load(from.as_ptr()) }
        }
        #[inline(always)]
        fn store(self, value: $vector, to: &mut [$real]) {
            let to = &mut to[..$lanes];
            // SAFETY: as above; the slice has as many elements as are written.
            unsafe { $store(to.as_mut_ptr(), value) }
        }
        instruction!(add(a, b) = $add(a, b));
        instruction!(sub(a, b) = $sub(a, b));
        instruction!(mul(a, b) = $mul(a, b));
        #[cfg(feature = "lm")]
        instruction!(div(a, b) = $div(a, b));
        instruction!(mul_add(a, b, c) = $fma(a, b, c));
        instruction!(max(a, b) = $max(a, b));
        instruction!(min(a, b) = $min(a, b));
        #[inline(always)]
        fn power_of_two(self, rounded: $vector) -> $vector {
            // The shift drops the bits of `ROUND`, whose low bits are zero.
            // SAFETY: as above.
            unsafe {
                let biased = $add_bits($to_bits(rounded), $set1_bits($bias));
                $from_bits($shift::<$mantissa>(biased))
            }
        }
    };
}

/// Defines the methods specific to AVX-512: masks for partial vectors, and reductions over the lanes.
macro_rules! avx512 {
    ($real:ty, $lanes:literal, $mask:ty, $set1:ident, $mask_load:ident, $mask_store:ident,
     $sum:ident, $greatest:ident, $least:ident) => {
        #[inline(always)]
        fn load_partial(self, from: &[$real], fill: $real) -> Self::V {
            let mask = lowest_bits(from.len().min($lanes)) as $mask;
            // SAFETY: `self` exists only where the features were detected; the mask has at most as
            // many bits as the slice has elements.
            unsafe { $mask_load($set1(fill), mask, from.as_ptr()) }
        }
        #[inline(always)]
        fn store_partial(self, value: Self::V, to: &mut [$real]) {
            let mask = lowest_bits(to.len().min($lanes)) as $mask;
            // SAFETY: as above.
            unsafe { $mask_store(to.as_mut_ptr(), mask, value) }
        }
        #[inline(always)]
        fn sum(self, a: Self::V) -> $real {
            // SAFETY: as above.
            unsafe { $sum(a) }
        }
        #[inline(always)]
        fn greatest(self, a: Self::V) -> $real {
            // SAFETY: as above.
            unsafe { $greatest(a) }
        }
        #[inline(always)]
        fn least(self, a: Self::V) -> $real {
            // SAFETY: as above.
            unsafe { $least(a) }
        }
    };
}

#[inline(always)]
fn lowest_bits(count: usize) -> u32 {
    (1u32 << count) - 1
}

/// Defines partial vectors and reductions over the lanes by way of an array. Most vectors that may be partial are whole
/// and use the fast path, because filling an array of a length known only at run time calls `memcpy`.
macro_rules! avx2 {
    ($real:ty, $lanes:literal) => {
        #[inline(always)]
        fn load_partial(self, from: &[$real], fill: $real) -> Self::V {
            if from.len() >= $lanes {
                return self.load(from);
            }
            let mut whole = [fill; $lanes];
            whole.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            self.load(&whole)
        }
        #[inline(always)]
        fn store_partial(self, value: Self::V, to: &mut [$real]) {
            if to.len() >= $lanes {
                return self.store(value, to);
            }
            let lanes: [$real; $lanes] = lanes(self, value);
            to.iter_mut().zip(lanes).for_each(|(to, value)| *to = value);
        }
        #[inline(always)]
        fn sum(self, a: Self::V) -> $real {
            let lanes: [$real; $lanes] = lanes(self, a);
            lanes.iter().sum()
        }
        #[inline(always)]
        fn greatest(self, a: Self::V) -> $real {
            let lanes: [$real; $lanes] = lanes(self, a);
            lanes.into_iter().fold(<$real>::NEG_INFINITY, <$real>::max)
        }
        #[inline(always)]
        fn least(self, a: Self::V) -> $real {
            let lanes: [$real; $lanes] = lanes(self, a);
            lanes.into_iter().fold(<$real>::INFINITY, <$real>::min)
        }
    };
}

/// Converts a vector to an array of its lanes.
#[inline(always)]
fn lanes<T: Number, S: Simd<T>, const LANES: usize>(simd: S, value: S::V) -> [T; LANES] {
    let mut lanes = [T::default(); LANES];
    simd.store(value, &mut lanes);
    lanes
}

impl Simd<f32> for Avx512 {
    shared!(
        f32,
        __m512,
        16,
        32,
        127,
        23,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_div_ps,
        _mm512_fmadd_ps,
        _mm512_max_ps,
        _mm512_min_ps,
        _mm512_castps_si512,
        _mm512_castsi512_ps,
        _mm512_set1_epi32,
        _mm512_add_epi32,
        _mm512_slli_epi32
    );
    avx512!(
        f32,
        16,
        __mmask16,
        _mm512_set1_ps,
        _mm512_mask_loadu_ps,
        _mm512_mask_storeu_ps,
        _mm512_reduce_add_ps,
        _mm512_reduce_max_ps,
        _mm512_reduce_min_ps
    );
}

impl Simd<f64> for Avx512 {
    shared!(
        f64,
        __m512d,
        8,
        32,
        1023,
        52,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_add_pd,
        _mm512_sub_pd,
        _mm512_mul_pd,
        _mm512_div_pd,
        _mm512_fmadd_pd,
        _mm512_max_pd,
        _mm512_min_pd,
        _mm512_castpd_si512,
        _mm512_castsi512_pd,
        _mm512_set1_epi64,
        _mm512_add_epi64,
        _mm512_slli_epi64
    );
    avx512!(
        f64,
        8,
        __mmask8,
        _mm512_set1_pd,
        _mm512_mask_loadu_pd,
        _mm512_mask_storeu_pd,
        _mm512_reduce_add_pd,
        _mm512_reduce_max_pd,
        _mm512_reduce_min_pd
    );
}

impl Simd<f32> for Avx2 {
    shared!(
        f32,
        __m256,
        8,
        16,
        127,
        23,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_div_ps,
        _mm256_fmadd_ps,
        _mm256_max_ps,
        _mm256_min_ps,
        _mm256_castps_si256,
        _mm256_castsi256_ps,
        _mm256_set1_epi32,
        _mm256_add_epi32,
        _mm256_slli_epi32
    );
    avx2!(f32, 8);
}

impl Simd<f64> for Avx2 {
    shared!(
        f64,
        __m256d,
        4,
        16,
        1023,
        52,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        _mm256_mul_pd,
        _mm256_div_pd,
        _mm256_fmadd_pd,
        _mm256_max_pd,
        _mm256_min_pd,
        _mm256_castpd_si256,
        _mm256_castsi256_pd,
        _mm256_set1_epi64x,
        _mm256_add_epi64,
        _mm256_slli_epi64
    );
    avx2!(f64, 4);
}
