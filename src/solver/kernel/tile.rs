//! One head's part of a block of rows: its logits, their exponentials and gradients, and the products.

use std::ops::Range;

use super::inputs::{Keys, Totals};
use super::rows;
use crate::numerics::rows::{exponentials, extremes};
use crate::numerics::{Buffer, ColumnSums, Real, Simd, Stripe, dot, products};
use crate::solver::penalty::Penalty;
use crate::solver::problem::Problem;

/// Rows with a smaller scale are scaled before the products, because in float32 the scaled queries would lose digits.
const LEAST_SCALE: f64 = 1e-30;

/// One head's part of a block.
#[derive(Default)]
pub(super) struct Tile<T> {
    head: usize,
    /// The rows of the block and the columns to which they may attend.
    stripe: Stripe,
    /// Logits, then exponentials, then the gradient with respect to the logits, without the scale of its row.
    values: Buffer<T>,
    /// The places of each row's target entries among the columns that it sees, if they follow each other.
    together: Vec<Option<Range<usize>>>,
    /// The factor by which the values of each row of the block must still be multiplied. The products apply it, because a query
    /// has d numbers and a row of values up to n.
    scales: Vec<f64>,
    /// Queries in groups: (d, group) each.
    query_groups: Buffer<T>,
    /// Queries, (rows, width), and their gradient.
    query_rows: Buffer<T>,
    query_gradient: Buffer<T>,
    /// For the current row: the smallest and the largest logit, and Σ exp(z − largest) ...
    extremes: (f64, f64),
    sum: f64,
    /// ... with one head Σⱼ aⱼzⱼ over the target's entries; with several, at each entry the logit (−∞ if the head may not attend
    /// to it), and then a·r, the target's mass of this head ...
    pub linear: f64,
    pub shares: Vec<f64>,
    /// ... and the penalty's gradient, if it is nonzero for some logit.
    penalty_gradient: Buffer<T>,
    penalised: bool,
}

impl<T: Real> Tile<T> {
    /// Allocates memory for head number `head` of the rows `here`, and packs the queries.
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
        let (group, width) = (products::row_group(simd), d.next_multiple_of(S::LANES));
        let count = here.len().next_multiple_of(group);
        self.head = head;
        let panel = products::panel_width(simd);
        self.stripe = Stripe::new(here.clone(), panel, |row| problem.seen(head, row));
        self.values.reserve(count * self.stripe.stride);
        self.query_groups.reserve(count * d);
        self.query_rows.reserve(count * width);
        self.query_gradient.reserve(count * width);
        self.penalty_gradient.reserve(self.stripe.columns.len());
        self.scales.clear();
        self.scales.resize(here.len(), 1.0);
        self.together.clear();
        let entries = |row| problem.target().row(row).0;
        let places = |row| together(entries(row), &problem.seen(head, row));
        self.together.extend(here.clone().map(places));
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

    /// Computes the logits of every group of rows for the panels with allowed columns.
    #[inline(always)]
    pub fn logits<S: Simd<T>>(&mut self, simd: S, problem: &Problem, keys: &Keys<T>) {
        let operands = (&*self.query_groups, &*keys.panels, problem.rank());
        let seen = |row| problem.seen(self.head, row);
        self.stripe.by_transposed(simd, seen, operands, &mut self.values);
    }

    /// The allowed logits of a row.
    #[inline(always)]
    pub fn row(&self, row: usize, seen: &Range<usize>) -> &[T] {
        &self.values[self.stripe.places(row, seen)]
    }

    /// log Σⱼ exp(zⱼ) of the current row.
    #[inline(always)]
    pub fn log_sum(&self) -> f64 {
        self.extremes.1 + self.sum.ln()
    }

    /// Computes a row's extremes, and reads its logits at the target's entries.
    #[inline(always)]
    pub fn look<S: Simd<T>>(
        &mut self,
        simd: S,
        problem: &Problem,
        row: usize,
        totals: &mut Totals,
    ) {
        let seen = problem.seen(self.head, row);
        let z = &self.values[self.stripe.places(row, &seen)];
        self.extremes = extremes(simd, z);
        let (low, high) = self.extremes;
        totals.max_abs_logit = totals.max_abs_logit.max(high.max(-low));
        totals.logit_spread = totals.logit_spread.max(high - low);
        self.penalised = false;
        let (entries, a) = problem.target().row(row);
        let is_alone = problem.heads() == 1;
        let together = &self.together[row - self.stripe.rows.start];
        if let (true, Some(places)) = (is_alone, together) {
            self.linear = dot(&z[places.clone()], a);
            return;
        }
        self.shares.clear();
        self.shares.extend(entries.iter().map(|&j| {
            (j as usize)
                .checked_sub(seen.start)
                .and_then(|place| z.get(place))
                .map_or(f64::NEG_INFINITY, |z| z.to_f64())
        }));
        if is_alone {
            self.linear = dot(&self.shares, a);
        }
    }

    /// Adds the penalty of a row to the totals and stores its gradient, divided by n.
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
        let n = problem.rows() as f64;
        let seen = problem.seen(self.head, row);
        let z = &self.values[self.stripe.places(row, &seen)];
        let gradient = &mut self.penalty_gradient[..seen.len()];
        totals.penalty += rows::hinge(simd, z, penalty.cap, penalty.slope / n, gradient);
        for &(column, multiplier) in multipliers {
            let place = column as usize - seen.start;
            let (value, slope) = penalty.correction(z[place].to_f64(), multiplier);
            totals.penalty += value / n;
            gradient[place] += T::from_f64(slope / n);
        }
    }

    /// Replaces a row's logits by exp(z − largest).
    #[inline(always)]
    pub fn exponentials<S: Simd<T>>(&mut self, simd: S, problem: &Problem, row: usize) {
        let places = self.stripe.places(row, &problem.seen(self.head, row));
        let shift = T::from_f64(self.extremes.1);
        self.sum = exponentials(simd, &mut self.values[places], shift);
    }

    /// Replaces a row's exponentials by the gradient with respect to its logits, without a scale. It is zero for columns that
    /// the products touch but the row may not attend to. Returns the target's mass of this head.
    #[inline(always)]
    pub fn gradient<S: Simd<T>>(&mut self, simd: S, problem: &Problem, row: usize) -> f64 {
        let n = problem.rows() as f64;
        let seen = problem.seen(self.head, row);
        let (entries, a) = problem.target().row(row);
        let (mass, shares) = match problem.heads() {
            1 => (1.0, a),
            _ => (rows::sum(&self.shares), &*self.shares),
        };
        let values = self.stripe.clear_unseen(row, &seen, &mut self.values);
        let scale = mass / (n * self.sum);
        let by_products = !self.penalised && scale >= LEAST_SCALE;
        if !by_products {
            let extra = self.penalised.then_some(&self.penalty_gradient[..seen.len()]);
            rows::gradient(simd, values, scale, extra);
        }
        self.scales[row - self.stripe.rows.start] = if by_products { scale } else { 1.0 };
        let weight = 1.0 / (n * self.scales[row - self.stripe.rows.start]);
        if let Some(places) = &self.together[row - self.stripe.rows.start] {
            for (g, &share) in values[places.clone()].iter_mut().zip(shares) {
                *g = *g - T::from_f64(share * weight);
            }
            return mass;
        }
        for (&column, &share) in entries.iter().zip(shares) {
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
        let d = problem.rank();
        let width = d.next_multiple_of(S::LANES);
        let packed = (&*keys.rows, width);
        let seen = |row| problem.seen(self.head, row);
        self.stripe.times(simd, seen, &mut self.values, packed, &mut self.query_gradient);
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
        gradient: &mut ColumnSums<T>,
    ) {
        let width = problem.rank().next_multiple_of(S::LANES);
        for (query, &scale) in self.query_rows.chunks_exact_mut(width).zip(&self.scales) {
            let scale = T::from_f64(scale);
            for q in query {
                *q = *q * scale;
            }
        }
        let packed = (&*self.query_rows, width);
        let seen = |row| problem.seen(self.head, row);
        self.stripe.transposed_times(simd, seen, &self.values, packed, gradient);
    }
}

/// The places of a row's entries among the columns `seen`, if they follow each other, as those of a trained head do.
fn together(entries: &[u32], seen: &Range<usize>) -> Option<Range<usize>> {
    let (first, last) = (*entries.first()? as usize, *entries.last()? as usize);
    let is_together = last - first + 1 == entries.len();
    (is_together && seen.start <= first && last < seen.end)
        .then(|| first - seen.start..last + 1 - seen.start)
}
