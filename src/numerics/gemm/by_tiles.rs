//! The loops of a matrix product over blocks and tiles.

use std::ops::Range;

use super::matrix::{Matrix, Output};
use super::pack::{WorkSpace, pack_columns, pack_rows, panel_of, rows_at_once};
use crate::numerics::tile::{PANEL_VECTORS, Rows, row_group, sums};
use crate::numerics::{Kernel, Number, Simd};

/// The largest number of rows of B that are packed: a panel of this height with two vectors of AVX2 takes 16 KiB, half of a
/// first-level cache.
const DEPTH: usize = 256;
/// Size of the packed block of B, in bytes: half of a second-level cache of 512 KiB.
const BLOCK_BYTES: usize = 256 << 10;
/// The largest number of rows of A that are packed at a time.
const ROWS: usize = 264;

/// C ← α A B + β C, computed in tiles.
pub(super) struct Gemm<'a, T> {
    pub(super) operands: Operands<'a, T>,
    pub(super) beta: T,
    pub(super) space: &'a mut WorkSpace<T>,
}

pub(super) struct Operands<'a, T> {
    pub(super) alpha: T,
    pub(super) a: Matrix<'a, T>,
    pub(super) b: Matrix<'a, T>,
    pub(super) c: Output<'a, T>,
}

impl<T: Number> Kernel<T> for Gemm<'_, T> {
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

/// The part size if `whole` is cut into the smallest number of equal parts of at most `most`, rounded up to a multiple of `of`.
#[inline(always)]
fn equal_part(whole: usize, most: usize, of: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most)).next_multiple_of(of)
}

/// One step of the computation: rows of C and A, a range of the depth, columns of C and B, and the factor of the values
/// already in C.
struct Part<T> {
    rows: Range<usize>,
    deep: Range<usize>,
    columns: Range<usize>,
    sums: T,
}

impl<T: Number> Operands<'_, T> {
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
            // Specialised by row count: a group, a third of it, or one row.
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

    /// Writes the sums of a tile to the rows of C from `row` on, plus `there` times the values already there.
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
