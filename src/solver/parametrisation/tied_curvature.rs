//! The preconditioner for the weights of shared projections.

use ndarray::{Array2, ArrayView1, Axis, s};

use super::tied::SharedProjection;
use crate::numerics::product;
use crate::solver::curvature::{Preconditioner, Softmax, hold, in_single};
use crate::solver::penalty::Penalty;
use crate::solver::problem::Problem;
use crate::solver::side_curvature::{Side, Sides};

/// Number of rows whose probabilities are in memory at once.
const BLOCK_ROWS: usize = 128;
/// Number of rows whose own blocks are computed: B is their mean.
const LOOKED_AT: usize = 64;

impl SharedProjection {
    /// The preconditioner at these `factors`, which must not be normalised; `None` if it is not finite.
    pub(super) fn sides(
        &self,
        problem: &Problem,
        factors: &[f64],
        penalty: &Penalty,
    ) -> Option<Preconditioner> {
        let (n, d, rows) = (problem.n(), problem.rank(), problem.rows());
        let [q, k] = [0, 1].map(|side| in_single(&factors[side * n * d..][..n * d], n, d));
        let lengths = |m: &Array2<f32>| -> Vec<f64> {
            m.rows().into_iter().map(|row| row.dot(&row).into()).collect()
        };
        let [q_squares, k_squares] = [&q, &k].map(lengths);
        let mut traces = [vec![0.0; rows], vec![0.0; n]];
        let mut channels = [0, 1].map(|_| Array2::zeros((d, d)));
        let stride = rows.div_ceil(LOOKED_AT);
        for first in (0..rows).step_by(BLOCK_ROWS) {
            let block = first..rows.min(first + BLOCK_ROWS);
            let mut softmax = Softmax::of(problem, [&q, &k], 0, block.clone());
            let columns = softmax.columns.clone();
            let mean_keys = product(softmax.weights.view(), k.slice(s![columns.clone(), ..]));
            for (local, row) in block.enumerate() {
                let seen = problem.seen(0, row);
                let places = seen.start - columns.start..seen.end - columns.start;
                let z = softmax.z.row(local);
                let multipliers = &penalty.multipliers[0][row];
                let held = (places.clone(), columns.start);
                hold(penalty, multipliers, held, z, softmax.weights.row_mut(local));
                let weights = softmax.weights.row(local);
                let mean = mean_keys.row(local);
                traces[0][row] = -f64::from(mean.dot(&mean));
                for (place, column) in places.clone().zip(seen.clone()) {
                    let weight = f64::from(weights[place]);
                    traces[0][row] += weight * k_squares[column];
                    traces[1][column] += weight * q_squares[row];
                }
                if row % stride == 0 {
                    let weights = weights.slice(s![places]);
                    self.look(row, (q.row(row), &k, mean), (seen.start, weights), &mut channels);
                }
            }
        }
        let [of_queries, of_keys] = channels;
        let side = |side: usize, of_channels: Array2<f64>| {
            let made_of = self.inputs.of_sides()[side];
            let mut weighed = made_of.clone();
            let mut total = 0.0;
            for (at, (mut row, trace)) in
                weighed.axis_iter_mut(Axis(0)).zip(&traces[side]).enumerate()
            {
                let mut number = [1.0];
                self.scale(side, self.inputs.position(side, at), &mut number);
                let trace = trace.max(0.0) * number[0] * number[0];
                total += trace * row.dot(&row);
                row *= trace;
            }
            let of_inputs = product(made_of.t(), weighed.view());
            Side { of_inputs, of_channels, mean: total / (n * d * d * made_of.ncols()) as f64 }
        };
        Sides::inverted([side(0, of_queries), side(1, of_keys)])
            .map(|sides| Preconditioner::Sides(Box::new(sides)))
    }

    /// Adds the share of row number `row` to the blocks of queries and of keys, before rotation (RoPE).
    fn look(
        &self,
        row: usize,
        (query, k, mean): (ArrayView1<'_, f32>, &Array2<f32>, ArrayView1<'_, f32>),
        (first, weights): (usize, ArrayView1<'_, f32>),
        to: &mut [Array2<f64>; 2],
    ) {
        let d = query.len();
        let position = self.inputs.position(0, row);
        let mut keys = k.slice(s![first..first + weights.len(), ..]).mapv(f64::from);
        let query = query.mapv(f64::from);
        let mut queries = Array2::zeros((weights.len(), d));
        for (at, ((mut key, mut turned), &weight)) in
            keys.rows_mut().into_iter().zip(queries.rows_mut()).zip(weights).enumerate()
        {
            self.turn(position, key.as_slice_mut().expect("rows lie together"), -1.0);
            turned.assign(&query);
            self.turn(first + at, turned.as_slice_mut().expect("rows lie together"), -1.0);
            let root = f64::from(weight.max(0.0)).sqrt();
            key *= root;
            turned *= root;
        }
        let mut mean = mean.mapv(f64::from);
        self.turn(position, mean.as_slice_mut().expect("a row lies together"), -1.0);
        let mean = mean.insert_axis(Axis(1));
        to[0] += &(product(keys.t(), keys.view()) - product(mean.view(), mean.t()));
        to[1] += &product(queries.t(), queries.view());
    }
}
