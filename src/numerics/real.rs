//! Runs kernels with the vectors that the processor has.

use std::cell::RefCell;

use super::extension::Extension;
use super::gemm::WorkSpace;
use super::number::Number;
use super::simd::Kernel;

/// A number type with vectors.
pub(crate) trait Real: Number {
    /// Lends the thread's buffers for packed matrices; `work` must not request them again.
    fn with_work_space<R>(work: impl FnOnce(&mut WorkSpace<Self>) -> R) -> R;

    /// Runs a kernel with the vectors of an extension.
    fn run_with<K: Kernel<Self>>(extension: Extension, kernel: K) -> K::Output;

    /// Runs a kernel with the extension that the program uses: [`Extension::widest`].
    fn run<K: Kernel<Self>>(kernel: K) -> K::Output {
        Self::run_with(Extension::widest(), kernel)
    }
}

macro_rules! real {
    ($real:ty) => {
        impl Real for $real {
            fn with_work_space<R>(work: impl FnOnce(&mut WorkSpace<Self>) -> R) -> R {
                thread_local! {
                    static SPACE: RefCell<WorkSpace<$real>> = RefCell::default();
                }
                SPACE.with_borrow_mut(work)
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
    };
}
real!(f32);
real!(f64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Simd;

    /// Computes eˣ for every element.
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

    /// Step between the tested numbers; large for Miri, which is an interpreter.
    const EVERY: usize = if cfg!(miri) { 1009 } else { 1 };

    /// The exponentials of `x` with each extension that this machine has.
    fn by_extension<T: Real>(x: &[T]) -> Vec<(Extension, Vec<T>)> {
        let of = |extension| {
            let mut out = vec![T::default(); x.len()];
            T::run_with(extension, Exponentials(x, &mut out));
            (extension, out)
        };
        Extension::available().map(of).collect()
    }

    #[test]
    fn the_exponential_of_nan_is_nan_and_small_float32_exponentials_are_zero() {
        for (extension, out) in by_extension(&[f32::NAN, -63.0, -89.0, -1e30, f32::NEG_INFINITY]) {
            assert!(out[0].is_nan() && out[1..] == [0.0; 4], "{extension:?}: {out:?}");
        }
        for (extension, out) in by_extension(&[f64::NAN; 3]) {
            assert!(out.iter().all(|e| e.is_nan()), "{extension:?}: {out:?}");
        }
    }

    #[test]
    fn float32_exponentials_are_within_2_ulp() {
        let x: Vec<f32> =
            (0..2_000_003).step_by(EVERY).map(|i| -45.0 * (i as f32 / 2e6).powi(2)).collect();
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
        // The reference is libm, which is within 1 ulp. A difference of at most 1 ulp keeps our result
        // within 2.
        let x: Vec<f64> =
            (0..1_000_003).step_by(EVERY).map(|i| -708.0 * (i as f64 / 1e6).powi(2)).collect();
        for (extension, out) in by_extension(&x) {
            for (&x, &e) in x.iter().zip(&out) {
                let off = (e.to_bits() as i64 - x.max(-708.0).exp().to_bits() as i64).abs();
                assert!(off <= 1, "{extension:?}: e^{x} is {off} units from libm's");
            }
        }
    }
}
