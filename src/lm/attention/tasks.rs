//! Splits the rows of heads into tasks and blocks.

use std::ops::Range;

use rayon::prelude::*;

use super::heads::{Dimensions, Heads, columns};
use crate::numerics::equal_shares;

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
    d_head: usize,
}

impl<'a> HeadRows<'a> {
    pub(super) fn row(self, row: usize) -> &'a [f32] {
        &self.data[row * self.stride..][..self.d_head]
    }

    pub(super) fn d_head(self) -> usize {
        self.d_head
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
