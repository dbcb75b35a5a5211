//! Operations of a vector extension, and loops that are compiled for each extension.

use half::f16;

use super::number::Number;

/// A loop that is compiled for each vector extension. `run` must be `#[inline(always)]`, and so must
/// all functions that it calls with its `simd`.
pub(crate) trait Kernel<T: Number> {
    type Output;
    fn run<S: Simd<T>>(self, simd: S) -> Self::Output;
}

/// The most lanes of vectors whose partial loads, stores and reductions go by way of an array. AVX-512 has instructions.
const MOST_LANES: usize = 8;

/// Operations on vectors of `LANES` numbers. A value of such a type exists only if the processor has the
/// instructions, so the operations are safe to call.
pub(crate) trait Simd<T: Number>: Copy {
    type V: Copy;
    const LANES: usize;
    /// Number of vector registers, which limits the accumulators of a loop.
    const REGISTERS: usize;

    fn splat(self, value: T) -> Self::V;
    /// Loads the first `LANES` elements of a slice, which must have as many.
    fn load(self, from: &[T]) -> Self::V;
    /// Writes the first `LANES` elements of a slice, which must have as many.
    fn store(self, value: Self::V, to: &mut [T]);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    #[cfg(feature = "lm")]
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c, rounded once if the processor can.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Returns b if either is NaN; the same holds for `min`.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// 2ᵏ for x = `Number::ROUND` + k.
    fn power_of_two(self, rounded: Self::V) -> Self::V;

    /// Loads the first `LANES` float16 numbers of a slice, which must have as many.
    #[inline(always)]
    fn load_half(self, from: &[f16]) -> Self::V {
        let mut wide = [T::default(); MOST_LANES];
        wide[..Self::LANES]
            .iter_mut()
            .zip(&from[..Self::LANES])
            .for_each(|(to, from)| *to = T::from_f64(from.to_f64()));
        self.load(&wide)
    }

    /// Loads at most `LANES` elements; the other lanes get `fill`. Most vectors that may be partial are whole and use the fast
    /// path, because filling an array of a length known only at run time calls `memcpy`.
    #[inline(always)]
    fn load_partial(self, from: &[T], fill: T) -> Self::V {
        if from.len() >= Self::LANES {
            return self.load(from);
        }
        let mut whole = [fill; MOST_LANES];
        whole.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        self.load(&whole)
    }

    /// Writes as many lanes as the slice has elements, at most `LANES`.
    #[inline(always)]
    fn store_partial(self, value: Self::V, to: &mut [T]) {
        if to.len() >= Self::LANES {
            return self.store(value, to);
        }
        to.iter_mut().zip(self.lanes(value)).for_each(|(to, value)| *to = value);
    }

    /// The lanes, in the first elements of an array.
    #[inline(always)]
    fn lanes(self, value: Self::V) -> [T; MOST_LANES] {
        let mut lanes = [T::default(); MOST_LANES];
        self.store(value, &mut lanes);
        lanes
    }

    /// The sum of the lanes, always in the same order.
    #[inline(always)]
    fn sum(self, a: Self::V) -> T {
        let lanes = self.lanes(a);
        lanes[1..Self::LANES].iter().fold(lanes[0], |sum, &lane| sum + lane)
    }

    /// The largest lane; NaN is ignored, as by `least`.
    #[inline(always)]
    fn greatest(self, a: Self::V) -> T {
        let lanes = self.lanes(a);
        let greater = |most, &lane| if lane > most { lane } else { most };
        lanes[..Self::LANES].iter().fold(T::NEGATIVE_INFINITY, greater)
    }

    #[inline(always)]
    fn least(self, a: Self::V) -> T {
        let lanes = self.lanes(a);
        let infinity = T::default() - T::NEGATIVE_INFINITY;
        lanes[..Self::LANES]
            .iter()
            .fold(infinity, |least, &lane| if lane < least { lane } else { least })
    }

    /// eˣ for x ≤ 0, within 2 units in the last place where it is above 2²⁴ `Number::FLUSHED`, by Cody and Waite's reduction
    /// x = k ln 2 + r and a polynomial in r. Below `Number::LOWEST_EXPONENT` it keeps its value there.
    #[inline(always)]
    fn exp(self, x: Self::V) -> Self::V {
        // In this order, so that NaN is propagated.
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
        let e = self.mul(p, self.power_of_two(rounded));
        match T::FLUSHED {
            Some(flushed) => self.above(e, flushed),
            None => e,
        }
    }

    /// max(x − least, 0); NaN is propagated.
    #[inline(always)]
    fn above(self, x: Self::V, least: T) -> Self::V {
        let least = self.splat(least);
        self.sub(self.max(least, x), least)
    }
}
