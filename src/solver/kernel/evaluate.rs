//! One evaluation: packs keys, runs the slots and adds up their sums.

use rayon::prelude::*;

use super::block::{Block, Want};
use super::inputs::{FindSizes, Inputs, Keys, Sizes, Totals};
use super::slot::{AddSlots, PackKeys, SLOT_ROWS, Slot, SlotWork, slot_query_gradients, slot_rows};
use crate::numerics::{Buffer, Extension, Pool, Real};
use crate::solver::factors::weights_of;
use crate::solver::penalty::{Multiplier, Penalty};
use crate::solver::problem::Problem;

/// Error and logits of factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Mean over rows of KL(Aᵢ ‖ Pᵢ), in nats.
    pub kl_nats: f64,
    /// max |z| over the allowed pairs of every head.
    pub max_abs_logit: f64,
    /// The largest (max − min) of the allowed logits of a row.
    pub logit_spread: f64,
}

/// Result of one evaluation, except the gradient.
pub(in crate::solver) struct Evaluation {
    /// kl_nats plus the penalty.
    pub value: f64,
    pub measured: Measured,
}

/// The objective in the arithmetic of T, with its work space.
pub(in crate::solver) struct Kernel<T> {
    extension: Extension,
    /// Σ a log a divided by the number of rows; kl_nats is this minus the mean log likelihood.
    negative_entropy: f64,
    sizes: Sizes,
    keys: Vec<Keys<T>>,
    slots: Vec<Slot<T>>,
    /// Blocks not in use; a thread takes one for each slot that it processes.
    blocks: Pool<Block<T>>,
}

impl<T: Real> Kernel<T> {
    /// Creates the objective for evaluation with the vector instructions of `extension`.
    pub fn new(problem: &Problem, extension: Extension) -> Self {
        let (n, d, heads) = (problem.n(), problem.rank(), problem.heads());
        let sizes = T::run_with(extension, FindSizes(d));
        let Sizes { width, panel } = sizes;
        let columns = n.next_multiple_of(panel);
        let keys =
            || Keys { panels: Buffer::zeros(columns * d), rows: Buffer::zeros(columns * width) };
        let slots = slot_rows(problem)
            .into_iter()
            .map(|rows| Slot::new(problem, rows, panel, width))
            .collect();
        Self {
            extension,
            negative_entropy: problem.target().mean_log_likelihood_of_itself(),
            sizes,
            keys: (0..heads).map(|_| keys()).collect(),
            slots,
            blocks: Pool::new(),
        }
    }

    /// Evaluates at x and writes the gradient of kl_nats plus the penalty to `gradient`, if given.
    ///
    /// With one head, ∂kl/∂zᵢⱼ = (pᵢⱼ − aᵢⱼ)/n. With several, let rₕᵢⱼ = πₕpₕᵢⱼ/Pᵢⱼ be head h's share of pair (i, j) and sₕᵢ =
    /// Σⱼ aᵢⱼrₕᵢⱼ. Then the gradient is (sₕᵢpₕᵢⱼ − aᵢⱼrₕᵢⱼ)/n, and ∂kl/∂log πₕ = πₕ − Σᵢ sₕᵢ/n.
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
        let query_gradients = slot_query_gradients(gradient.as_deref_mut(), problem, &self.slots);
        let (extension, blocks) = (self.extension, &self.blocks);
        let inputs = Inputs { problem, x, keys: &self.keys, weights: &weights };
        let work = |(slot, query_gradients): (&mut Slot<T>, Vec<&mut [f64]>)| {
            let mut block = blocks.take();
            let want = if with_gradient {
                Want::Gradient { penalty, query_gradients }
            } else {
                Want::Value
            };
            T::run_with(extension, SlotWork { inputs, want, block: &mut block, slot });
            blocks.put_back(block);
        };
        if let [slot] = self.slots.as_mut_slice() {
            work((slot, query_gradients.into_iter().next().unwrap_or_default()));
        } else {
            self.slots.par_iter_mut().zip(query_gradients).with_max_len(1).for_each(work);
        }
        let mut totals = Totals::new(heads);
        self.slots.iter().for_each(|slot| totals.add(&slot.totals));
        if let Some(gradient) = gradient {
            self.add_slots(problem, gradient);
            if heads > 1 {
                for (head, g) in gradient[2 * heads * n * d..].iter_mut().enumerate() {
                    *g = weights[head] - totals.usage[head] / problem.rows() as f64;
                }
            }
        }
        let kl_nats = self.negative_entropy - totals.likelihood / problem.rows() as f64;
        let Totals { max_abs_logit, logit_spread, .. } = totals;
        let measured = Measured { kl_nats, max_abs_logit, logit_spread };
        Evaluation { value: kl_nats + totals.penalty, measured }
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
        let (extension, blocks) = (self.extension, &self.blocks);
        let inputs = Inputs { problem, x, keys: &self.keys, weights: &[] };
        let by_slot: Vec<Vec<Vec<Vec<Multiplier>>>> = self
            .slots
            .par_iter_mut()
            .with_max_len(1)
            .map(|slot| {
                let mut updated = vec![Vec::with_capacity(slot.rows.len()); problem.heads()];
                let mut block = blocks.take();
                let want = Want::Multipliers { penalty, updated: &mut updated };
                T::run_with(extension, SlotWork { inputs, want, block: &mut block, slot });
                blocks.put_back(block);
                updated
            })
            .collect();
        let mut updated = vec![Vec::with_capacity(problem.rows()); problem.heads()];
        for slot in by_slot {
            for (updated, rows) in updated.iter_mut().zip(slot) {
                updated.extend(rows);
            }
        }
        updated
    }

    fn pack(&mut self, problem: &Problem, x: &[f64]) {
        let (n, d, extension) = (problem.n(), problem.rank(), self.extension);
        let Sizes { width, panel } = self.sizes;
        for (head, keys) in self.keys.iter_mut().enumerate() {
            let from = &x[(2 * head + 1) * n * d..2 * (head + 1) * n * d];
            // One task packs whole slots of panels, so that small problems stay on one thread.
            let count = SLOT_ROWS / panel * panel;
            keys.rows
                .par_chunks_mut(count * width)
                .zip(keys.panels.par_chunks_mut(count * d))
                .zip(from.par_chunks(count * d))
                .for_each(|((rows, panels), from)| {
                    T::run_with(extension, PackKeys { from, d, rows, panels });
                });
        }
    }

    /// Adds the keys' gradients of the slots, in order.
    fn add_slots(&self, problem: &Problem, gradient: &mut [f64]) {
        let (n, d) = (problem.n(), problem.rank());
        let (slots, extension) = (&self.slots, self.extension);
        for head in 0..problem.heads() {
            let keys = &mut gradient[(2 * head + 1) * n * d..2 * (head + 1) * n * d];
            keys.par_chunks_mut(SLOT_ROWS * d).enumerate().for_each(|(chunk, keys)| {
                let first = chunk * SLOT_ROWS;
                T::run_with(extension, AddSlots { slots, head, d, first, keys });
            });
        }
    }
}
