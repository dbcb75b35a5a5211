//! One block of rows: logits, softmax, gradient with respect to the logits, and its contribution to the gradients of queries
//! and keys.

use std::ops::Range;

use super::inputs::{Inputs, Totals};
use super::tile::Tile;
use crate::numerics::{ColumnSums, Real, Simd};
use crate::solver::penalty::{Multiplier, Penalty};
use crate::solver::problem::Problem;

/// The purpose of a pass over the rows.
pub(super) enum Want<'a> {
    /// The value only.
    Value,
    /// Value and gradients. `query_gradients` holds the slot's rows of the queries' gradient, one slice per head.
    Gradient { penalty: Option<&'a Penalty>, query_gradients: Vec<&'a mut [f64]> },
    /// The updated multipliers of the logit bound, per head and row.
    Multipliers { penalty: &'a Penalty, updated: &'a mut [Vec<Vec<Multiplier>>] },
}

/// The work space of a block: one tile per head.
#[derive(Default)]
pub(super) struct Block<T> {
    tiles: Vec<Tile<T>>,
    /// log π − log Σ of each head, for the current row.
    offsets: Vec<f64>,
}

impl<T: Real> Block<T> {
    /// Processes the rows `here` of the slot that begins at `slot_start`.
    #[inline(always)]
    pub fn run<S: Simd<T>>(
        &mut self,
        simd: S,
        inputs: &Inputs<'_, T>,
        (slot_start, here): (usize, Range<usize>),
        want: &mut Want<'_>,
        key_gradients: &mut [ColumnSums<T>],
        totals: &mut Totals,
    ) {
        let Inputs { problem, x, keys, weights } = *inputs;
        self.tiles.resize_with(problem.heads(), Tile::default);
        for (head, tile) in self.tiles.iter_mut().enumerate() {
            tile.prepare(simd, problem, x, head, &here);
            tile.logits(simd, problem, &keys[head]);
        }
        if let Want::Multipliers { penalty, updated } = want {
            for (head, (tile, updated)) in self.tiles.iter().zip(updated.iter_mut()).enumerate() {
                for row in here.clone() {
                    let seen = problem.seen(head, row);
                    let z = tile.row(row, &seen).iter().map(|z| z.to_f64());
                    let multipliers = &penalty.multipliers[head][row];
                    updated.push(penalty.update_row(z, seen.start, multipliers));
                }
            }
            return;
        }
        let penalty = match want {
            Want::Gradient { penalty, .. } => *penalty,
            _ => None,
        };
        for row in here.clone() {
            for tile in &mut self.tiles {
                tile.look(simd, problem, row, totals);
                if let Some(penalty) = penalty {
                    tile.penalise(simd, problem, row, penalty, totals);
                }
                tile.exponentials(simd, problem, row);
            }
            totals.likelihood += self.share(problem, weights, row);
            if let Want::Gradient { .. } = want {
                for (tile, usage) in self.tiles.iter_mut().zip(&mut totals.usage) {
                    *usage += tile.gradient(simd, problem, row);
                }
            }
        }
        if let Want::Gradient { query_gradients, .. } = want {
            for (head, tile) in self.tiles.iter_mut().enumerate() {
                let d = problem.rank();
                let rows = here.start - slot_start..here.end - slot_start;
                let to = &mut query_gradients[head][rows.start * d..rows.end * d];
                tile.query_gradient(simd, problem, &keys[head], to);
                tile.key_gradient(simd, problem, &mut key_gradients[head]);
            }
        }
    }

    /// Σⱼ aᵢⱼ log Pᵢⱼ of one row. Leaves the shares a·r of the target's entries in each tile.
    #[inline(always)]
    fn share(&mut self, problem: &Problem, weights: &[f64], row: usize) -> f64 {
        if let [tile] = self.tiles.as_slice() {
            return tile.linear - tile.log_sum();
        }
        let (_, a) = problem.target().row(row);
        self.offsets.clear();
        let log_sums = self.tiles.iter().map(Tile::log_sum);
        self.offsets.extend(weights.iter().zip(log_sums).map(|(w, log_sum)| w.ln() - log_sum));
        let mut likelihood = 0.0;
        for (entry, &a) in a.iter().enumerate() {
            let mut greatest = f64::NEG_INFINITY;
            for (tile, offset) in self.tiles.iter_mut().zip(&self.offsets) {
                tile.shares[entry] += offset;
                greatest = greatest.max(tile.shares[entry]);
            }
            let sum: f64 =
                self.tiles.iter().map(|tile| (tile.shares[entry] - greatest).exp()).sum();
            let log_p = greatest + sum.ln();
            likelihood += a * log_p;
            for tile in &mut self.tiles {
                tile.shares[entry] = a * (tile.shares[entry] - log_p).exp();
            }
        }
        likelihood
    }
}
