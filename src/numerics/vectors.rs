//! Long vectors of float64: their inner products and sums.

use super::{Kernel, Number, Real as _, Simd};

/// Numbers that are widened to float64 at once.
const CHUNK: usize = 64;
/// Number of independent sums.
const SUMS: usize = 4;

/// Σ aᵢbᵢ.
pub(crate) fn dot<A: Number, B: Number>(a: &[A], b: &[B]) -> f64 {
    f64::run(Dot(a, b))
}

/// to ← to + scale·what; returns ⟨to, with⟩, or 0 if `with` is empty. Both in one pass, since such vectors leave the cache.
pub(crate) fn add_and_dot<T: Number>(to: &mut [f64], scale: f64, what: &[T], with: &[T]) -> f64 {
    f64::run(AddAndDot { to, scale, what, with })
}

/// At most [`CHUNK`] numbers, followed by zeros.
#[inline(always)]
fn widened<T: Number>(chunk: &[T]) -> [f64; CHUNK] {
    match chunk.first_chunk::<CHUNK>() {
        Some(whole) => whole.map(Number::to_f64),
        None => {
            let mut wide = [0.0; CHUNK];
            wide.iter_mut().zip(chunk).for_each(|(to, from)| *to = from.to_f64());
            wide
        }
    }
}

#[inline(always)]
fn total<S: Simd<f64>>(simd: S, sums: [S::V; SUMS]) -> f64 {
    simd.sum(simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3])))
}

struct Dot<'a, A, B>(&'a [A], &'a [B]);

impl<A: Number, B: Number> Kernel<f64> for Dot<'_, A, B> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd<f64>>(self, simd: S) -> f64 {
        let mut sums = [simd.splat(0.0); SUMS];
        for (a, b) in self.0.chunks(CHUNK).zip(self.1.chunks(CHUNK)) {
            let (a, b) = (widened(a), widened(b));
            for first in (0..CHUNK).step_by(SUMS * S::LANES) {
                for (part, sum) in sums.iter_mut().enumerate() {
                    let place = first + part * S::LANES;
                    *sum = simd.mul_add(simd.load(&a[place..]), simd.load(&b[place..]), *sum);
                }
            }
        }
        total(simd, sums)
    }
}

struct AddAndDot<'a, T> {
    to: &'a mut [f64],
    scale: f64,
    what: &'a [T],
    with: &'a [T],
}

impl<T: Number> Kernel<f64> for AddAndDot<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd<f64>>(self, simd: S) -> f64 {
        let Self { to, scale, what, with } = self;
        let (scale, mut sums) = (simd.splat(scale), [simd.splat(0.0); SUMS]);
        let mut with = with.chunks(CHUNK);
        for (to, what) in to.chunks_mut(CHUNK).zip(what.chunks(CHUNK)) {
            let (mut sum, what) = (widened(&*to), widened(what));
            let with = with.next().map(widened);
            for first in (0..CHUNK).step_by(SUMS * S::LANES) {
                for (part, total) in sums.iter_mut().enumerate() {
                    let place = first + part * S::LANES;
                    let what = simd.load(&what[place..]);
                    let added = simd.mul_add(scale, what, simd.load(&sum[place..]));
                    simd.store(added, &mut sum[place..]);
                    if let Some(with) = &with {
                        *total = simd.mul_add(simd.load(&with[place..]), added, *total);
                    }
                }
            }
            to.copy_from_slice(&sum[..to.len()]);
        }
        total(simd, sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_of_any_length() {
        for length in [0, 1, 63, 64, 65, 200] {
            let what: Vec<f32> = (0..length).map(|i| (i % 7) as f32 - 3.0).collect();
            let with: Vec<f32> = (0..length).map(|i| (i % 5) as f32 - 1.0).collect();
            let to: Vec<f64> = (0..length).map(|i| (i % 11) as f64).collect();
            let products = |a: &[f32], b: &[f64]| -> f64 {
                a.iter().zip(b).map(|(&a, b)| f64::from(a) * b).sum()
            };
            assert_eq!(dot(&what, &to), products(&what, &to));
            let expected: Vec<f64> =
                to.iter().zip(&what).map(|(to, &what)| to - 2.0 * f64::from(what)).collect();
            for with in [&with[..], &[]] {
                let mut found = to.clone();
                let along = add_and_dot(&mut found, -2.0, &what, with);
                assert_eq!(found, expected);
                assert_eq!(along, products(with, &expected));
            }
        }
    }
}
