//! The general matrix product C ← α A B + β C of matrices of any strides, on the thread that calls it.
//!
//! Loops as in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), for matrices
//! whose smaller sides are a few hundred, as those of a small language model are:
//!
//! - A block of B is packed into the second-level cache, in panels of two vectors.
//! - Six or twelve rows of A, in the first-level cache, go by all panels of the block, one number of each row a
//!   step, broadcast, and so C is written along its rows. Where A has contiguous rows it is read as it lies;
//!   otherwise (the gradient of a weight is xᵀ G) a block of rows is packed first.
//! - A tile of C, as many rows as fill the registers with sums, stays in them over the whole depth of a panel.
//!
//! The order of additions depends on the sizes and the vector extension alone, so a product is the same on any
//! number of threads and with any BLAS.

mod matrix;
mod pack;
mod vector;

use std::cell::RefCell;
use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

use self::matrix::{Matrix, Output, Rows};
use self::pack::{pack_columns, pack_rows, panel_of, rows_at_once};
use super::products::{PANEL_VECTORS, load_all, row_group};
use super::{Buffer, Extension, Kernel, Real, Simd};

/// Rows of B that are packed at most: a panel of so many and two vectors of AVX2 takes 16 KiB, half of a first-level
/// cache.
const DEPTH: usize = 256;
/// What is packed of B at a time, in bytes: half of a second-level cache of 512 KiB.
const BLOCK_BYTES: usize = 256 << 10;
/// Rows of A that are packed at a time, at most.
const ROWS: usize = 264;

/// C ← α A B + β C for A (m, depth), B (depth, n) and C (m, n); with β = 0, C is written and not read.
///
/// # Panics
/// Shapes that do not fit.
pub(crate) fn gemm<T: Real>(
    alpha: T,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    beta: T,
    c: ArrayViewMut2<'_, T>,
) {
    gemm_with(Extension::widest(), (alpha, beta), a, b, c);
}

fn gemm_with<T: Real>(
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
        return vector::times(extension, (alpha, beta), b.column(0), a.reversed_axes(), c);
    }
    if m == 1 {
        return vector::times(extension, (alpha, beta), a.row(0), b, c.row_mut(0));
    }
    // C by its rows: where its columns are the contiguous ones, Cᵀ = Bᵀ Aᵀ.
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

/// C ← A B, as operators multiply: for the benchmark of it.
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

/// A x.
pub(crate) fn times_vector<T: Real>(a: ArrayView2<'_, T>, x: ArrayView1<'_, T>) -> Vec<T> {
    let mut y = vec![T::default(); a.nrows()];
    let scales = (T::from_f64(1.0), T::default());
    vector::times(Extension::widest(), scales, x, a.reversed_axes(), ArrayViewMut1::from(&mut y));
    y
}

/// What is packed of A and of B.
#[derive(Default)]
pub(crate) struct WorkSpace<T> {
    rows: Buffer<T>,
    columns: Buffer<T>,
}

/// A thread's work space of each type.
macro_rules! work_space {
    ($name:ident, $real:ty) => {
        pub(super) fn $name<R>(work: impl FnOnce(&mut WorkSpace<$real>) -> R) -> R {
            thread_local! {
                static SPACE: RefCell<WorkSpace<$real>> = RefCell::default();
            }
            SPACE.with_borrow_mut(work)
        }
    };
}
work_space!(of_float32, f32);
work_space!(of_float64, f64);

struct Gemm<'a, T> {
    operands: Operands<'a, T>,
    beta: T,
    space: &'a mut WorkSpace<T>,
}

struct Operands<'a, T> {
    alpha: T,
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    c: Output<'a, T>,
}

impl<T: Real> Kernel<T> for Gemm<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<T>>(self, simd: S) {
        let Self { mut operands, beta, space } = self;
        let (group, width) = (row_group(simd), PANEL_VECTORS * S::LANES);
        let (m, depth, n) = (operands.a.rows, operands.a.columns, operands.b.columns);
        let step = equal_part(depth, DEPTH, 1);
        let block = equal_part(m, ROWS, group);
        let wide = equal_part(n, BLOCK_BYTES / (step * size_of::<T>()), width);
        let in_place = operands.a.has_contiguous_rows();
        space.columns.reserve(step * wide);
        if !in_place {
            space.rows.reserve(block * step);
        }
        for first in (0..depth).step_by(step) {
            let deep = first..depth.min(first + step);
            let sums = if first == 0 { beta } else { T::from_f64(1.0) };
            for left in (0..n).step_by(wide) {
                let columns = left..n.min(left + wide);
                let packed = &mut space.columns[..];
                pack_columns(simd, operands.b, deep.clone(), columns.clone(), packed);
                for top in (0..m).step_by(block) {
                    let rows = top..m.min(top + block);
                    if !in_place {
                        pack_rows(operands.a, rows.clone(), deep.clone(), group, &mut space.rows);
                    }
                    let packed_rows = (!in_place).then_some(&*space.rows);
                    let part = Part { rows, deep: deep.clone(), columns: columns.clone(), sums };
                    operands.block(simd, &part, packed_rows, &space.columns);
                }
            }
        }
    }
}

/// The size of the parts when `whole` is cut into as few equal ones as fit `most`, rounded up to a multiple of `of`.
#[inline(always)]
fn equal_part(whole: usize, most: usize, of: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most)).next_multiple_of(of)
}

/// What is computed at a time: rows of C and A, a depth, columns of C and B, and what the sums that are there
/// already are multiplied by.
struct Part<T> {
    rows: Range<usize>,
    deep: Range<usize>,
    columns: Range<usize>,
    sums: T,
}

impl<T: Real> Operands<'_, T> {
    #[inline(always)]
    fn block<S: Simd<T>>(
        &mut self,
        simd: S,
        part: &Part<T>,
        packed_rows: Option<&[T]>,
        packed: &[T],
    ) {
        let group = row_group(simd);
        let mut row = part.rows.start;
        while row < part.rows.end {
            let count = rows_at_once(part.rows.end - row, group);
            let rows = match packed_rows {
                None => self.a.rows_at(row..row + count, part.deep.clone()),
                Some(packed) => {
                    let start = (row - part.rows.start) * part.deep.len();
                    let packed = &packed[start..start + count * part.deep.len()];
                    Rows::packed(packed, count)
                }
            };
            // As many registers, so as many kernels: a group, a third of it, one row.
            if S::REGISTERS >= 32 {
                match count {
                    12 => self.row_of_tiles::<S, 12>(simd, row, rows, part, packed),
                    4 => self.row_of_tiles::<S, 4>(simd, row, rows, part, packed),
                    _ => self.row_of_tiles::<S, 1>(simd, row, rows, part, packed),
                }
            } else {
                match count {
                    6 => self.row_of_tiles::<S, 6>(simd, row, rows, part, packed),
                    2 => self.row_of_tiles::<S, 2>(simd, row, rows, part, packed),
                    _ => self.row_of_tiles::<S, 1>(simd, row, rows, part, packed),
                }
            }
            row += count;
        }
    }

    #[inline(always)]
    fn row_of_tiles<S: Simd<T>, const COUNT: usize>(
        &mut self,
        simd: S,
        row: usize,
        rows: Rows<'_, T>,
        part: &Part<T>,
        packed: &[T],
    ) {
        let mut packed = packed;
        let mut left = part.columns.start;
        while left < part.columns.end {
            let columns = left..part.columns.end.min(left + PANEL_VECTORS * S::LANES);
            let width = panel_of(simd, columns.len());
            let (panel, rest) = packed.split_at(width * part.deep.len());
            if width > S::LANES {
                let sums = sums::<T, S, COUNT, PANEL_VECTORS>(simd, rows, panel);
                self.write(simd, row, columns, part.sums, &sums);
            } else {
                let sums = sums::<T, S, COUNT, 1>(simd, rows, panel);
                self.write(simd, row, columns, part.sums, &sums);
            }
            (left, packed) = (left + width, rest);
        }
    }

    /// Writes the sums of a tile to C from `row` on, onto what is there times `there`.
    #[inline(always)]
    fn write<S: Simd<T>, const COUNT: usize, const VECTORS: usize>(
        &mut self,
        simd: S,
        row: usize,
        columns: Range<usize>,
        there: T,
        sums: &[[S::V; VECTORS]; COUNT],
    ) {
        let (alpha, scale) = (simd.splat(self.alpha), simd.splat(there));
        let keep = there != T::default();
        self.c.check(row..row + COUNT, &columns);
        let whole = columns.len() == VECTORS * S::LANES;
        for (r, sums) in sums.iter().enumerate() {
            // SAFETY: checked above.
            let to = unsafe { self.c.row(row + r, columns.clone()) };
            if whole {
                for vector in 0..VECTORS {
                    let to = &mut to[vector * S::LANES..];
                    let mut value = simd.mul(alpha, sums[vector]);
                    if keep {
                        value = simd.mul_add(scale, simd.load(to), value);
                    }
                    simd.store(value, to);
                }
            } else {
                for (to, &sum) in to.chunks_mut(S::LANES).zip(sums) {
                    let mut value = simd.mul(alpha, sum);
                    if keep {
                        let there = simd.load_partial(to, T::default());
                        value = simd.mul_add(scale, there, value);
                    }
                    simd.store_partial(value, to);
                }
            }
        }
    }
}

/// The products of rows of A with a panel.
#[inline(always)]
fn sums<T: Real, S: Simd<T>, const COUNT: usize, const VECTORS: usize>(
    simd: S,
    rows: Rows<'_, T>,
    panel: &[T],
) -> [[S::V; VECTORS]; COUNT] {
    let depth = panel.len() / (VECTORS * S::LANES);
    rows.check(COUNT, depth);
    let mut sums = [[simd.splat(T::default()); VECTORS]; COUNT];
    let mut column = rows.start;
    for b in panel.chunks_exact(VECTORS * S::LANES) {
        let vectors: [S::V; VECTORS] = load_all(simd, b);
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: row r of COUNT, at a step under the depth: checked above.
            let a = simd.splat(unsafe { *column.offset(r as isize * rows.to_row) });
            for (sum, &b) in sums.iter_mut().zip(&vectors) {
                *sum = simd.mul_add(a, b, *sum);
            }
        }
        column = column.wrapping_offset(rows.to_step);
    }
    sums
}

#[cfg(test)]
mod tests;
