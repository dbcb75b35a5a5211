//! Slots of rows: the units of work of threads, with the sums over their rows; packing of keys before they run.

use std::ops::Range;

use super::block::{Block, Want};
use super::inputs::{Inputs, Totals};
use crate::numerics::products::{panel_width, transpose};
use crate::numerics::{ColumnSums, Kernel, Real, Simd, equal_shares, panels_of};
use crate::solver::problem::Problem;

/// The most rows of a block.
const BLOCK_ROWS: usize = 96;
/// The fewest rows of a block, so that the products over its rows are worth their overhead.
const LEAST_BLOCK_ROWS: usize = 24;
/// Share of the second-level cache for a block's logits, in bytes.
const BLOCK_BYTES: usize = 1 << 20;
/// The fewest rows per slot, and the most slots.
pub(super) const SLOT_ROWS: usize = 256;
const SLOTS: usize = 16;

/// A range of rows and its sums.
pub(super) struct Slot<T> {
    pub rows: Range<usize>,
    pub key_gradients: Vec<ColumnSums<T>>,
    pub totals: Totals,
}

impl<T: Real> Slot<T> {
    /// Allocates the sums of `rows`, in panels of `panel` columns and vectors of `width` numbers.
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

/// Processes the blocks of one slot, one after the other.
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

/// Number of rows of a block, such that its logits stay within their share of the cache.
fn block_rows<T>(problem: &Problem, last_row: usize) -> usize {
    let n = problem.n();
    let widest =
        (0..problem.heads()).map(|head| problem.seen(head, last_row - 1).len()).max().unwrap_or(n);
    let rows = BLOCK_BYTES / (widest.max(1) * size_of::<T>());
    rows.clamp(LEAST_BLOCK_ROWS, BLOCK_ROWS) / 12 * 12
}

/// Row ranges with about the same number of allowed pairs each.
pub(super) fn slot_rows(problem: &Problem) -> Vec<Range<usize>> {
    let n = problem.rows();
    let count = (n / SLOT_ROWS).clamp(1, SLOTS);
    let pairs = |row: usize| -> usize {
        (0..problem.heads()).map(|head| problem.seen(head, row).len()).sum()
    };
    equal_shares(n, count, pairs)
}

/// The slot's rows of the queries' gradient, per slot and head.
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
        // Queries without a row.
        left.fill(0.0);
    }
    by_slot
}

/// Packs whole panels of keys from `from`, (keys, d). The last panel may be incomplete; its other places stay zero.
pub(super) struct PackKeys<'a, T> {
    pub from: &'a [f64],
    pub d: usize,
    /// (keys, width).
    pub rows: &'a mut [T],
    /// One matrix (d, panel width) per panel, divided by √d.
    pub panels: &'a mut [T],
}

impl<T: Real> Kernel<T> for PackKeys<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<T>>(self, simd: S) {
        let Self { from, d, rows, panels } = self;
        let (width, panel) = (d.next_multiple_of(S::LANES), panel_width(simd));
        for (to, key) in rows.chunks_exact_mut(width).zip(from.chunks_exact(d)) {
            for (to, &value) in to.iter_mut().zip(key) {
                *to = T::from_f64(value);
            }
        }
        let scale = T::from_f64(1.0 / (d as f64).sqrt());
        for (to, rows) in panels.chunks_exact_mut(panel * d).zip(rows.chunks_exact(panel * width)) {
            transpose(rows, width, to, panel);
            for value in to {
                *value = *value * scale;
            }
        }
    }
}

/// Adds up the slots' gradients of the keys from `first` on, in the order of the slots, times 1/√d.
pub(super) struct AddSlots<'a, T> {
    pub slots: &'a [Slot<T>],
    pub head: usize,
    pub d: usize,
    pub first: usize,
    /// (keys, d).
    pub keys: &'a mut [f64],
}

impl<T: Real> Kernel<T> for AddSlots<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<T>>(self, _: S) {
        let Self { slots, head, d, first, keys } = self;
        let scale = 1.0 / (d as f64).sqrt();
        for (column, key) in (first..).zip(keys.chunks_exact_mut(d)) {
            key.fill(0.0);
            for slot in slots {
                if let Some(sums) = slot.key_gradients[head].column(column) {
                    for (key, g) in key.iter_mut().zip(sums) {
                        *key += g.to_f64();
                    }
                }
            }
            for key in key {
                *key *= scale;
            }
        }
    }
}
