//! The three matrix products of attention on packed operands: Q·Kᵀ of a group of rows and a panel of
//! columns and, with a matrix G read in place, G·K and Gᵀ·Q.
//!
//! OpenBLAS packs both operands at every call, which costs as much as the product for a small d_head.
//! Here keys are packed once and queries once per block, and each product covers only the part
//! of the block that the mask allows.

use std::ops::Range;

use super::tile::{PANEL_VECTORS, Rows, load_all, sums};
pub(crate) use super::tile::{panel_width, row_group};
use super::{Number, Simd};

/// The matrix G of a block, and the packed rows that it is multiplied with.
pub(crate) struct Operands<'a, T> {
    /// Row-major; the index of its first column in the whole matrix is a multiple of the panel width.
    pub values: &'a [T],
    pub stride: usize,
    /// (columns, width) for G·K, (rows, width) for Gᵀ·Q.
    pub packed: &'a [T],
    /// d rounded up to whole vectors.
    pub width: usize,
}

/// Whether sums are added to the existing values or replace them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Add,
    Replace,
}

/// Transposes rows of `width` numbers, of which the first d are used, to (d, rows) with `count` rows.
#[inline(always)]
pub(crate) fn transpose<T: Copy>(rows: &[T], width: usize, to: &mut [T], count: usize) {
    for (t, to) in to.chunks_exact_mut(count).enumerate() {
        for (to, row) in to.iter_mut().zip(rows.chunks_exact(width)) {
            *to = row[t];
        }
    }
}

/// Z = Q·Kᵀ for one group of rows and one panel of columns. `queries` is (d, group), `keys` is
/// (d, panel width), and `out` starts at the first row's first column.
#[inline(always)]
pub(crate) fn by_transposed<T: Number, S: Simd<T>>(
    simd: S,
    queries: &[T],
    keys: &[T],
    out: &mut [T],
    stride: usize,
) {
    if S::REGISTERS >= 32 {
        by_transposed_of::<T, S, 12>(simd, queries, keys, out, stride);
    } else {
        by_transposed_of::<T, S, 6>(simd, queries, keys, out, stride);
    }
}

#[inline(always)]
fn store_all<T: Number, S: Simd<T>, const VECTORS: usize>(
    simd: S,
    all: &[S::V; VECTORS],
    to: &mut [T],
) {
    for (vector, &value) in all.iter().enumerate() {
        simd.store(value, &mut to[vector * S::LANES..]);
    }
}

#[inline(always)]
fn by_transposed_of<T: Number, S: Simd<T>, const ROWS: usize>(
    simd: S,
    queries: &[T],
    keys: &[T],
    out: &mut [T],
    stride: usize,
) {
    let sums = sums::<T, S, ROWS, PANEL_VECTORS>(simd, Rows::packed(queries, ROWS), keys);
    for (row, sums) in sums.iter().enumerate() {
        let out = &mut out[row * stride..row * stride + PANEL_VECTORS * S::LANES];
        store_all(simd, sums, out);
    }
}

/// One part of a product G·K: the group of rows starting at `row` of the block, the
/// columns `columns` of the block, and the vectors starting at `at` of the width.
struct RowsPart {
    row: usize,
    columns: Range<usize>,
    at: usize,
    write: Write,
}

/// G·K for the group of rows starting at `row` of the block and for `columns`; `to` is (rows of the block,
/// width).
#[inline(always)]
pub(crate) fn times<T: Number, S: Simd<T>>(
    simd: S,
    operands: &Operands<'_, T>,
    row: usize,
    columns: Range<usize>,
    write: Write,
    to: &mut [T],
) {
    let mut at = 0;
    while at < operands.width {
        let part = RowsPart { row, columns: columns.clone(), at, write };
        let vectors = if S::REGISTERS >= 32 {
            match (operands.width - at) / S::LANES {
                1 => times_of::<T, S, 12, 1>(simd, operands, &part, to),
                2 => times_of::<T, S, 12, 2>(simd, operands, &part, to),
                3 => times_halves::<T, S, 6, 3>(simd, operands, part, to),
                _ => times_halves::<T, S, 6, 4>(simd, operands, part, to),
            }
        } else {
            match (operands.width - at) / S::LANES {
                1 => times_of::<T, S, 6, 1>(simd, operands, &part, to),
                _ => times_of::<T, S, 6, 2>(simd, operands, &part, to),
            }
        };
        at += vectors * S::LANES;
    }
}

/// Processes a group of 12 rows in two halves, because more accumulators do not fit into the registers.
#[inline(always)]
fn times_halves<T: Number, S: Simd<T>, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    operands: &Operands<'_, T>,
    part: RowsPart,
    to: &mut [T],
) -> usize {
    times_of::<T, S, ROWS, VECTORS>(simd, operands, &part, to);
    let second = RowsPart { row: part.row + ROWS, ..part };
    times_of::<T, S, ROWS, VECTORS>(simd, operands, &second, to)
}

#[inline(always)]
fn times_of<T: Number, S: Simd<T>, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    operands: &Operands<'_, T>,
    part: &RowsPart,
    to: &mut [T],
) -> usize {
    let Operands { values, stride, packed, width } = *operands;
    let RowsPart { row, ref columns, at, write } = *part;
    let g: [&[T]; ROWS] =
        std::array::from_fn(|r| &values[(row + r) * stride + columns.start..][..columns.len()]);
    let mut sums = [[simd.splat(T::default()); VECTORS]; ROWS];
    if write == Write::Add {
        for (r, sums) in sums.iter_mut().enumerate() {
            *sums = load_all(simd, &to[(row + r) * width + at..][..VECTORS * S::LANES]);
        }
    }
    let keys = &packed[columns.start * width..columns.end * width];
    for (j, k) in keys.chunks_exact(width).enumerate() {
        let k = &k[at..at + VECTORS * S::LANES];
        let k: [S::V; VECTORS] = load_all(simd, k);
        for r in 0..ROWS {
            // SAFETY: there are as many keys as columns, which is the length of each row of G.
            let g = simd.splat(unsafe { *g[r].get_unchecked(j) });
            for vector in 0..VECTORS {
                sums[r][vector] = simd.mul_add(g, k[vector], sums[r][vector]);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        store_all(simd, sums, &mut to[(row + r) * width + at..][..VECTORS * S::LANES]);
    }
    VECTORS
}

/// Number of columns that `transposed_times` processes at once; it divides the panel width.
#[inline(always)]
pub(crate) fn column_group<T: Number, S: Simd<T>>(_: S, width: usize) -> usize {
    match (S::REGISTERS >= 32, width / S::LANES) {
        (true, 1) => S::LANES.min(16),
        (true, 2 | 3) => S::LANES.min(8),
        (true, _) => 4,
        (false, 1) => 2 * S::LANES.min(4),
        (false, _) => S::LANES.min(4),
    }
}

/// One part of a product Gᵀ·Q: the rows `rows` of the block, a group of columns starting at
/// `column` of the block, and the vectors starting at `at` of the width.
struct ColumnsPart {
    rows: Range<usize>,
    column: usize,
    at: usize,
    write: Write,
}

/// Gᵀ·Q for `rows` of the block and one group of columns starting at `column`; `to` is (group, width).
#[inline(always)]
pub(crate) fn transposed_times<T: Number, S: Simd<T>>(
    simd: S,
    operands: &Operands<'_, T>,
    rows: Range<usize>,
    column: usize,
    write: Write,
    to: &mut [T],
) {
    let columns = column_group(simd, operands.width);
    let most = if S::REGISTERS >= 32 { 4 } else { 2 };
    let mut at = 0;
    while at < operands.width {
        let part = &ColumnsPart { rows: rows.clone(), column, at, write };
        let vectors = match (columns, ((operands.width - at) / S::LANES).min(most)) {
            (16, _) => transposed_times_of::<T, S, 16, 1>(simd, operands, part, to),
            (8, 1) => transposed_times_of::<T, S, 8, 1>(simd, operands, part, to),
            (8, 2) => transposed_times_of::<T, S, 8, 2>(simd, operands, part, to),
            (8, _) => transposed_times_of::<T, S, 8, 3>(simd, operands, part, to),
            (4, 1) => transposed_times_of::<T, S, 4, 1>(simd, operands, part, to),
            (4, 2) => transposed_times_of::<T, S, 4, 2>(simd, operands, part, to),
            (4, 3) => transposed_times_of::<T, S, 4, 3>(simd, operands, part, to),
            (4, _) => transposed_times_of::<T, S, 4, 4>(simd, operands, part, to),
            (_, 1) => transposed_times_of::<T, S, 2, 1>(simd, operands, part, to),
            (_, _) => transposed_times_of::<T, S, 2, 2>(simd, operands, part, to),
        };
        at += vectors * S::LANES;
    }
}

#[inline(always)]
fn transposed_times_of<T: Number, S: Simd<T>, const COLUMNS: usize, const VECTORS: usize>(
    simd: S,
    operands: &Operands<'_, T>,
    part: &ColumnsPart,
    to: &mut [T],
) -> usize {
    let Operands { values, stride, packed, width } = *operands;
    let ColumnsPart { ref rows, column, at, write } = *part;
    let mut sums = [[simd.splat(T::default()); VECTORS]; COLUMNS];
    if write == Write::Add {
        for (c, sums) in sums.iter_mut().enumerate() {
            *sums = load_all(simd, &to[c * width + at..][..VECTORS * S::LANES]);
        }
    }
    let places = rows.start * stride + column..(rows.end - 1) * stride + column + COLUMNS;
    let (g, q) = (&values[places], &packed[rows.start * width..rows.end * width]);
    for (row, q) in q.chunks_exact(width).enumerate() {
        let q: [S::V; VECTORS] = load_all(simd, &q[at..at + VECTORS * S::LANES]);
        for (c, sums) in sums.iter_mut().enumerate() {
            // SAFETY: there is at least one row, and the last one ends where these values end.
            let g = simd.splat(unsafe { *g.get_unchecked(row * stride + c) });
            for (sum, &q) in sums.iter_mut().zip(&q) {
                *sum = simd.mul_add(g, q, *sum);
            }
        }
    }
    for (c, sums) in sums.iter().enumerate() {
        store_all(simd, sums, &mut to[c * width + at..][..VECTORS * S::LANES]);
    }
    VECTORS
}
