//! Packing: operands of a product, copied to the order in which its loops read them.

use std::ops::Range;

use super::matrix::Matrix;
use crate::numerics::tile::PANEL_VECTORS;
use crate::numerics::{Buffer, Number, Simd};

/// Buffers for the packed parts of A and of B.
#[derive(Default)]
pub(crate) struct WorkSpace<T> {
    pub(super) rows: Buffer<T>,
    pub(super) columns: Buffer<T>,
}

/// The number of the remaining rows that are processed at once: a group, a third of it, or one.
#[inline(always)]
pub(super) fn rows_at_once(left: usize, group: usize) -> usize {
    match left {
        left if left >= group => group,
        left if left >= group / 3 => group / 3,
        _ => 1,
    }
}

/// The width of a panel for `columns` columns.
#[inline(always)]
pub(super) fn panel_of<T: Number, S: Simd<T>>(_: S, columns: usize) -> usize {
    if columns > S::LANES { PANEL_VECTORS * S::LANES } else { S::LANES }
}

/// Packs rows of A as (depth, count), for each count of rows that are processed at once.
pub(super) fn pack_rows<T: Number>(
    a: Matrix<'_, T>,
    rows: Range<usize>,
    deep: Range<usize>,
    group: usize,
    to: &mut [T],
) {
    let (mut row, mut to) = (rows.start, to);
    while row < rows.end {
        let count = rows_at_once(rows.end - row, group);
        let (here, rest) = to.split_at_mut(count * deep.len());
        pack_of(count, a.transposed(), deep.clone(), row..row + count, here);
        (row, to) = (row + count, rest);
    }
}

/// Packs columns of B as panels of (depth, width), with zeros after the last column.
#[inline(always)]
pub(super) fn pack_columns<T: Number, S: Simd<T>>(
    simd: S,
    b: Matrix<'_, T>,
    deep: Range<usize>,
    columns: Range<usize>,
    to: &mut [T],
) {
    let (mut left, mut to) = (columns.start, to);
    while left < columns.end {
        let here = left..columns.end.min(left + PANEL_VECTORS * S::LANES);
        let width = panel_of(simd, here.len());
        let (panel, rest) = to.split_at_mut(width * deep.len());
        pack_of(width, b, deep.clone(), here, panel);
        (left, to) = (left + width, rest);
    }
}

/// [`pack`] with a width known only at run time.
fn pack_of<T: Number>(
    width: usize,
    from: Matrix<'_, T>,
    deep: Range<usize>,
    columns: Range<usize>,
    to: &mut [T],
) {
    match width {
        32 => pack::<T, 32>(from, deep, columns, to),
        16 => pack::<T, 16>(from, deep, columns, to),
        12 => pack::<T, 12>(from, deep, columns, to),
        8 => pack::<T, 8>(from, deep, columns, to),
        6 => pack::<T, 6>(from, deep, columns, to),
        4 => pack::<T, 4>(from, deep, columns, to),
        2 => pack::<T, 2>(from, deep, columns, to),
        1 => pack::<T, 1>(from, deep, columns, to),
        _ => unreachable!("groups are of 1 to 12 rows, panels of 2 to 32 columns"),
    }
}

/// Packs `columns` of the rows `deep` of a matrix as (rows, WIDTH), with zeros after the last column.
fn pack<T: Number, const WIDTH: usize>(
    from: Matrix<'_, T>,
    deep: Range<usize>,
    columns: Range<usize>,
    to: &mut [T],
) {
    let (to, _) = to.as_chunks_mut::<WIDTH>();
    let turned = from.transposed();
    if from.has_contiguous_rows() && columns.len() == WIDTH {
        for (row, to) in deep.zip(to) {
            to.copy_from_slice(from.row(row, columns.clone()));
        }
    } else if turned.has_contiguous_rows() && columns.len() == WIDTH {
        // In squares, so that reads and writes of one square stay in registers.
        let mut start = deep.start;
        let (squares, rest) = to.as_chunks_mut::<SQUARE>();
        for to in squares {
            transpose_rows(turned, columns.start, start..start + SQUARE, to);
            start += SQUARE;
        }
        for (column, place) in columns.zip(0..) {
            let from = turned.row(column, start..deep.end);
            for (to, &from) in rest.iter_mut().zip(from) {
                to[place] = from;
            }
        }
    } else {
        for (row, to) in deep.zip(to) {
            *to = [T::default(); WIDTH];
            for (column, to) in columns.clone().zip(to) {
                *to = from.at(row, column);
            }
        }
    }
}

/// Side of the squares in which a matrix is transposed.
const SQUARE: usize = 8;

/// The elements `places` of WIDTH rows starting at `first`, as (places, WIDTH).
#[inline(always)]
fn transpose_rows<T: Number, const WIDTH: usize>(
    from: Matrix<'_, T>,
    first: usize,
    places: Range<usize>,
    to: &mut [[T; WIDTH]; SQUARE],
) {
    let mut start = 0;
    while start + SQUARE <= WIDTH {
        let mut square = [[T::default(); SQUARE]; SQUARE];
        for (r, row) in square.iter_mut().enumerate() {
            row.copy_from_slice(from.row(first + start + r, places.clone()));
        }
        for (place, to) in to.iter_mut().enumerate() {
            for r in 0..SQUARE {
                to[start + r] = square[r][place];
            }
        }
        start += SQUARE;
    }
    for r in start..WIDTH {
        let row = from.row(first + r, places.clone());
        for (to, &from) in to.iter_mut().zip(row) {
            to[r] = from;
        }
    }
}
