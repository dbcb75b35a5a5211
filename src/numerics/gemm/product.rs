//! The general matrix product, and the plain one.

use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use super::by_tiles::{Gemm, Operands};
use super::by_vector;
use super::matrix::{Matrix, Output};
use crate::numerics::{Extension, Real};

/// C ← α A B + β C for A (m, depth), B (depth, n) and C (m, n); with β = 0, C is not read.
///
/// # Panics
/// If the shapes do not match.
pub(crate) fn gemm<T: Real>(
    alpha: T,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    beta: T,
    c: ArrayViewMut2<'_, T>,
) {
    gemm_with(Extension::widest(), (alpha, beta), a, b, c);
}

pub(super) fn gemm_with<T: Real>(
    extension: Extension,
    (alpha, beta): (T, T),
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    mut c: ArrayViewMut2<'_, T>,
) {
    let ((m, depth), (depth_of_b, n)) = (a.dim(), b.dim());
    let fits = depth == depth_of_b && c.dim() == (m, n);
    assert!(fits, "a product of {m} × {depth} and {depth_of_b} × {n} into {:?}", c.dim());
    if m == 0 || n == 0 {
        return;
    }
    if depth == 0 {
        c.map_inplace(|c| *c = if beta == T::default() { beta } else { beta * *c });
        return;
    }
    if n == 1 {
        let c = c.column_mut(0);
        return by_vector::times(extension, (alpha, beta), b.column(0), a.reversed_axes(), c);
    }
    if m == 1 {
        return by_vector::times(extension, (alpha, beta), a.row(0), b, c.row_mut(0));
    }
    // Computes rows of C. If its columns are the contiguous ones, uses Cᵀ = Bᵀ Aᵀ.
    if c.strides()[1] != 1 {
        if c.strides()[0] == 1 {
            let (a, b, c) = (b.reversed_axes(), a.reversed_axes(), c.reversed_axes());
            return gemm_with(extension, (alpha, beta), a, b, c);
        }
        let mut rows = Array2::from_shape_fn((m, n), |at| c[at]);
        gemm_with(extension, (alpha, beta), a, b, rows.view_mut());
        c.assign(&rows);
        return;
    }
    let (a, b, c) = (Matrix::of(&a), Matrix::of(&b), Output::of(&mut c));
    let operands = Operands { alpha, a, b, c };
    T::with_work_space(|space| T::run_with(extension, Gemm { operands, beta, space }));
}

/// C ← A B as in the operators of a model; public for a benchmark.
#[doc(hidden)]
pub fn multiply(a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>, c: ArrayViewMut2<'_, f32>) {
    gemm(1.0, a, b, 0.0, c);
}

/// A B.
pub(crate) fn product<T: Real>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>) -> Array2<T> {
    let mut c = Array2::from_elem((a.nrows(), b.ncols()), T::default());
    gemm(T::from_f64(1.0), a, b, T::default(), c.view_mut());
    c
}
