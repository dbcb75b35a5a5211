//! One head's part of a block of rows: its logits, what becomes of them, and the products.

use std::ops::Range;

use super::products::{self, Operands, Write};
use super::rows;
use super::slot::{KeyGradient, Keys, Totals, block_columns};
use crate::fit::penalty::Penalty;
use crate::fit::problem::Problem;
use crate::simd::{Buffer, Real, Simd};

/// What a chunk of keys may take of the first-level cache, in bytes.
const KEY_BYTES: usize = 24 << 10;
/// Rows whose exponentials would be scaled by less are scaled before the products: in float32 the
/// scaled queries would lose digits.
const LEAST_SCALE: f64 = 1e-30;

/// One head's part of a block.
#[derive(Default)]
pub(super) struct Tile<T> {
    head: usize,
    /// The rows of the block.
    rows: Range<usize>,
    /// The columns that the rows see, widened to whole panels.
    columns: Range<usize>,
    stride: usize,
    /// Logits, then exponentials, then the gradient with respect to the logits, but for the scale of
    /// its row.
    values: Buffer<T>,
    /// By row of the block, what its values are yet to be multiplied by. The products do that: a
    /// query has d numbers and a row of values up to n.
    scales: Vec<f64>,
    /// Queries by group: (d, group).
    query_groups: Buffer<T>,
    /// Queries, (rows, width), and their gradient.
    query_rows: Buffer<T>,
    query_gradient: Buffer<T>,
    /// For the row at hand: the least and the greatest logit, and Σ exp(z − greatest) ...
    extremes: (f64, f64),
    sum: f64,
    /// ... at each of the target's entries the logit (−∞ where the head does not see it), and then
    /// a·r, the target's mass that falls to this head ...
    pub shares: Vec<f64>,
    /// ... and the penalty's gradient, if some logit has one.
    penalty_gradient: Buffer<T>,
    penalised: bool,
}

impl<T: Real> Tile<T> {
    /// Makes room for head number `head` of the rows `here`, and packs the queries.
    #[inline(always)]
    pub fn prepare<S: Simd<T>>(
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
        self.head = head;
        self.rows = here.clone();
        self.columns = block_columns(problem, head, here, products::panel_width(simd));
        // A stride that is no large power of two, so that rows do not share cache sets.
        self.stride = self.columns.len() + 16;
        self.values.reserve(count * self.stride);
        self.query_groups.reserve(count * d);
        self.query_rows.reserve(count * width);
        self.query_gradient.reserve(count * width);
        self.penalty_gradient.reserve(self.columns.len());
        self.scales.clear();
        self.scales.resize(here.len(), 1.0);
        let from = &x[2 * head * n * d..][here.start * d..here.end * d];
        for (to, query) in self.query_rows.chunks_exact_mut(width).zip(from.chunks_exact(d)) {
            for (to, &value) in to.iter_mut().zip(query) {
                *to = T::from_f64(value);
            }
            to[d..].fill(T::default());
        }
        self.query_rows[here.len() * width..count * width].fill(T::default());
        let groups = self.query_groups.chunks_exact_mut(group * d);
        for (to, rows) in groups.zip(self.query_rows[..count * width].chunks_exact(group * width)) {
            products::transpose(rows, width, to, group);
        }
    }

    /// The logits of every group of rows against the panels that it sees.
    #[inline(always)]
    pub fn logits<S: Simd<T>>(&mut self, simd: S, problem: &Problem, keys: &Keys<T>) {
        let d = problem.rank();
        let (group, panel) = (products::group_rows(simd), products::panel_width(simd));
        for first in self.columns.clone().step_by(panel) {
            let keys = &keys.panels[first * d..(first + panel) * d];
            for row in self.rows.clone().step_by(group) {
                let rows = row..self.rows.end.min(row + group);
                if block_columns(problem, self.head, &rows, panel).contains(&first) {
                    let local = row - self.rows.start;
                    let at = local * self.stride + first - self.columns.start;
                    let queries = &self.query_groups[local * d..(local + group) * d];
                    products::logits(simd, queries, keys, &mut self.values[at..], self.stride);
                }
            }
        }
    }

    /// Where the values of the columns that a row sees are.
    #[inline(always)]
    fn places(&self, row: usize, seen: &Range<usize>) -> Range<usize> {
        let start = (row - self.rows.start) * self.stride + seen.start - self.columns.start;
        start..start + seen.len()
    }

    /// The visible logits of a row.
    #[inline(always)]
    pub fn row(&self, row: usize, seen: &Range<usize>) -> &[T] {
        &self.values[self.places(row, seen)]
    }

    /// log Σⱼ exp(zⱼ) of the row at hand.
    #[inline(always)]
    pub fn log_sum(&self) -> f64 {
        self.extremes.1 + self.sum.ln()
    }

    /// A row's extremes, and its logits at the target's entries.
    #[inline(always)]
    pub fn look<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        row: usize,
        totals: &mut Totals,
    ) {
        let seen = problem.seen(self.head, row);
        let z = &self.values[self.places(row, &seen)];
        self.extremes = rows::extremes(simd, z);
        let (low, high) = self.extremes;
        totals.max_abs_logit = totals.max_abs_logit.max(high.max(-low));
        totals.logit_spread = totals.logit_spread.max(high - low);
        self.penalised = false;
        let (entries, _) = problem.target().row(row);
        self.shares.clear();
        self.shares.extend(entries.iter().map(|&j| {
            (j as usize)
                .checked_sub(seen.start)
                .and_then(|place| z.get(place))
                .map_or(f64::NEG_INFINITY, |z| z.to_f64())
        }));
    }

    /// Adds the penalty of a row to the totals and keeps its gradient, divided by n.
    #[inline(always)]
    pub fn penalise<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        row: usize,
        penalty: &Penalty,
        totals: &mut Totals,
    ) {
        let multipliers = &penalty.multipliers[self.head][row];
        let (low, high) = self.extremes;
        if high.max(-low) <= penalty.cap && multipliers.is_empty() {
            return;
        }
        self.penalised = true;
        let n = problem.n() as f64;
        let seen = problem.seen(self.head, row);
        let z = &self.values[self.places(row, &seen)];
        let gradient = &mut self.penalty_gradient[..seen.len()];
        totals.penalty += rows::hinge(simd, z, penalty.cap, penalty.slope / n, gradient);
        for &(column, multiplier) in multipliers {
            let place = column as usize - seen.start;
            let (value, slope) = penalty.correction(z[place].to_f64(), multiplier);
            totals.penalty += value / n;
            gradient[place] += T::from_f64(slope / n);
        }
    }

    /// Turns a row's logits into exp(z − greatest).
    #[inline(always)]
    pub fn exponentials<S: Simd<T>>(&mut self, simd: S, problem: &Problem, row: usize) {
        let places = self.places(row, &problem.seen(self.head, row));
        let shift = T::from_f64(self.extremes.1);
        self.sum = rows::exponentials(simd, &mut self.values[places], shift);
    }

    /// Turns a row's exponentials into the gradient with respect to its logits, but for a scale; zero
    /// where the row does not see a column that the products touch. Returns the target's mass of
    /// this head.
    #[inline(always)]
    pub fn gradient<S: Simd<T>>(&mut self, simd: S, problem: &Problem, row: usize) -> f64 {
        let n = problem.n() as f64;
        let local = row - self.rows.start;
        let seen = problem.seen(self.head, row);
        let mass = rows::sum(&self.shares);
        let whole = &mut self.values[local * self.stride..][..self.columns.len()];
        let places = seen.start - self.columns.start..seen.end - self.columns.start;
        whole[..places.start].fill(T::default());
        whole[places.end..].fill(T::default());
        let values = &mut whole[places];
        let scale = mass / (n * self.sum);
        let by_products = !self.penalised && scale >= LEAST_SCALE;
        if !by_products {
            let extra = self.penalised.then_some(&self.penalty_gradient[..seen.len()]);
            rows::gradient(simd, values, scale, extra);
        }
        self.scales[local] = if by_products { scale } else { 1.0 };
        let weight = 1.0 / (n * self.scales[local]);
        let (entries, _) = problem.target().row(row);
        for (&column, &share) in entries.iter().zip(&self.shares) {
            if share > 0.0 {
                let g = &mut values[column as usize - seen.start];
                *g = *g - T::from_f64(share * weight);
            }
        }
        mass
    }

    /// ∂/∂Q = G·K/√d for the rows of the block.
    #[inline(always)]
    pub fn query_gradient<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        keys: &Keys<T>,
        to: &mut [f64],
    ) {
        let (here, base) = (self.rows.clone(), self.columns.start);
        let d = problem.rank();
        let (group, width) = (products::group_rows(simd), d.next_multiple_of(S::LANES));
        let count = here.len().next_multiple_of(group);
        self.values[here.len() * self.stride..count * self.stride].fill(T::default());
        let operands = Operands {
            values: &self.values,
            stride: self.stride,
            packed: &keys.rows[base * width..],
            width,
        };
        // As many keys at a time as the first-level cache holds beside the gradient.
        let chunk = (KEY_BYTES / (width * size_of::<T>())).max(16);
        for first in self.columns.clone().step_by(chunk) {
            for row in here.clone().step_by(group) {
                let rows = row..here.end.min(row + group);
                let seen = problem.seen_by_any(self.head, &rows);
                let columns = seen.start.max(first)..seen.end.min(first + chunk);
                if columns.is_empty() {
                    continue;
                }
                let write = if columns.start == seen.start { Write::Replace } else { Write::Add };
                let columns = columns.start - base..columns.end - base;
                let (local, gradient) = (row - here.start, &mut self.query_gradient);
                products::query_gradient(simd, &operands, local, columns, write, gradient);
            }
        }
        let gradients = self.query_gradient.chunks_exact(width).zip(&self.scales);
        for (to, (from, scale)) in to.chunks_exact_mut(d).zip(gradients) {
            let scale = scale / (d as f64).sqrt();
            for (to, from) in to.iter_mut().zip(from) {
                *to = scale * from.to_f64();
            }
        }
    }

    /// Adds Gᵀ·Q of the block to the slot's gradient of the keys.
    #[inline(always)]
    pub fn key_gradient<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        gradient: &mut KeyGradient<T>,
    ) {
        let here = self.rows.clone();
        let width = problem.rank().next_multiple_of(S::LANES);
        for (query, &scale) in self.query_rows.chunks_exact_mut(width).zip(&self.scales) {
            let scale = T::from_f64(scale);
            for q in query {
                *q = *q * scale;
            }
        }
        let operands =
            Operands { values: &self.values, stride: self.stride, packed: &self.query_rows, width };
        let group = products::key_group(simd, width);
        // The rows that see a group of columns: both ends only ever rise with the column.
        let (mut first, mut last) = (here.start, here.start);
        for column in self.columns.clone().step_by(group) {
            while first < here.end && problem.seen(self.head, first).end <= column {
                first += 1;
            }
            while last < here.end && problem.seen(self.head, last).start < column + group {
                last += 1;
            }
            let (sums, write) = gradient.part(column, group, width);
            if first < last {
                let rows = first - here.start..last - here.start;
                let place = column - self.columns.start;
                products::key_gradient(simd, &operands, rows, place, write, sums);
            } else if write == Write::Replace {
                sums.fill(T::default());
            }
        }
    }
}
