//! Vectors of float32 and float64: AVX-512, AVX2 with FMA, or arrays for any machine, chosen at run
//! time, or by `RANK_STUDY_INSTRUCTIONS`.
//!
//! A loop is written once, as a [`Kernel`] over any [`Simd`], and compiled for each of them. A value
//! of a `Simd` type exists only where the processor has its instructions, so what it offers is safe
//! to call.

pub(crate) mod blas;
mod buffer;
mod extension;
mod gemm;
mod pool;
mod portable;
pub(crate) mod products;
pub(crate) mod rows;
mod stripe;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use buffer::Buffer;
pub(crate) use extension::Extension;
pub use extension::{InstructionsError, check_instructions, instructions_there};
#[doc(hidden)]
pub use gemm::multiply;
pub(crate) use gemm::{gemm, product, times_vector};
pub(crate) use pool::Pool;
pub(crate) use stripe::{ColumnSums, Stripe, equal_shares, panels_of};

/// float32 or float64.
pub(crate) trait Real:
    Copy
    + Default
    + PartialOrd
    + Send
    + Sync
    + std::fmt::Debug
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::AddAssign
    + 'static
{
    const NEGATIVE_INFINITY: Self;
    /// The least x whose exponential is a normal number.
    const LOWEST_EXPONENT: Self;
    /// 1/ln 2.
    const LOG2_E: Self;
    /// ln 2 in two parts, of which the first is short enough for its products with any exponent to
    /// be exact.
    const LN_2: [Self; 2];
    /// Adding it to a number of moderate size leaves the nearest integer in the low bits.
    const ROUND: Self;
    /// 1/k! for falling k down to 0: the Taylor polynomial of eʳ whose remainder on |r| ≤ ½ ln 2 is
    /// under a tenth of the last bit.
    const INVERSE_FACTORIALS: &'static [Self];

    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;

    /// Lends what the thread keeps for packed matrices; `work` must not ask for it again.
    fn with_work_space<R>(work: impl FnOnce(&mut gemm::WorkSpace<Self>) -> R) -> R;

    /// Runs a kernel with the vectors of an extension.
    fn run_with<K: Kernel<Self>>(extension: Extension, kernel: K) -> K::Output;

    /// Runs a kernel with the vectors that the program uses: [`Extension::widest`].
    fn run<K: Kernel<Self>>(kernel: K) -> K::Output {
        Self::run_with(Extension::widest(), kernel)
    }
}

/// A loop to be compiled for each vector extension. `run` must be `#[inline(always)]`, and so must
/// all that it calls with its `simd`.
pub(crate) trait Kernel<T: Real> {
    type Output;
    fn run<S: Simd<T>>(self, simd: S) -> Self::Output;
}

/// The operations on vectors of `LANES` numbers.
pub(crate) trait Simd<T: Real>: Copy {
    type V: Copy;
    const LANES: usize;
    /// Vector registers: how many accumulators a loop may keep.
    const REGISTERS: usize;

    fn splat(self, value: T) -> Self::V;
    /// The first `LANES` of a slice, which must have them.
    fn load(self, from: &[T]) -> Self::V;
    /// At most `LANES` numbers, and `fill` in the other lanes.
    fn load_partial(self, from: &[T], fill: T) -> Self::V;
    /// Writes the first `LANES` of a slice, which must have them.
    fn store(self, value: Self::V, to: &mut [T]);
    /// Writes as many lanes as the slice has, at most `LANES`.
    fn store_partial(self, value: Self::V, to: &mut [T]);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c, rounded once where the processor can.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// b where either is NaN, and so does `min`.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// For x = `Real::ROUND` + k, the number 2ᵏ.
    fn power_of_two(self, rounded: Self::V) -> Self::V;
    /// The sum of the lanes, always in the same order.
    fn sum(self, a: Self::V) -> T;
    fn greatest(self, a: Self::V) -> T;
    fn least(self, a: Self::V) -> T;

    /// eˣ for x ≤ 0 to 2 units in the last place, by Cody and Waite's reduction x = k ln 2 + r and a
    /// polynomial in r. Under `Real::LOWEST_EXPONENT` it stays at what it is there.
    #[inline(always)]
    fn exp(self, x: Self::V) -> Self::V {
        // In this order, so that NaN stays what it is.
        let x = self.max(self.splat(T::LOWEST_EXPONENT), x);
        let rounded = self.mul_add(x, self.splat(T::LOG2_E), self.splat(T::ROUND));
        let k = self.sub(rounded, self.splat(T::ROUND));
        let minus_k = self.sub(self.splat(T::default()), k);
        let r = self.mul_add(minus_k, self.splat(T::LN_2[0]), x);
        let r = self.mul_add(minus_k, self.splat(T::LN_2[1]), r);
        let mut p = self.splat(T::INVERSE_FACTORIALS[0]);
        for &c in &T::INVERSE_FACTORIALS[1..] {
            p = self.mul_add(p, r, self.splat(c));
        }
        self.mul(p, self.power_of_two(rounded))
    }
}

impl Real for f32 {
    const NEGATIVE_INFINITY: Self = f32::NEG_INFINITY;
    const LOWEST_EXPONENT: Self = -87.3;
    const LOG2_E: Self = std::f32::consts::LOG2_E;
    const LN_2: [Self; 2] = [0.693_359_4, -2.121_944_4e-4];
    const ROUND: Self = 12_582_912.0;
    const INVERSE_FACTORIALS: &'static [Self] =
        &[1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn with_work_space<R>(work: impl FnOnce(&mut gemm::WorkSpace<Self>) -> R) -> R {
        gemm::of_float32(work)
    }

    fn run_with<K: Kernel<Self>>(extension: Extension, kernel: K) -> K::Output {
        match extension {
            #[cfg(target_arch = "x86_64")]
            Extension::Avx512(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Extension::Avx2(simd) => simd.run(kernel),
            Extension::Portable(simd) => kernel.run(simd),
        }
    }
}

impl Real for f64 {
    const NEGATIVE_INFINITY: Self = f64::NEG_INFINITY;
    const LOWEST_EXPONENT: Self = -708.0;
    const LOG2_E: Self = std::f64::consts::LOG2_E;
    const LN_2: [Self; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    const ROUND: Self = 6_755_399_441_055_744.0;
    const INVERSE_FACTORIALS: &'static [Self] = &[
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
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    fn with_work_space<R>(work: impl FnOnce(&mut gemm::WorkSpace<Self>) -> R) -> R {
        gemm::of_float64(work)
    }

    fn run_with<K: Kernel<Self>>(extension: Extension, kernel: K) -> K::Output {
        match extension {
            #[cfg(target_arch = "x86_64")]
            Extension::Avx512(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Extension::Avx2(simd) => simd.run(kernel),
            Extension::Portable(simd) => kernel.run(simd),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// eˣ of every element.
    struct Exponentials<'a, T>(&'a [T], &'a mut [T]);

    impl<T: Real> Kernel<T> for Exponentials<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd<T>>(self, simd: S) {
            for (x, out) in self.0.chunks(S::LANES).zip(self.1.chunks_mut(S::LANES)) {
                simd.store_partial(simd.exp(simd.load_partial(x, T::default())), out);
            }
        }
    }

    /// The exponentials of `x` by each extension that this machine has.
    fn by_extension<T: Real>(x: &[T]) -> Vec<(Extension, Vec<T>)> {
        let of = |extension| {
            let mut out = vec![T::default(); x.len()];
            T::run_with(extension, Exponentials(x, &mut out));
            (extension, out)
        };
        Extension::available().map(of).collect()
    }

    #[test]
    fn the_exponential_of_nan_is_nan() {
        for (extension, out) in by_extension(&[f32::NAN; 3]) {
            assert!(out.iter().all(|e| e.is_nan()), "{extension:?}: {out:?}");
        }
        for (extension, out) in by_extension(&[f64::NAN; 3]) {
            assert!(out.iter().all(|e| e.is_nan()), "{extension:?}: {out:?}");
        }
    }

    #[test]
    fn float32_exponentials_are_within_2_ulp() {
        let x: Vec<f32> = (0..2_000_003).map(|i| -87.0 * (i as f32 / 2e6).powi(2)).collect();
        for (extension, out) in by_extension(&x) {
            for (&x, &e) in x.iter().zip(&out) {
                let exact = f64::from(x).exp();
                let ulp = f64::from(f32::from_bits((exact as f32).to_bits() + 1) - exact as f32);
                let off = (f64::from(e) - exact).abs() / ulp;
                assert!(off < 2.0, "{extension:?}: e^{x} is {off:.2} ulp off");
            }
        }
    }

    #[test]
    fn float64_exponentials_are_within_2_ulp() {
        // The reference is libm's, itself within 1 ulp: a difference of at most 1 ulp keeps ours
        // within 2.
        let x: Vec<f64> = (0..1_000_003).map(|i| -708.0 * (i as f64 / 1e6).powi(2)).collect();
        for (extension, out) in by_extension(&x) {
            for (&x, &e) in x.iter().zip(&out) {
                let off = (e.to_bits() as i64 - x.max(-708.0).exp().to_bits() as i64).abs();
                assert!(off <= 1, "{extension:?}: e^{x} is {off} units from libm's");
            }
        }
    }
}
