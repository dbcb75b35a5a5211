//! Products of a block of rows with the columns that its rows attend to.

use std::ops::Range;

use super::products::{self, Operands, Write};
use super::{Buffer, Number, Simd};

/// Size of a chunk of packed rows in the first-level cache, in bytes.
const CHUNK_BYTES: usize = 24 << 10;

/// Some rows of a matrix and the columns that any of them attends to, row-major in memory, in whole
/// groups of rows and panels of columns (see [`products`]). Neither end of a row's range of columns is before
/// that of the previous row. `seen` returns the range of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stripe {
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    /// Elements from one row to the next: not a large power of two, so that rows do not share cache sets.
    pub stride: usize,
}

/// Sums of the products Gᵀ·Q over stripes, by column.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnSums<T> {
    columns: Range<usize>,
    width: usize,
    /// (columns, width).
    values: Buffer<T>,
    /// The first column without sums so far.
    written: usize,
}

impl<T: Number> ColumnSums<T> {
    /// Makes room for sums of `width` numbers over whole panels of columns, and clears all.
    pub fn begin(&mut self, columns: Range<usize>, width: usize) {
        self.values.reserve(columns.len() * width);
        (self.written, self.columns, self.width) = (columns.start, columns, width);
    }

    /// Clears all sums.
    pub fn begin_again(&mut self) {
        self.written = self.columns.start;
    }

    /// The sums of a column; `None` if it has none.
    #[inline(always)]
    pub fn column(&self, column: usize) -> Option<&[T]> {
        let is_there = self.columns.start <= column && column < self.written;
        is_there.then(|| &self.values[(column - self.columns.start) * self.width..][..self.width])
    }

    /// The buffer for a group of columns, and how to write to it. Stripes process their columns in order and
    /// never start at an earlier column than previous stripes, so values of columns without sums are replaced.
    #[inline(always)]
    fn part(&mut self, column: usize, group: usize) -> (&mut [T], Write) {
        let write = if column < self.written { Write::Add } else { Write::Replace };
        self.written = self.written.max(column + group);
        let start = (column - self.columns.start) * self.width;
        (&mut self.values[start..start + group * self.width], write)
    }
}

/// The columns that any of `rows`, at least one, attends to.
#[inline(always)]
fn seen_by_any(rows: &Range<usize>, seen: impl Fn(usize) -> Range<usize>) -> Range<usize> {
    seen(rows.start).start..seen(rows.end - 1).end
}

/// The columns that any of `rows`, at least one, attends to, widened to whole panels.
#[inline(always)]
pub(crate) fn panels_of(
    rows: &Range<usize>,
    panel: usize,
    seen: impl Fn(usize) -> Range<usize>,
) -> Range<usize> {
    let seen = seen_by_any(rows, seen);
    seen.start / panel * panel..seen.end.next_multiple_of(panel)
}

/// Splits `0..rows` into at most `count` ranges, in order, with about the same sum of `weight` each.
pub(crate) fn equal_shares(
    rows: usize,
    count: usize,
    weight: impl Fn(usize) -> usize,
) -> Vec<Range<usize>> {
    let total: usize = (0..rows).map(&weight).sum();
    let mut shares = Vec::with_capacity(count);
    let (mut first, mut before) = (0, 0);
    for row in 0..rows {
        before += weight(row);
        if before * count >= total * (shares.len() + 1) {
            shares.push(first..row + 1);
            first = row + 1;
        }
    }
    shares
}

impl Stripe {
    #[inline(always)]
    pub fn new(rows: Range<usize>, panel: usize, seen: impl Fn(usize) -> Range<usize>) -> Self {
        let columns = panels_of(&rows, panel, seen);
        let stride = columns.len() + 16;
        Self { rows, columns, stride }
    }

    /// Indices of the values of the columns that a row attends to.
    #[inline(always)]
    pub fn places(&self, row: usize, seen: &Range<usize>) -> Range<usize> {
        let start = (row - self.rows.start) * self.stride + seen.start - self.columns.start;
        start..start + seen.len()
    }

    /// The values of the columns that a row attends to; all others are set to zero.
    #[inline(always)]
    pub fn clear_unseen<'v, T: Copy + Default>(
        &self,
        row: usize,
        seen: &Range<usize>,
        values: &'v mut [T],
    ) -> &'v mut [T] {
        let start = (row - self.rows.start) * self.stride;
        let whole = &mut values[start..start + self.columns.len()];
        let places = seen.start - self.columns.start..seen.end - self.columns.start;
        whole[..places.start].fill(T::default());
        whole[places.end..].fill(T::default());
        &mut whole[places]
    }

    /// Z = Q·Kᵀ for every group of rows and panel of columns that it attends to. `queries` is (d, group) by group,
    /// `panels` is (d, panel width) by panel of all columns.
    #[inline(always)]
    pub fn by_transposed<T: Number, S: Simd<T>>(
        &self,
        simd: S,
        seen: impl Fn(usize) -> Range<usize>,
        (queries, panels, d): (&[T], &[T], usize),
        values: &mut [T],
    ) {
        let (group, panel) = (products::row_group(simd), products::panel_width(simd));
        for first in self.columns.clone().step_by(panel) {
            let keys = &panels[first * d..(first + panel) * d];
            for row in self.rows.clone().step_by(group) {
                let rows = row..self.rows.end.min(row + group);
                if panels_of(&rows, panel, &seen).contains(&first) {
                    let local = row - self.rows.start;
                    let at = local * self.stride + first - self.columns.start;
                    let queries = &queries[local * d..(local + group) * d];
                    products::by_transposed(simd, queries, keys, &mut values[at..], self.stride);
                }
            }
        }
    }

    /// G·K for the rows; `packed` is (all columns, width), `to` is (rows in whole groups, width). Values of columns that only
    /// other rows of a group attend to must be zero.
    #[inline(always)]
    pub fn times<T: Number, S: Simd<T>>(
        &self,
        simd: S,
        seen: impl Fn(usize) -> Range<usize>,
        values: &mut [T],
        (packed, width): (&[T], usize),
        to: &mut [T],
    ) {
        let (here, base) = (self.rows.clone(), self.columns.start);
        let group = products::row_group(simd);
        let count = here.len().next_multiple_of(group);
        values[here.len() * self.stride..count * self.stride].fill(T::default());
        let packed = &packed[base * width..];
        let operands = Operands { values, stride: self.stride, packed, width };
        // Limits the rows at a time to what the first-level cache holds beside the sums.
        let chunk = (CHUNK_BYTES / (width * size_of::<T>())).max(16);
        for first in self.columns.clone().step_by(chunk) {
            for row in here.clone().step_by(group) {
                let seen = seen_by_any(&(row..here.end.min(row + group)), &seen);
                let columns = seen.start.max(first)..seen.end.min(first + chunk);
                if columns.is_empty() {
                    continue;
                }
                let write = if columns.start == seen.start { Write::Replace } else { Write::Add };
                let columns = columns.start - base..columns.end - base;
                products::times(simd, &operands, row - here.start, columns, write, to);
            }
        }
    }

    /// Gᵀ·Q for the columns; `packed` is (rows, width). Values in a panel of columns that a row does not attend to must be
    /// zero.
    #[inline(always)]
    pub fn transposed_times<T: Number, S: Simd<T>>(
        &self,
        simd: S,
        seen: impl Fn(usize) -> Range<usize>,
        values: &[T],
        (packed, width): (&[T], usize),
        sums: &mut ColumnSums<T>,
    ) {
        let here = self.rows.clone();
        let operands = Operands { values, stride: self.stride, packed, width };
        let group = products::column_group(simd, width);
        // The rows that attend to a group of columns: both ends are monotonic in the column.
        let (mut first, mut last) = (here.start, here.start);
        for column in self.columns.clone().step_by(group) {
            while first < here.end && seen(first).end <= column {
                first += 1;
            }
            while last < here.end && seen(last).start < column + group {
                last += 1;
            }
            let (to, write) = sums.part(column, group);
            if first < last {
                let rows = first - here.start..last - here.start;
                let place = column - self.columns.start;
                products::transposed_times(simd, &operands, rows, place, write, to);
            } else if write == Write::Replace {
                to.fill(T::default());
            }
        }
    }
}
