//! Products of a vector with a matrix; each element of the matrix is read once, in place and in order.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, CowArray};

use super::matrix::Matrix;
use crate::numerics::{Extension, Kernel, Real, Simd};

/// y ← α x B + β y for x (depth), B (depth, n) and y (n); with β = 0, y is not read.
pub(super) fn times<T: Real>(
    extension: Extension,
    (alpha, beta): (T, T),
    x: ArrayView1<'_, T>,
    b: ArrayView2<'_, T>,
    mut y: ArrayViewMut1<'_, T>,
) {
    y.map_inplace(|y| *y = if beta == T::default() { beta } else { beta * *y });
    let x: Vec<T> = x.iter().map(|&x| alpha * x).collect();
    match y.as_slice_mut() {
        Some(y) => T::run_with(extension, Times { x: &x, b: Matrix::of(&b), y }),
        None => {
            let mut lies = y.to_vec();
            T::run_with(extension, Times { x: &x, b: Matrix::of(&b), y: &mut lies });
            y.assign(&CowArray::from(&lies));
        }
    }
}

/// y ← y + x B.
struct Times<'a, T> {
    x: &'a [T],
    b: Matrix<'a, T>,
    y: &'a mut [T],
}

/// Number of rows or columns that are processed at once.
const AT_ONCE: usize = 4;

impl<T: Real> Kernel<T> for Times<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<T>>(self, simd: S) {
        let Self { x, b, y } = self;
        let by_column = b.transposed();
        if by_column.strides[1] == 1 {
            // Each element of y is the product of x with a column.
            for (at, y) in y.chunks_mut(AT_ONCE).enumerate() {
                let first = at * AT_ONCE;
                if y.len() == AT_ONCE {
                    let mut columns: [&[T]; AT_ONCE] = [&[]; AT_ONCE];
                    for (c, slice) in columns.iter_mut().enumerate() {
                        *slice = by_column.row(first + c, 0..x.len());
                    }
                    add_dots(simd, x, columns, y);
                } else {
                    for (c, y) in y.chunks_mut(1).enumerate() {
                        add_dots(simd, x, [by_column.row(first + c, 0..x.len())], y);
                    }
                }
            }
        } else if b.has_contiguous_rows() {
            // y is a sum of rows.
            let all = 0..y.len();
            let (fours, rest) = x.as_chunks::<AT_ONCE>();
            for (at, x) in fours.iter().enumerate() {
                add_rows(simd, b, at * AT_ONCE, *x, all.clone(), y);
            }
            for (at, &x) in rest.iter().enumerate() {
                add_rows(simd, b, fours.len() * AT_ONCE + at, [x], all.clone(), y);
            }
        } else {
            for (row, &x) in x.iter().enumerate() {
                for (column, y) in y.iter_mut().enumerate() {
                    *y += x * b.at(row, column);
                }
            }
        }
    }
}

/// Adds the product of x with each column, of the same length, to the elements of y.
#[inline(always)]
fn add_dots<T: Real, S: Simd<T>, const COUNT: usize>(
    simd: S,
    x: &[T],
    columns: [&[T]; COUNT],
    y: &mut [T],
) {
    let mut sums = [[simd.splat(T::default()); COUNT]; 2];
    let whole = x.len() / (2 * S::LANES) * 2 * S::LANES;
    for start in (0..whole).step_by(2 * S::LANES) {
        for (half, sums) in sums.iter_mut().enumerate() {
            let at = start + half * S::LANES;
            let x = simd.load(&x[at..]);
            for (sum, column) in sums.iter_mut().zip(&columns) {
                *sum = simd.mul_add(x, simd.load(&column[at..]), *sum);
            }
        }
    }
    for at in (whole..x.len()).step_by(S::LANES) {
        let x = simd.load_partial(&x[at..], T::default());
        for (sum, column) in sums[0].iter_mut().zip(&columns) {
            *sum = simd.mul_add(x, simd.load_partial(&column[at..], T::default()), *sum);
        }
    }
    for (c, y) in y.iter_mut().enumerate() {
        *y += simd.sum(simd.add(sums[0][c], sums[1][c]));
    }
}

/// Adds rows of B, starting at `first` and multiplied by the elements of x, to y.
#[inline(always)]
fn add_rows<T: Real, S: Simd<T>, const COUNT: usize>(
    simd: S,
    b: Matrix<'_, T>,
    first: usize,
    x: [T; COUNT],
    columns: Range<usize>,
    y: &mut [T],
) {
    let (mut rows, mut factors): ([&[T]; COUNT], _) = ([&[]; COUNT], [simd.splat(x[0]); COUNT]);
    for r in 0..COUNT {
        rows[r] = b.row(first + r, columns.clone());
        factors[r] = simd.splat(x[r]);
    }
    for (at, y) in y.chunks_mut(S::LANES).enumerate() {
        let start = at * S::LANES;
        if y.len() == S::LANES {
            let mut sum = simd.load(y);
            for r in 0..COUNT {
                sum = simd.mul_add(factors[r], simd.load(&rows[r][start..]), sum);
            }
            simd.store(sum, y);
        } else {
            let mut sum = simd.load_partial(y, T::default());
            for r in 0..COUNT {
                let row = simd.load_partial(&rows[r][start..], T::default());
                sum = simd.mul_add(factors[r], row, sum);
            }
            simd.store_partial(sum, y);
        }
    }
}

/// A x, for a matrix of any strides.
#[cfg(feature = "lm")]
pub(crate) fn times_vector<T: Real>(a: ArrayView2<'_, T>, x: ArrayView1<'_, T>) -> Vec<T> {
    let mut y = vec![T::default(); a.nrows()];
    let scales = (T::from_f64(1.0), T::default());
    times(Extension::widest(), scales, x, a.reversed_axes(), ArrayViewMut1::from(&mut y));
    y
}
