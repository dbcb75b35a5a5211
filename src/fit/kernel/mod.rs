//! kl_nats of a layout of low-rank heads, its gradient, and the logits' extremes, in one pass over
//! blocks of rows.
//!
//! A block is some rows against the columns that they see. Its logits are computed, turned into
//! exponentials and then into the gradient with respect to the logits in place, and multiplied out
//! into the gradients of queries and keys, before the next block begins. So no n × n array exists;
//! a causal head costs half of the pairs and a window of w costs O(n·w).
//!
//! The rows are cut into *slots* of about equal work, a number that depends on n alone. Each slot
//! adds up its own gradient of the keys; the slots are then added in order. Threads take slots, so
//! the result does not depend on how many threads there are.
//!
//! Memory: O(n·d) a slot, for the keys' gradient, and one block a thread.

mod block;
mod products;
pub(super) mod rows;

use std::ops::Range;
use std::sync::Mutex;

use rayon::prelude::*;

use super::factors::weights_of;
use super::penalty::{Multiplier, Penalty};
use super::problem::Problem;
use crate::simd::{Buffer, Extension, Real, Simd};
use block::{Block, Want};
use products::panel_width;

/// Rows of a block at most.
const BLOCK_ROWS: usize = 96;
/// Rows of a block at least, so that the products over its rows are worth their overhead.
const LEAST_BLOCK_ROWS: usize = 24;
/// What a block's logits may take of the second-level cache, in bytes.
const BLOCK_BYTES: usize = 1 << 20;
/// Rows a slot at least, and slots at most.
const SLOT_ROWS: usize = 256;
const SLOTS: usize = 16;

/// What one evaluation returns beside the gradient.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evaluation {
    /// kl_nats plus the penalty.
    pub value: f64,
    /// Mean over rows of KL(Aᵢ ‖ Pᵢ).
    pub kl_nats: f64,
    /// max |z| over the visible pairs of every head.
    pub max_abs_logit: f64,
    /// max over heads and rows of (max − min over visible pairs).
    pub logit_spread: f64,
}

/// The objective in the arithmetic of T, with its work space.
pub(super) struct Kernel<T> {
    extension: Extension,
    /// Σ a log a / n: what kl_nats is before the fit has any likelihood.
    negative_entropy: f64,
    sizes: Sizes,
    keys: Vec<Keys<T>>,
    slots: Vec<Slot<T>>,
    /// Blocks not in use; a thread takes one for each slot that it works on.
    blocks: Mutex<Vec<Block<T>>>,
}

/// One head's keys, packed for the products.
struct Keys<T> {
    /// By panel: (d, panel width), for the logits.
    panels: Buffer<T>,
    /// (n rounded up to whole panels, width), for the queries' gradient.
    rows: Buffer<T>,
}

/// A range of rows, and what they add up to.
struct Slot<T> {
    rows: Range<usize>,
    /// By head, the columns that these rows see and the gradient of their keys, (columns, width).
    key_gradients: Vec<(Range<usize>, Buffer<T>)>,
    totals: Totals,
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

/// The sizes of packed operands, which depend on the instruction set.
#[derive(Clone, Copy)]
struct Sizes {
    /// d rounded up to whole vectors.
    width: usize,
    panel: usize,
}

struct FindSizes(usize);

impl<T: Real> crate::simd::Kernel<T> for FindSizes {
    type Output = Sizes;
    #[inline(always)]
    fn run<S: Simd<T>>(self, simd: S) -> Sizes {
        Sizes { width: self.0.next_multiple_of(S::LANES), panel: panel_width(simd) }
    }
}

impl<T: Real> Kernel<T> {
    /// The objective, to be evaluated with the vectors of `extension`.
    pub fn new(problem: &Problem, extension: Extension) -> Self {
        let (n, d, heads) = (problem.n(), problem.rank(), problem.heads());
        let sizes = T::run_with(extension, FindSizes(d));
        let Sizes { width, panel } = sizes;
        let columns = n.next_multiple_of(panel);
        let keys =
            || Keys { panels: Buffer::zeros(columns * d), rows: Buffer::zeros(columns * width) };
        let slots = slot_rows(problem)
            .into_iter()
            .map(|rows| Slot {
                key_gradients: (0..heads)
                    .map(|head| {
                        let seen = block_columns(problem, head, &rows, panel);
                        let length = seen.len() * width;
                        (seen, Buffer::zeros(length))
                    })
                    .collect(),
                rows,
                totals: Totals::default(),
            })
            .collect();
        Self {
            extension,
            negative_entropy: problem.target().mean_log_likelihood_of_itself(),
            sizes,
            keys: (0..heads).map(|_| keys()).collect(),
            slots,
            blocks: Mutex::new(Vec::new()),
        }
    }

    /// Evaluates at x and, where there is a `gradient`, writes that of kl_nats plus the penalty.
    ///
    /// With one head, ∂kl/∂zᵢⱼ = (pᵢⱼ − aᵢⱼ)/n. With several, rₕᵢⱼ = πₕpₕᵢⱼ/Pᵢⱼ being head h's share
    /// of pair (i, j) and sₕᵢ = Σⱼ aᵢⱼrₕᵢⱼ, it is (sₕᵢpₕᵢⱼ − aᵢⱼrₕᵢⱼ)/n, and ∂kl/∂log πₕ =
    /// πₕ − Σᵢ sₕᵢ/n.
    pub fn evaluate(
        &mut self,
        problem: &Problem,
        x: &[f64],
        penalty: Option<&Penalty>,
        mut gradient: Option<&mut [f64]>,
    ) -> Evaluation {
        let (n, d, heads) = (problem.n(), problem.rank(), problem.heads());
        let weights = weights_of(x, heads, n, d);
        self.pack(problem, x);
        let with_gradient = gradient.is_some();
        let query_gradients =
            slot_query_gradients(gradient.as_deref_mut(), heads, n * d, d, &self.slots);
        let (extension, keys, blocks) = (self.extension, &self.keys, &self.blocks);
        let weights_here = &weights;
        let work = |(slot, query_gradients): (&mut Slot<T>, Vec<&mut [f64]>)| {
            let mut block = take(blocks);
            T::run_with(
                extension,
                SlotWork {
                    problem,
                    x,
                    keys,
                    weights: weights_here,
                    want: if with_gradient {
                        Want::Gradient { penalty, query_gradients }
                    } else {
                        Want::Value
                    },
                    block: &mut block,
                    slot,
                },
            );
            put_back(blocks, block);
        };
        if let [slot] = self.slots.as_mut_slice() {
            work((slot, query_gradients.into_iter().next().unwrap_or_default()));
        } else {
            self.slots.par_iter_mut().zip(query_gradients).with_max_len(1).for_each(work);
        }
        let mut totals = Totals { usage: vec![0.0; heads], ..Totals::default() };
        self.slots.iter().for_each(|slot| totals.add(&slot.totals));
        if let Some(gradient) = gradient {
            self.add_slots(gradient, heads, n, d);
            if heads > 1 {
                for (head, g) in gradient[2 * heads * n * d..].iter_mut().enumerate() {
                    *g = weights[head] - totals.usage[head] / n as f64;
                }
            }
        }
        let kl_nats = self.negative_entropy - totals.likelihood / n as f64;
        Evaluation {
            value: kl_nats + totals.penalty,
            kl_nats,
            max_abs_logit: totals.max_abs_logit,
            logit_spread: totals.logit_spread,
        }
    }

    /// For each head and row, the multipliers after one augmented-Lagrangian update at x:
    /// λ ← max(0, λ + ρ(|z| − cap)) for each bound; entries at zero are dropped.
    pub fn updated_multipliers(
        &mut self,
        problem: &Problem,
        x: &[f64],
        penalty: &Penalty,
    ) -> Vec<Vec<Vec<Multiplier>>> {
        self.pack(problem, x);
        let (extension, keys, blocks) = (self.extension, &self.keys, &self.blocks);
        let mut updated = vec![Vec::with_capacity(problem.n()); problem.heads()];
        let by_slot: Vec<Vec<Vec<Vec<Multiplier>>>> = self
            .slots
            .par_iter_mut()
            .with_max_len(1)
            .map(|slot| {
                let mut updated = vec![Vec::with_capacity(slot.rows.len()); problem.heads()];
                let mut block = take(blocks);
                T::run_with(
                    extension,
                    SlotWork {
                        problem,
                        x,
                        keys,
                        weights: &[],
                        want: Want::Multipliers { penalty, updated: &mut updated },
                        block: &mut block,
                        slot,
                    },
                );
                put_back(blocks, block);
                updated
            })
            .collect();
        for slot in by_slot {
            for (updated, rows) in updated.iter_mut().zip(slot) {
                updated.extend(rows);
            }
        }
        updated
    }

    fn pack(&mut self, problem: &Problem, x: &[f64]) {
        let (n, d) = (problem.n(), problem.rank());
        let Sizes { width, panel } = self.sizes;
        for (head, keys) in self.keys.iter_mut().enumerate() {
            let from = &x[(2 * head + 1) * n * d..2 * (head + 1) * n * d];
            // Whole slots of panels to a task, so that small problems stay on one thread.
            let panels = SLOT_ROWS / panel;
            keys.panels
                .par_chunks_mut(panels * panel * d)
                .zip(keys.rows.par_chunks_mut(panels * panel * width))
                .zip(from.par_chunks(panels * panel * d))
                .for_each(|((panels, rows), from)| pack_keys(from, d, width, panel, panels, rows));
        }
    }

    /// The keys' gradients, slot by slot in order, scaled by 1/√d.
    fn add_slots(&self, gradient: &mut [f64], heads: usize, n: usize, d: usize) {
        let width = self.sizes.width;
        let scale = 1.0 / (d as f64).sqrt();
        for head in 0..heads {
            let keys = &mut gradient[(2 * head + 1) * n * d..2 * (head + 1) * n * d];
            keys.par_chunks_mut(SLOT_ROWS * d).enumerate().for_each(|(chunk, keys)| {
                for (row, key) in keys.chunks_exact_mut(d).enumerate() {
                    let column = chunk * SLOT_ROWS + row;
                    key.fill(0.0);
                    for (seen, part) in self.slots.iter().map(|slot| &slot.key_gradients[head]) {
                        if seen.contains(&column) {
                            let part = &part[(column - seen.start) * width..][..d];
                            key.iter_mut().zip(part).for_each(|(key, g)| *key += g.to_f64());
                        }
                    }
                    key.iter_mut().for_each(|key| *key *= scale);
                }
            });
        }
    }
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.likelihood += other.likelihood;
        self.penalty += other.penalty;
        self.max_abs_logit = self.max_abs_logit.max(other.max_abs_logit);
        self.logit_spread = self.logit_spread.max(other.logit_spread);
        self.usage.iter_mut().zip(&other.usage).for_each(|(to, from)| *to += from);
    }
}

/// One slot's blocks, one after the other.
struct SlotWork<'a, T> {
    problem: &'a Problem,
    x: &'a [f64],
    keys: &'a [Keys<T>],
    weights: &'a [f64],
    want: Want<'a>,
    block: &'a mut Block<T>,
    slot: &'a mut Slot<T>,
}

impl<T: Real> crate::simd::Kernel<T> for SlotWork<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<T>>(mut self, simd: S) {
        let Slot { rows, key_gradients, totals } = self.slot;
        *totals = Totals { usage: vec![0.0; self.problem.heads()], ..Totals::default() };
        key_gradients.iter_mut().for_each(|(_, gradient)| gradient.fill(T::default()));
        let step = block_rows::<T>(self.problem, rows.end);
        for first in rows.clone().step_by(step) {
            let here = first..rows.end.min(first + step);
            self.block.run(
                simd,
                self.problem,
                self.x,
                self.keys,
                self.weights,
                (rows.start, here),
                &mut self.want,
                key_gradients,
                totals,
            );
        }
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
fn slot_rows(problem: &Problem) -> Vec<Range<usize>> {
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
fn block_columns(
    problem: &Problem,
    head: usize,
    rows: &Range<usize>,
    panel: usize,
) -> Range<usize> {
    let seen = problem.seen_by_any(head, rows);
    seen.start / panel * panel..seen.end.next_multiple_of(panel)
}

/// For each slot, by head, its rows of the queries' gradient.
fn slot_query_gradients<'g, T>(
    gradient: Option<&'g mut [f64]>,
    heads: usize,
    side: usize,
    d: usize,
    slots: &[Slot<T>],
) -> Vec<Vec<&'g mut [f64]>> {
    let mut by_slot: Vec<Vec<&mut [f64]>> = slots.iter().map(|_| Vec::new()).collect();
    let Some(gradient) = gradient else {
        return by_slot;
    };
    for pair in gradient[..2 * heads * side].chunks_exact_mut(2 * side) {
        let mut left = &mut pair[..side];
        for (slot, parts) in slots.iter().zip(&mut by_slot) {
            let (part, rest) = left.split_at_mut(slot.rows.len() * d);
            parts.push(part);
            left = rest;
        }
    }
    by_slot
}

/// Packs whole panels of keys, `from` being (keys, d): its end may be in the middle of a panel.
fn pack_keys<T: Real>(
    from: &[f64],
    d: usize,
    width: usize,
    panel: usize,
    panels: &mut [T],
    rows: &mut [T],
) {
    for (key, row) in from.chunks_exact(d).zip(rows.chunks_exact_mut(width)) {
        row.iter_mut().zip(key).for_each(|(to, &from)| *to = T::from_f64(from));
    }
    for (out, keys) in panels.chunks_exact_mut(panel * d).zip(from.chunks(panel * d)) {
        for (place, key) in keys.chunks_exact(d).enumerate() {
            for (t, &value) in key.iter().enumerate() {
                out[t * panel + place] = T::from_f64(value);
            }
        }
    }
}

fn take<T: Real>(blocks: &Mutex<Vec<Block<T>>>) -> Block<T> {
    blocks.lock().expect("no holder of this lock panics").pop().unwrap_or_default()
}

fn put_back<T>(blocks: &Mutex<Vec<Block<T>>>, block: Block<T>) {
    blocks.lock().expect("no holder of this lock panics").push(block);
}
