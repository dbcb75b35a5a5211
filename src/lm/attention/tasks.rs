//! Splits the rows of heads into tasks and blocks, and packs their matrices for the products.

use std::ops::Range;

use rayon::prelude::*;

use super::heads::{Dimensions, Heads, columns};
use crate::numerics::products::{panel_width, row_group, transpose};
use crate::numerics::{Buffer, Kernel, Pool, Real, Simd, equal_shares};

/// Smallest number of pairs per task, if the head has as many, and largest number of tasks per head.
const TASK_PAIRS: usize = 1 << 19;
const HEAD_TASKS: usize = 8;
/// Largest and smallest number of rows of a block, and the share of the second-level cache for its values.
const BLOCK_ROWS: usize = 48;
const LEAST_BLOCK_ROWS: usize = 24;
const BLOCK_BYTES: usize = 1 << 20;
/// Rows of a tensor that one thread writes at a time.
const CHUNK_ROWS: usize = 64;

/// One head of one sequence in a tensor.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<'a> {
    /// Starts at the head's first element.
    data: &'a [f32],
    /// Elements from one row to the next.
    stride: usize,
    pub(super) d_head: usize,
}

impl<'a> HeadRows<'a> {
    pub(super) fn row(self, row: usize) -> &'a [f32] {
        &self.data[row * self.stride..][..self.d_head]
    }
}

/// Some rows of one head of one sequence.
pub(super) struct Task {
    /// b·H + h.
    pub(super) index: usize,
    pub(super) rows: Range<usize>,
}

impl Dimensions {
    /// One head as rows; `index` is b·H + h.
    pub(super) fn head(self, data: &[f32], index: usize) -> HeadRows<'_> {
        let (b, h) = (index / self.heads, index % self.heads);
        let stride = self.heads * self.d_head;
        let data = &data[b * self.time * stride + h * self.d_head..];
        HeadRows { data, stride, d_head: self.d_head }
    }

    /// Splits all rows of all heads, in order of b·H + h, into tasks of about equal work. Their number depends on the shape
    /// alone.
    pub(super) fn tasks(self, heads: &Heads) -> Vec<Task> {
        let mut tasks = Vec::new();
        for index in 0..self.batch * self.heads {
            let window = heads.window(index % self.heads);
            let pairs = |row| columns(window, row).len();
            let all: usize = (0..self.time).map(pairs).sum();
            let count = (all / TASK_PAIRS).clamp(1, HEAD_TASKS);
            let shares = equal_shares(self.time, count, pairs);
            tasks.extend(shares.into_iter().map(|rows| Task { index, rows }));
        }
        tasks
    }

    /// Converts rows stored by head, (B, H, T, D), to a tensor of shape (B, T, H, D).
    pub(super) fn joined(self, by_head: &[f32]) -> Vec<f32> {
        self.tensor(|index, row, to| {
            to.copy_from_slice(&by_head[(index * self.time + row) * self.d_head..][..self.d_head]);
        })
    }

    /// Builds a tensor: `row(index, t, to)` writes row t of head `index` to `to`.
    pub(in crate::lm) fn tensor(self, row: impl Fn(usize, usize, &mut [f32]) + Sync) -> Vec<f32> {
        let width = self.heads * self.d_head;
        let mut data = vec![0.0; self.count()];
        data.par_chunks_mut(CHUNK_ROWS * width).enumerate().for_each(|(chunk, rows)| {
            for (position, to) in (chunk * CHUNK_ROWS..).zip(rows.chunks_exact_mut(width)) {
                let (b, t) = (position / self.time, position % self.time);
                for (h, to) in to.chunks_exact_mut(self.d_head).enumerate() {
                    row(b * self.heads + h, t, to);
                }
            }
        });
        data
    }
}

/// Splits `whole`, with `width` numbers per row, into one slice per task, in order.
pub(super) fn parts<'a>(tasks: &[Task], width: usize, whole: &'a mut [f32]) -> Vec<&'a mut [f32]> {
    let mut left = whole;
    tasks
        .iter()
        .map(|task| {
            let (part, rest) = std::mem::take(&mut left).split_at_mut(task.rows.len() * width);
            left = rest;
            part
        })
        .collect()
}

/// Splits rows into blocks for `matrices` matrices of values per block.
pub(super) fn blocks(
    rows: &Range<usize>,
    window: usize,
    matrices: usize,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { start, end } = *rows;
    let widest = window.min(end) + BLOCK_ROWS;
    let height = BLOCK_BYTES / (widest * matrices * size_of::<f32>());
    let height = height.clamp(LEAST_BLOCK_ROWS, BLOCK_ROWS) / 12 * 12;
    (start..end).step_by(height).map(move |first| first..end.min(first + height))
}

/// One head's keys or values for all T tokens.
#[derive(Default)]
pub(super) struct Packed {
    /// (T rounded up to whole panels, width): for products that sum over rows.
    pub(super) rows: Buffer<f32>,
    /// Panels of shape (D, panel width): for products with the transpose.
    pub(super) panels: Buffer<f32>,
}

/// Buffers kept between calls.
pub(super) static PACKED: Pool<Packed> = Pool::new();

/// Packs the keys and values of every head of every sequence.
pub(super) fn packed(dimensions: Dimensions, k: &[f32], v: &[f32]) -> Vec<[Packed; 2]> {
    let pack = |data, index| {
        let mut packed = PACKED.take();
        let from = dimensions.head(data, index);
        f32::run(Pack { packed: &mut packed, from, time: dimensions.time });
        packed
    };
    let heads = 0..dimensions.batch * dimensions.heads;
    heads.into_par_iter().map(|index| [pack(k, index), pack(v, index)]).collect()
}

/// Packs all rows of a head.
struct Pack<'a> {
    packed: &'a mut Packed,
    from: HeadRows<'a>,
    time: usize,
}

impl Kernel<f32> for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<f32>>(self, simd: S) {
        let Self { packed: Packed { rows, panels }, from, time } = self;
        let d_head = from.d_head;
        let (panel, width) = (panel_width(simd), d_head.next_multiple_of(S::LANES));
        let padded = time.next_multiple_of(panel);
        rows.reserve(padded * width);
        panels.reserve(padded * d_head);
        copy_rows(from, 0..time, 1.0, rows, width);
        rows[time * width..padded * width].fill(0.0);
        let parts = panels.chunks_exact_mut(panel * d_head);
        for (to, rows) in parts.zip(rows[..padded * width].chunks_exact(panel * width)) {
            transpose(rows, width, to, panel);
        }
    }
}

/// One head's queries, or the gradients of its outputs, for one block of rows.
#[derive(Default)]
pub(super) struct BlockRows {
    /// (rows rounded up to whole groups, width).
    pub(super) rows: Buffer<f32>,
    /// Groups of shape (D, group).
    pub(super) groups: Buffer<f32>,
}

impl BlockRows {
    /// Packs the rows `here`, multiplied by `scale`.
    #[inline(always)]
    pub(super) fn fill<S: Simd<f32>>(
        &mut self,
        simd: S,
        from: HeadRows<'_>,
        here: &Range<usize>,
        scale: f32,
    ) {
        let d_head = from.d_head;
        let (group, width) = (row_group(simd), d_head.next_multiple_of(S::LANES));
        let count = here.len().next_multiple_of(group);
        self.rows.reserve(count * width);
        self.groups.reserve(count * d_head);
        copy_rows(from, here.clone(), scale, &mut self.rows, width);
        self.rows[here.len() * width..count * width].fill(0.0);
        let parts = self.groups.chunks_exact_mut(group * d_head);
        for (to, rows) in parts.zip(self.rows[..count * width].chunks_exact(group * width)) {
            transpose(rows, width, to, group);
        }
    }
}

#[inline(always)]
fn copy_rows(from: HeadRows<'_>, rows: Range<usize>, scale: f32, to: &mut [f32], width: usize) {
    for (row, to) in rows.zip(to.chunks_exact_mut(width)) {
        let from = from.row(row);
        let (to, rest) = to.split_at_mut(from.len());
        for (to, from) in to.iter_mut().zip(from) {
            *to = from * scale;
        }
        rest.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::HeadKind;

    #[test]
    fn tasks_and_blocks_cover_every_row_once() {
        let kinds =
            [HeadKind::Global, HeadKind::Local { window: 1 }, HeadKind::Local { window: 40 }];
        for time in [1, 15, 48, 49, 200, 3000] {
            let dimensions = Dimensions { batch: 2, time, heads: kinds.len(), d_head: 4 };
            let heads = Heads::new(&kinds, None);
            let mut next = (0, 0);
            for task in dimensions.tasks(&heads) {
                assert_eq!((task.index, task.rows.start), next);
                let window = heads.window(task.index % kinds.len());
                for block in blocks(&task.rows, window, 2) {
                    assert_eq!(block.start, next.1);
                    next.1 = block.end;
                }
                assert_eq!(next.1, task.rows.end);
                if next.1 == time {
                    next = (next.0 + 1, 0);
                }
            }
            assert_eq!(next, (2 * kinds.len(), 0));
        }
    }
}
