//! Slots of rows: what a thread takes at a time, and what its rows add up to.

use std::ops::Range;

use super::block::{Block, Want};
use crate::fit::problem::Problem;
use crate::numerics::products::panel_width;
use crate::numerics::{Buffer, ColumnSums, Kernel, Real, Simd, equal_shares, panels_of};

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
    pub key_gradients: Vec<ColumnSums<T>>,
    pub totals: Totals,
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
                let mut sums = ColumnSums::default();
                sums.begin(panels_of(&rows, panel, |row| problem.seen(head, row)), width);
                sums
            })
            .collect();
        Self { rows, key_gradients, totals: Totals::default() }
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
            gradient.begin_again();
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
    let n = problem.rows();
    let count = (n / SLOT_ROWS).clamp(1, SLOTS);
    let pairs = |row: usize| -> usize {
        (0..problem.heads()).map(|head| problem.seen(head, row).len()).sum()
    };
    equal_shares(n, count, pairs)
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
        // Queries of no row.
        left.fill(0.0);
    }
    by_slot
}
