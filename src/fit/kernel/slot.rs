//! Slots of rows: what a thread takes at a time, and what its rows add up to.

use std::ops::Range;

use super::block::{Block, Want};
use super::products::{Write, panel_width};
use crate::fit::problem::Problem;
use crate::simd::{Buffer, Kernel, Real, Simd};

/// Rows of a block at most.
const BLOCK_ROWS: usize = 96;
/// Rows of a block at least, so that the products over its rows are worth their overhead.
const LEAST_BLOCK_ROWS: usize = 24;
/// What a block's logits may take of the second-level cache, in bytes.
const BLOCK_BYTES: usize = 1 << 20;
/// Rows a slot at least, and slots at most.
pub(super) const SLOT_ROWS: usize = 256;
const SLOTS: usize = 16;

/// What every slot reads.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a, T> {
    pub problem: &'a Problem,
    pub x: &'a [f64],
    pub keys: &'a [Keys<T>],
    /// π, by head.
    pub weights: &'a [f64],
}

/// One head's keys, packed for the products.
pub(super) struct Keys<T> {
    /// By panel: (d, panel width), divided by √d, for the logits.
    pub panels: Buffer<T>,
    /// (n rounded up to whole panels, width), for the queries' gradient.
    pub rows: Buffer<T>,
}

/// A range of rows, and what they add up to.
pub(super) struct Slot<T> {
    pub rows: Range<usize>,
    pub key_gradients: Vec<KeyGradient<T>>,
    pub totals: Totals,
}

/// One head's gradient of the keys that the rows of a slot see.
pub(super) struct KeyGradient<T> {
    /// The columns, widened to whole panels.
    pub columns: Range<usize>,
    /// (columns, width).
    pub values: Buffer<T>,
    /// The first column that no block of this evaluation has written yet.
    written: usize,
}

/// What the rows of a slot add up to.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// Σᵢ Σⱼ aᵢⱼ log Pᵢⱼ.
    pub likelihood: f64,
    /// The penalty.
    pub penalty: f64,
    pub max_abs_logit: f64,
    pub logit_spread: f64,
    /// By head, Σᵢ sₕᵢ: the target's mass that falls to it.
    pub usage: Vec<f64>,
}

impl<T: Real> Slot<T> {
    /// Room for what `rows` add up to, in panels of `panel` columns and vectors of `width` numbers.
    pub fn new(problem: &Problem, rows: Range<usize>, panel: usize, width: usize) -> Self {
        let key_gradients = (0..problem.heads())
            .map(|head| {
                let columns = block_columns(problem, head, &rows, panel);
                let written = columns.start;
                KeyGradient { values: Buffer::zeros(columns.len() * width), columns, written }
            })
            .collect();
        Self { rows, key_gradients, totals: Totals::default() }
    }
}

impl<T: Real> KeyGradient<T> {
    /// The gradients of a group of columns, and whether an earlier block has written to them. Blocks
    /// take their columns in order and see no earlier ones than the blocks before them did.
    #[inline(always)]
    pub fn part(&mut self, column: usize, group: usize, width: usize) -> (&mut [T], Write) {
        let write = if column < self.written { Write::Add } else { Write::Replace };
        self.written = self.written.max(column + group);
        let start = (column - self.columns.start) * width;
        (&mut self.values[start..start + group * width], write)
    }
}

impl Totals {
    pub fn new(heads: usize) -> Self {
        Self { usage: vec![0.0; heads], ..Self::default() }
    }

    pub fn add(&mut self, other: &Self) {
        self.likelihood += other.likelihood;
        self.penalty += other.penalty;
        self.max_abs_logit = self.max_abs_logit.max(other.max_abs_logit);
        self.logit_spread = self.logit_spread.max(other.logit_spread);
        self.usage.iter_mut().zip(&other.usage).for_each(|(to, from)| *to += from);
    }
}

/// One slot's blocks, one after the other.
pub(super) struct SlotWork<'a, T> {
    pub inputs: Inputs<'a, T>,
    pub want: Want<'a>,
    pub block: &'a mut Block<T>,
    pub slot: &'a mut Slot<T>,
}

impl<T: Real> Kernel<T> for SlotWork<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<T>>(mut self, simd: S) {
        let Slot { rows, key_gradients, totals } = self.slot;
        let problem = self.inputs.problem;
        *totals = Totals::new(problem.heads());
        for gradient in &mut *key_gradients {
            gradient.written = gradient.columns.start;
        }
        let step = block_rows::<T>(problem, rows.end);
        for first in rows.clone().step_by(step) {
            let here = first..rows.end.min(first + step);
            let at = (rows.start, here);
            self.block.run(simd, &self.inputs, at, &mut self.want, key_gradients, totals);
        }
    }
}

/// The sizes of packed operands, which depend on the vector extension.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// d rounded up to whole vectors.
    pub width: usize,
    /// The columns of a panel.
    pub panel: usize,
}

/// Finds the sizes for a head dimension.
pub(super) struct FindSizes(pub usize);

impl<T: Real> Kernel<T> for FindSizes {
    type Output = Sizes;

    #[inline(always)]
    fn run<S: Simd<T>>(self, simd: S) -> Sizes {
        Sizes { width: self.0.next_multiple_of(S::LANES), panel: panel_width(simd) }
    }
}

/// Rows of a block, so that its logits stay within their share of the cache.
fn block_rows<T>(problem: &Problem, last_row: usize) -> usize {
    let n = problem.n();
    let widest =
        (0..problem.heads()).map(|head| problem.seen(head, last_row - 1).len()).max().unwrap_or(n);
    let rows = BLOCK_BYTES / (widest.max(1) * size_of::<T>());
    rows.clamp(LEAST_BLOCK_ROWS, BLOCK_ROWS) / 12 * 12
}

/// Row ranges with about the same number of visible pairs each.
pub(super) fn slot_rows(problem: &Problem) -> Vec<Range<usize>> {
    let n = problem.n();
    let count = (n / SLOT_ROWS).clamp(1, SLOTS);
    let pairs = |row: usize| -> usize {
        (0..problem.heads()).map(|head| problem.seen(head, row).len()).sum()
    };
    let total: usize = (0..n).map(pairs).sum();
    let mut slots = Vec::with_capacity(count);
    let (mut first, mut before) = (0, 0);
    for row in 0..n {
        before += pairs(row);
        if before * count >= total * (slots.len() + 1) {
            slots.push(first..row + 1);
            first = row + 1;
        }
    }
    slots
}

/// The columns that any of these rows sees through a head, widened to whole panels.
#[inline(always)]
pub(super) fn block_columns(
    problem: &Problem,
    head: usize,
    rows: &Range<usize>,
    panel: usize,
) -> Range<usize> {
    let seen = problem.seen_by_any(head, rows);
    seen.start / panel * panel..seen.end.next_multiple_of(panel)
}

/// For each slot, by head, its rows of the queries' gradient.
pub(super) fn slot_query_gradients<'g, T>(
    gradient: Option<&'g mut [f64]>,
    problem: &Problem,
    slots: &[Slot<T>],
) -> Vec<Vec<&'g mut [f64]>> {
    let mut by_slot: Vec<Vec<&mut [f64]>> = slots.iter().map(|_| Vec::new()).collect();
    let Some(gradient) = gradient else {
        return by_slot;
    };
    let (heads, n, d) = (problem.heads(), problem.n(), problem.rank());
    for pair in gradient[..2 * heads * n * d].chunks_exact_mut(2 * n * d) {
        let mut left = &mut pair[..n * d];
        for (slot, parts) in slots.iter().zip(&mut by_slot) {
            let (part, rest) = left.split_at_mut(slot.rows.len() * d);
            parts.push(part);
            left = rest;
        }
    }
    by_slot
}
