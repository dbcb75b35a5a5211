//! One block of rows: logits, softmax, gradient with respect to the logits, and what it adds to the
//! gradients of queries and keys.

use std::ops::Range;

use super::products::{self, Operands, Write};
use super::{Keys, Totals, block_columns, rows};
use crate::fit::penalty::{Multiplier, Penalty};
use crate::fit::problem::Problem;
use crate::simd::{Buffer, Real, Simd};

/// What a pass over the rows is for.
pub(super) enum Want<'a> {
    /// The value alone.
    Value,
    /// The gradients too; of the queries', by head, the rows of this slot.
    Gradient { penalty: Option<&'a Penalty>, query_gradients: Vec<&'a mut [f64]> },
    /// The cap's multipliers, updated, by head and row.
    Multipliers { penalty: &'a Penalty, updated: &'a mut [Vec<Vec<Multiplier>>] },
}

/// The work space of a block: one tile for each head.
#[derive(Default)]
pub(super) struct Block<T> {
    tiles: Vec<Tile<T>>,
    /// For the row at hand, log π − log Σ of each head.
    offsets: Vec<f64>,
}

/// One head's part of a block.
#[derive(Default)]
struct Tile<T> {
    /// The columns that the rows see, widened to whole panels.
    columns: Range<usize>,
    stride: usize,
    /// Logits, then exponentials, then the gradient with respect to the logits.
    values: Buffer<T>,
    /// Queries by group: (d, group), divided by √d.
    query_groups: Buffer<T>,
    /// Queries, (rows, width), and their gradient.
    query_rows: Buffer<T>,
    query_gradient: Buffer<T>,
    /// For the row at hand: the least and the greatest logit, and Σ exp(z − greatest) ...
    extremes: (f64, f64),
    sum: f64,
    /// ... at each of the target's entries the logit (−∞ where the head does not see it), and then
    /// a·r, the target's mass that falls to this head ...
    shares: Vec<f64>,
    /// ... and the penalty's gradient, if some logit has one.
    penalty_gradient: Buffer<T>,
    penalised: bool,
}

impl<T: Real> Block<T> {
    /// Runs over the rows `here` of the slot that begins at `slot_start`.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "one call, of the parts of one slot")]
    pub fn run<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        x: &[f64],
        keys: &[Keys<T>],
        weights: &[f64],
        (slot_start, here): (usize, Range<usize>),
        want: &mut Want<'_>,
        key_gradients: &mut [(Range<usize>, Buffer<T>)],
        totals: &mut Totals,
    ) {
        self.tiles.resize_with(problem.heads(), Tile::default);
        for (head, tile) in self.tiles.iter_mut().enumerate() {
            tile.prepare(simd, problem, x, head, &here);
            tile.logits(simd, problem, head, &here, &keys[head]);
        }
        if let Want::Multipliers { penalty, updated } = want {
            for (head, (tile, updated)) in self.tiles.iter().zip(updated.iter_mut()).enumerate() {
                for row in here.clone() {
                    let seen = problem.seen(head, row);
                    let z = tile.row(row - here.start, &seen).iter().map(|z| z.to_f64());
                    updated.push(penalty.update_row(
                        z,
                        seen.start,
                        &penalty.multipliers[head][row],
                    ));
                }
            }
            return;
        }
        let penalty = match want {
            Want::Gradient { penalty, .. } => *penalty,
            _ => None,
        };
        for row in here.clone() {
            for (head, tile) in self.tiles.iter_mut().enumerate() {
                let multipliers = penalty.map(|penalty| &penalty.multipliers[head][row][..]);
                tile.look(simd, problem, head, (row, row - here.start), totals);
                if let (Some(penalty), Some(multipliers)) = (penalty, multipliers) {
                    tile.penalise(
                        simd,
                        problem,
                        head,
                        (row, row - here.start),
                        penalty,
                        multipliers,
                        totals,
                    );
                }
                let seen = problem.seen(head, row);
                let shift = T::from_f64(tile.extremes.1);
                tile.sum = rows::exponentials(simd, tile.row_mut(row - here.start, &seen), shift);
            }
            totals.likelihood += self.share(problem, weights, row);
            if let Want::Gradient { .. } = want {
                for (head, tile) in self.tiles.iter_mut().enumerate() {
                    totals.usage[head] +=
                        tile.gradient(simd, problem, head, (row, row - here.start));
                }
            }
        }
        if let Want::Gradient { query_gradients, .. } = want {
            for (head, tile) in self.tiles.iter_mut().enumerate() {
                let d = problem.rank();
                let rows = here.start - slot_start..here.end - slot_start;
                let to = &mut query_gradients[head][rows.start * d..rows.end * d];
                tile.add_query_gradient(simd, problem, head, &here, &keys[head], to);
                tile.add_key_gradient(simd, problem, head, &here, &mut key_gradients[head]);
            }
        }
    }

    /// Σⱼ aᵢⱼ log Pᵢⱼ of one row; leaves in each tile the shares a·r of the target's entries.
    #[inline(always)]
    fn share(&mut self, problem: &Problem, weights: &[f64], row: usize) -> f64 {
        let (_, a) = problem.target().row(row);
        if let [tile] = self.tiles.as_mut_slice() {
            let linear: f64 = a.iter().zip(&tile.shares).map(|(a, z)| a * z).sum();
            tile.shares.copy_from_slice(a);
            return linear - tile.extremes.1 - tile.sum.ln();
        }
        self.offsets.clear();
        let log_sums = self.tiles.iter().map(|tile| tile.extremes.1 + tile.sum.ln());
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

impl<T: Real> Tile<T> {
    /// Makes room and packs the queries.
    #[inline(always)]
    fn prepare<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        x: &[f64],
        head: usize,
        here: &Range<usize>,
    ) {
        let (n, d) = (problem.n(), problem.rank());
        let (group, width) = (products::group_rows(simd), d.next_multiple_of(S::LANES));
        let count = here.len().next_multiple_of(group);
        self.columns = block_columns(problem, head, here, products::panel_width(simd));
        // A stride that is no large power of two, so that rows do not share cache sets.
        self.stride = self.columns.len() + 16;
        self.values.reserve(count * self.stride);
        self.query_groups.reserve(count * d);
        self.query_rows.reserve(count * width);
        self.query_gradient.reserve(count * width);
        self.penalty_gradient.reserve(self.columns.len());
        let scale = 1.0 / (d as f64).sqrt();
        let from = &x[2 * head * n * d..][here.start * d..here.end * d];
        self.query_groups[..count * d].fill(T::default());
        for (row, query) in from.chunks_exact(d).enumerate() {
            let to = &mut self.query_rows[row * width..(row + 1) * width];
            let groups = &mut self.query_groups[row / group * group * d..];
            for (t, &value) in query.iter().enumerate() {
                to[t] = T::from_f64(value);
                groups[t * group + row % group] = T::from_f64(value * scale);
            }
            to[d..].fill(T::default());
        }
    }

    /// The logits of every group of rows against the panels that it sees, zero where a row does not
    /// see a column that its neighbours do.
    #[inline(always)]
    fn logits<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        head: usize,
        here: &Range<usize>,
        keys: &Keys<T>,
    ) {
        let d = problem.rank();
        let (group, panel) = (products::group_rows(simd), products::panel_width(simd));
        for first in self.columns.clone().step_by(panel) {
            let keys = &keys.panels[first * d..(first + panel) * d];
            for row in (0..here.len()).step_by(group) {
                let last = (row + group).min(here.len());
                let seen =
                    block_columns(problem, head, &(here.start + row..here.start + last), panel);
                if seen.contains(&first) {
                    let at = row * self.stride + first - self.columns.start;
                    let queries = &self.query_groups[row * d..(row + group) * d];
                    products::logits(simd, queries, keys, &mut self.values[at..], self.stride);
                }
            }
        }
    }

    /// The visible logits of a row of the block.
    #[inline(always)]
    fn row(&self, local: usize, seen: &Range<usize>) -> &[T] {
        let start = local * self.stride + seen.start - self.columns.start;
        &self.values[start..start + seen.len()]
    }

    #[inline(always)]
    fn row_mut(&mut self, local: usize, seen: &Range<usize>) -> &mut [T] {
        let start = local * self.stride + seen.start - self.columns.start;
        &mut self.values[start..start + seen.len()]
    }

    /// A row's extremes, and its logits at the target's entries.
    #[inline(always)]
    fn look<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        head: usize,
        (row, local): (usize, usize),
        totals: &mut Totals,
    ) {
        let seen = problem.seen(head, row);
        self.extremes = rows::extremes(simd, self.row(local, &seen));
        let (low, high) = self.extremes;
        totals.max_abs_logit = totals.max_abs_logit.max(high.max(-low));
        totals.logit_spread = totals.logit_spread.max(high - low);
        self.penalised = false;
        let (entries, _) = problem.target().row(row);
        let mut shares = std::mem::take(&mut self.shares);
        let z = self.row(local, &seen);
        shares.clear();
        shares.extend(entries.iter().map(|&j| {
            (j as usize)
                .checked_sub(seen.start)
                .and_then(|place| z.get(place))
                .map_or(f64::NEG_INFINITY, |z| z.to_f64())
        }));
        self.shares = shares;
    }

    /// The penalty of a row and its gradient, divided by n.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a row, and where it goes")]
    fn penalise<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        head: usize,
        (row, local): (usize, usize),
        penalty: &Penalty,
        multipliers: &[Multiplier],
        totals: &mut Totals,
    ) {
        let n = problem.n() as f64;
        let seen = problem.seen(head, row);
        let start = local * self.stride + seen.start - self.columns.start;
        let z = &self.values[start..start + seen.len()];
        let (low, high) = self.extremes;
        if high.max(-low) <= penalty.cap && multipliers.is_empty() {
            return;
        }
        self.penalised = true;
        let gradient = &mut self.penalty_gradient[..seen.len()];
        totals.penalty += rows::hinge(simd, z, penalty.cap, penalty.slope / n, gradient);
        for &(column, multiplier) in multipliers {
            let place = column as usize - seen.start;
            let (value, slope) = penalty.correction(z[place].to_f64(), multiplier);
            totals.penalty += value / n;
            gradient[place] += T::from_f64(slope / n);
        }
    }

    /// Turns one row's exponentials into the gradient with respect to its logits, zero where the row
    /// does not see a column that the products touch; returns the target's mass of this head.
    #[inline(always)]
    fn gradient<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        head: usize,
        (row, local): (usize, usize),
    ) -> f64 {
        let n = problem.n() as f64;
        let seen = problem.seen(head, row);
        let mass: f64 = self.shares.iter().sum();
        let whole = &mut self.values[local * self.stride..][..self.columns.len()];
        let places = seen.start - self.columns.start..seen.end - self.columns.start;
        whole[..places.start].fill(T::default());
        whole[places.end..].fill(T::default());
        let values = &mut whole[places];
        let extra = self.penalised.then_some(&self.penalty_gradient[..seen.len()]);
        rows::gradient(simd, values, mass / (n * self.sum), extra);
        let (entries, _) = problem.target().row(row);
        for (&column, &share) in entries.iter().zip(&self.shares) {
            if share > 0.0 {
                let g = &mut values[column as usize - seen.start];
                *g = *g - T::from_f64(share / n);
            }
        }
        mass
    }

    /// ∂/∂Q = G·K/√d for the rows of the block.
    #[inline(always)]
    fn add_query_gradient<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        head: usize,
        here: &Range<usize>,
        keys: &Keys<T>,
        to: &mut [f64],
    ) {
        let d = problem.rank();
        let (group, width) = (products::group_rows(simd), d.next_multiple_of(S::LANES));
        let count = here.len().next_multiple_of(group);
        self.values[here.len() * self.stride..count * self.stride].fill(T::default());
        let base = self.columns.start;
        let operands = Operands {
            values: &self.values,
            stride: self.stride,
            packed: &keys.rows[base * width..],
            width,
        };
        // As many keys at a time as the first-level cache holds beside the gradient.
        let chunk = (KEY_BYTES / (width * size_of::<T>())).max(16);
        for first in self.columns.clone().step_by(chunk) {
            for row in (0..here.len()).step_by(group) {
                let last = (row + group).min(here.len());
                let seen = problem.seen_by_any(head, &(here.start + row..here.start + last));
                let columns = seen.start.max(first)..seen.end.min(first + chunk);
                if columns.is_empty() {
                    continue;
                }
                let write = if columns.start == seen.start { Write::Replace } else { Write::Add };
                let columns = columns.start - base..columns.end - base;
                let gradient = &mut self.query_gradient;
                products::query_gradient(simd, &operands, row, columns, write, gradient);
            }
        }
        let scale = 1.0 / (d as f64).sqrt();
        for (to, from) in to.chunks_exact_mut(d).zip(self.query_gradient.chunks_exact(width)) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = scale * from.to_f64());
        }
    }

    /// Adds Gᵀ·Q of the block to the slot's gradient of the keys.
    #[inline(always)]
    fn add_key_gradient<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        head: usize,
        here: &Range<usize>,
        (slot_columns, gradient): &mut (Range<usize>, Buffer<T>),
    ) {
        let width = problem.rank().next_multiple_of(S::LANES);
        let operands =
            Operands { values: &self.values, stride: self.stride, packed: &self.query_rows, width };
        let group = products::key_group(simd, width);
        // The rows that see a group of columns: both ends only ever rise with the column.
        let (mut first, mut last) = (here.start, here.start);
        for column in self.columns.clone().step_by(group) {
            while first < here.end && problem.seen(head, first).end <= column {
                first += 1;
            }
            while last < here.end && problem.seen(head, last).start < column + group {
                last += 1;
            }
            if first >= last {
                continue;
            }
            let rows = first - here.start..last - here.start;
            let gradient = &mut gradient[(column - slot_columns.start) * width..];
            let place = column - self.columns.start;
            products::key_gradient(simd, &operands, rows, place, Write::Add, gradient);
        }
    }
}

/// What a chunk of keys may take of the first-level cache, in bytes.
const KEY_BYTES: usize = 24 << 10;
