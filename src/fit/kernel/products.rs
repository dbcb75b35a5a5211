//! The three matrix products of one block of rows, on packed operands.
//!
//! OpenBLAS packs both operands at every call, which at head dimensions costs as much as the product.
//! Here keys are packed once an evaluation and queries once a block, and each product runs over the
//! visible part of the block only.

use std::ops::Range;

use crate::simd::{Real, Simd};

/// Vectors of keys side by side in a panel.
const PANEL_VECTORS: usize = 2;

/// The columns of a panel of packed keys.
#[inline(always)]
pub(super) fn panel_width<T: Real, S: Simd<T>>(_: S) -> usize {
    PANEL_VECTORS * S::LANES
}

/// The rows of a group of packed queries: as many as fill the registers with accumulators.
#[inline(always)]
pub(super) fn group_rows<T: Real, S: Simd<T>>(_: S) -> usize {
    if S::REGISTERS >= 32 { 12 } else { 6 }
}

/// One block's matrix of logits, and then of gradients: row-major, the column of place 0 a multiple
/// of the panel width.
pub(super) struct View<'a, T> {
    pub values: &'a [T],
    pub stride: usize,
}

/// Z = Q·Kᵀ for one group of rows and one panel of columns: `queries` is (d, group), `keys`
/// (d, panel width), `out` starts at the first row's first column.
#[inline(always)]
pub(super) fn logits<T: Real, S: Simd<T>>(
    simd: S,
    queries: &[T],
    keys: &[T],
    out: &mut [T],
    stride: usize,
) {
    if S::REGISTERS >= 32 {
        logits_of::<T, S, 12>(simd, queries, keys, out, stride);
    } else {
        logits_of::<T, S, 6>(simd, queries, keys, out, stride);
    }
}

/// Vectors side by side. A loop, not `array::from_fn`: closures are compiled without the vector
/// extension.
#[inline(always)]
fn load_all<T: Real, S: Simd<T>, const VECTORS: usize>(simd: S, from: &[T]) -> [S::V; VECTORS] {
    let mut all = [simd.splat(T::default()); VECTORS];
    for (vector, to) in all.iter_mut().enumerate() {
        *to = simd.load(&from[vector * S::LANES..]);
    }
    all
}

#[inline(always)]
fn store_all<T: Real, S: Simd<T>, const VECTORS: usize>(
    simd: S,
    all: &[S::V; VECTORS],
    to: &mut [T],
) {
    for (vector, &value) in all.iter().enumerate() {
        simd.store(value, &mut to[vector * S::LANES..]);
    }
}

#[inline(always)]
fn logits_of<T: Real, S: Simd<T>, const ROWS: usize>(
    simd: S,
    queries: &[T],
    keys: &[T],
    out: &mut [T],
    stride: usize,
) {
    let mut sums = [[simd.splat(T::default()); PANEL_VECTORS]; ROWS];
    for (q, k) in queries.chunks_exact(ROWS).zip(keys.chunks_exact(PANEL_VECTORS * S::LANES)) {
        let k: [S::V; PANEL_VECTORS] = load_all(simd, k);
        for row in 0..ROWS {
            let q = simd.splat(q[row]);
            for vector in 0..PANEL_VECTORS {
                sums[row][vector] = simd.mul_add(q, k[vector], sums[row][vector]);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let out = &mut out[row * stride..row * stride + PANEL_VECTORS * S::LANES];
        store_all(simd, sums, out);
    }
}

/// Adds G·K to the queries' gradient for `rows` of the block and the view's `columns`:
/// `keys` is (columns of the view, width), `gradient` (rows of the block, width).
#[inline(always)]
pub(super) fn add_query_gradient<T: Real, S: Simd<T>>(
    simd: S,
    view: &View<'_, T>,
    rows: Range<usize>,
    columns: Range<usize>,
    keys: &[T],
    gradient: &mut [T],
    width: usize,
) {
    let vectors = width / S::LANES;
    let mut first = 0;
    while first < vectors {
        let left = vectors - first;
        let at = first * S::LANES;
        let args = (view, rows.start, columns.clone(), keys, &mut *gradient, width, at);
        first += if S::REGISTERS >= 32 {
            match left {
                1 => query_gradient_of::<T, S, 12, 1>(simd, args),
                2 => query_gradient_of::<T, S, 12, 2>(simd, args),
                3 => query_gradient_pair::<T, S, 6, 3>(simd, args),
                _ => query_gradient_pair::<T, S, 6, 4>(simd, args),
            }
        } else {
            match left {
                1 => query_gradient_of::<T, S, 6, 1>(simd, args),
                _ => query_gradient_of::<T, S, 6, 2>(simd, args),
            }
        };
    }
}

type QueryArguments<'a, 'v, T> =
    (&'a View<'v, T>, usize, Range<usize>, &'a [T], &'a mut [T], usize, usize);

/// A group of 12 rows as two halves, where more accumulators do not fit the registers.
#[inline(always)]
fn query_gradient_pair<T: Real, S: Simd<T>, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    (view, row, columns, keys, gradient, width, at): QueryArguments<'_, '_, T>,
) -> usize {
    let first = (view, row, columns.clone(), keys, &mut *gradient, width, at);
    query_gradient_of::<T, S, ROWS, VECTORS>(simd, first);
    let second = (view, row + ROWS, columns, keys, gradient, width, at);
    query_gradient_of::<T, S, ROWS, VECTORS>(simd, second)
}

#[inline(always)]
fn query_gradient_of<T: Real, S: Simd<T>, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    (view, row, columns, keys, gradient, width, at): QueryArguments<'_, '_, T>,
) -> usize {
    let count = columns.len();
    let g: [&[T]; ROWS] =
        std::array::from_fn(|r| &view.values[(row + r) * view.stride + columns.start..][..count]);
    let mut sums = [[simd.splat(T::default()); VECTORS]; ROWS];
    for (r, sums) in sums.iter_mut().enumerate() {
        let from = &gradient[(row + r) * width + at..][..VECTORS * S::LANES];
        *sums = load_all(simd, from);
    }
    let keys = &keys[columns.start * width..columns.end * width];
    for (j, k) in keys.chunks_exact(width).enumerate() {
        let k = &k[at..at + VECTORS * S::LANES];
        let k: [S::V; VECTORS] = load_all(simd, k);
        for r in 0..ROWS {
            let g = simd.splat(g[r][j]);
            for vector in 0..VECTORS {
                sums[r][vector] = simd.mul_add(g, k[vector], sums[r][vector]);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        let to = &mut gradient[(row + r) * width + at..][..VECTORS * S::LANES];
        store_all(simd, sums, to);
    }
    VECTORS
}

/// Columns that `add_key_gradient` takes at once; it divides the panel width.
#[inline(always)]
pub(super) fn key_group<T: Real, S: Simd<T>>(_: S, width: usize) -> usize {
    match (S::REGISTERS >= 32, width / S::LANES) {
        (true, 1) => S::LANES.min(16),
        (true, 2 | 3) => S::LANES.min(8),
        (true, _) => 4,
        (false, 1) => 2 * S::LANES.min(4),
        (false, _) => S::LANES.min(4),
    }
}

/// Adds Gᵀ·Q to the keys' gradient for one group of columns from `column` of the view and `rows` of
/// the block: `queries` is (rows of the block, width), `gradient` (group, width).
#[inline(always)]
pub(super) fn add_key_gradient<T: Real, S: Simd<T>>(
    simd: S,
    view: &View<'_, T>,
    rows: Range<usize>,
    column: usize,
    queries: &[T],
    gradient: &mut [T],
    width: usize,
) {
    let vectors = width / S::LANES;
    let columns = key_group(simd, width);
    let mut first = 0;
    while first < vectors {
        let most = if S::REGISTERS >= 32 { 4 } else { 2 };
        let at = first * S::LANES;
        let args = (view, rows.clone(), column, queries, &mut *gradient, width, at);
        first += match (columns, (vectors - first).min(most)) {
            (16, _) => key_gradient_of::<T, S, 16, 1>(simd, args),
            (8, 1) => key_gradient_of::<T, S, 8, 1>(simd, args),
            (8, 2) => key_gradient_of::<T, S, 8, 2>(simd, args),
            (8, _) => key_gradient_of::<T, S, 8, 3>(simd, args),
            (4, 1) => key_gradient_of::<T, S, 4, 1>(simd, args),
            (4, 2) => key_gradient_of::<T, S, 4, 2>(simd, args),
            (4, 3) => key_gradient_of::<T, S, 4, 3>(simd, args),
            (4, _) => key_gradient_of::<T, S, 4, 4>(simd, args),
            (_, 1) => key_gradient_of::<T, S, 2, 1>(simd, args),
            (_, _) => key_gradient_of::<T, S, 2, 2>(simd, args),
        };
    }
}

type KeyArguments<'a, 'v, T> =
    (&'a View<'v, T>, Range<usize>, usize, &'a [T], &'a mut [T], usize, usize);

#[inline(always)]
fn key_gradient_of<T: Real, S: Simd<T>, const COLUMNS: usize, const VECTORS: usize>(
    simd: S,
    (view, rows, column, queries, gradient, width, at): KeyArguments<'_, '_, T>,
) -> usize {
    let mut sums = [[simd.splat(T::default()); VECTORS]; COLUMNS];
    for (c, sums) in sums.iter_mut().enumerate() {
        let from = &gradient[c * width + at..][..VECTORS * S::LANES];
        *sums = load_all(simd, from);
    }
    let g = view.values[rows.start * view.stride..].chunks(view.stride);
    let q = queries[rows.start * width..rows.end * width].chunks_exact(width);
    for (g, q) in g.zip(q) {
        let g = &g[column..column + COLUMNS];
        let q = &q[at..at + VECTORS * S::LANES];
        let q: [S::V; VECTORS] = load_all(simd, q);
        for c in 0..COLUMNS {
            let g = simd.splat(g[c]);
            for vector in 0..VECTORS {
                sums[c][vector] = simd.mul_add(g, q[vector], sums[c][vector]);
            }
        }
    }
    for (c, sums) in sums.iter().enumerate() {
        let to = &mut gradient[c * width + at..][..VECTORS * S::LANES];
        store_all(simd, sums, to);
    }
    VECTORS
}
