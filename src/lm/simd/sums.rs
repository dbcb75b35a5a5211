//! Sums over slices of float32, by loops that the compiler vectorises.
//!
//! Each is written once, over fixed groups of [`LANES`] values, and compiled for AVX-512,
//! AVX2 and the baseline; the variant is that of the extension which the whole crate uses. Neither the grouping nor the order
//! of additions depends on the variant, so all of them return the same bits.

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
            #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                body($($arg),*)
            }
            match $crate::numerics::Extension::widest() {
                // SAFETY: an extension exists only where the processor has its features.
                #[cfg(target_arch = "x86_64")]
                $crate::numerics::Extension::Avx512(_) => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::numerics::Extension::Avx2(_) => unsafe { avx2($($arg),*) },
                $crate::numerics::Extension::Portable(_) => body($($arg),*),
            }
        }
    };
}

vectorised! {
    /// Σ aᵢ bᵢ, in [`LANES`] partial sums.
    pub(in crate::lm) fn dot(a: &[f32], b: &[f32]) -> f32 {
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
    pub(in crate::lm) fn sum(a: &[f32]) -> f32 {
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
