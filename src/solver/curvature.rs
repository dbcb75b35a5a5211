//! Block-diagonal preconditioner: the d × d blocks of each query and each key in the (positive semidefinite)
//! Gauss–Newton matrix of the augmented Lagrangian.
//!
//! With sₕᵢ the target's mass of row i in head h, p its probabilities, and hᵢⱼ = ρ where the logit bound is active at zᵢⱼ, and
//! 0 elsewhere:
//!
//! > query i: (Σⱼ (s p + h)ᵢⱼ kⱼkⱼᵀ − sᵢ k̄ᵢk̄ᵢᵀ)/(n·d), k̄ᵢ = Σⱼ pᵢⱼkⱼ;  key j: Σᵢ (s p + h)ᵢⱼ qᵢqᵢᵀ/(n·d).
//!
//! The curvature of rows differs by orders of magnitude; a row that attends to one column has almost none. A quasi-Newton
//! method that starts from a multiple of the identity spends most of its iterations on learning this.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayViewMut1, ArrayViewMut2, Axis, s};
use rayon::prelude::*;

use super::block_inverses::Blocks;
use super::factors::{matrix, weights_of};
use super::penalty::{Multiplier, Penalty};
use super::problem::Problem;
use super::side_curvature::Sides;
use crate::numerics::rows::{exponentials, extremes};
use crate::numerics::{Kernel, Real as _, Simd, gemm, product};

/// Number of rows whose probabilities are in memory at once.
const BLOCK_ROWS: usize = 128;
/// Number of these rows per thread task.
const CHUNK_ROWS: usize = 16;
/// Number of columns of a product per thread task.
const CHUNK_COLUMNS: usize = 256;

/// An approximate inverse of the Hessian.
pub(super) enum Preconditioner {
    /// For free queries and keys.
    Blocks(Blocks),
    /// For the weights of shared projections.
    Sides(Box<Sides>),
}

impl Preconditioner {
    /// v ← B⁻¹v for two vectors at once; the second may be empty.
    pub fn apply(&self, both: [&mut [f64]; 2]) {
        match self {
            Self::Blocks(blocks) => blocks.apply(both),
            Self::Sides(sides) => sides.apply(both),
        }
    }
}

impl Blocks {
    /// The inverses of the blocks at x; `None` if they are not finite.
    pub fn at(problem: &Problem, x: &[f64], penalty: &Penalty) -> Option<Self> {
        let blocks = Self::blocks(problem, x, penalty);
        let d = problem.rank();
        let sides = blocks.iter().flatten().filter_map(|side| side.as_slice());
        let blocks: Vec<&[f32]> = sides.flat_map(|side| side.chunks(d * (d + 1) / 2)).collect();
        Self::inverted(&blocks, problem.rows(), d)
    }

    /// n·d times the blocks of queries and keys, per head: the lower triangle of each block, row by row.
    fn blocks(problem: &Problem, x: &[f64], penalty: &Penalty) -> Vec<[Array2<f32>; 2]> {
        let (n, d, heads) = (problem.n(), problem.rank(), problem.heads());
        let pairs = d * (d + 1) / 2;
        let parts: Vec<Part> = (0..heads)
            .map(|head| {
                let pair = &x[2 * head * n * d..2 * (head + 1) * n * d];
                let [q, k] = [&pair[..n * d], &pair[n * d..]].map(|side| in_single(side, n, d));
                Part { query_outer: outer(&q), key_outer: outer(&k), q, k }
            })
            .collect();
        let mut blocks: Vec<[Array2<f32>; 2]> =
            (0..heads).map(|_| [Array2::zeros((n, pairs)), Array2::zeros((n, pairs))]).collect();
        let log_weights: Vec<f64> =
            weights_of(x, heads, n, d).iter().map(|w| w.max(f64::MIN_POSITIVE).ln()).collect();
        for first in (0..problem.rows()).step_by(BLOCK_ROWS) {
            let rows = first..problem.rows().min(first + BLOCK_ROWS);
            let mut heads: Vec<Softmax> = (0..heads)
                .map(|head| {
                    Softmax::of(problem, [&parts[head].q, &parts[head].k], head, rows.clone())
                })
                .collect();
            let masses = masses(problem, &heads, &log_weights, rows.start);
            for (head, softmax) in heads.iter_mut().enumerate() {
                let [queries, keys] = &mut blocks[head];
                let to = queries.slice_mut(s![rows.clone(), ..]);
                softmax.query_blocks(&parts[head], &masses[head], penalty, head, to);
                let to = keys.slice_mut(s![softmax.columns.clone(), ..]);
                softmax.add_key_blocks(&parts[head], to);
            }
        }
        blocks
    }
}

/// One head's factors, and the pairwise products of each row's entries, (n, d(d + 1)/2).
struct Part {
    q: Array2<f32>,
    k: Array2<f32>,
    query_outer: Array2<f32>,
    key_outer: Array2<f32>,
}

/// Queries or keys in float32, which is enough for an approximation.
pub(super) fn in_single(side: &[f64], n: usize, d: usize) -> Array2<f32> {
    matrix(side, n, d).mapv(|v| v as f32)
}

fn outer(m: &Array2<f32>) -> Array2<f32> {
    let (n, d) = m.dim();
    let mut products = Array2::zeros((n, d * (d + 1) / 2));
    for (mut to, row) in products.rows_mut().into_iter().zip(m.rows()) {
        to.iter_mut().zip(lower(d)).for_each(|(to, (a, b))| *to = row[a] * row[b]);
    }
    products
}

/// Row and column of each entry of a lower triangle, row by row.
fn lower(d: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..d).flat_map(|a| (0..=a).map(move |b| (a, b)))
}

/// A head's softmax over a block of rows.
pub(super) struct Softmax {
    rows: Range<usize>,
    /// The columns to which any of the rows may attend.
    pub columns: Range<usize>,
    /// The columns to which each row may attend.
    seen: Vec<Range<usize>>,
    pub z: Array2<f32>,
    /// Probabilities p; s·p + h after the queries' blocks are computed.
    pub weights: Array2<f32>,
    /// log Σ exp z of each row.
    log_sums: Vec<f64>,
}

impl Softmax {
    pub fn of(
        problem: &Problem,
        [q, k]: [&Array2<f32>; 2],
        head: usize,
        rows: Range<usize>,
    ) -> Self {
        let seen: Vec<_> = rows.clone().map(|row| problem.seen(head, row)).collect();
        let columns = problem.seen_by_any(head, &rows);
        let mut z = Array2::zeros((rows.len(), columns.len()));
        let mut p = z.clone();
        let mut log_sums = vec![0.0; rows.len()];
        let scale = 1.0 / (problem.rank() as f32).sqrt();
        let k = k.slice(s![columns.clone(), ..]);
        let q = q.slice(s![rows.clone(), ..]);
        let chunks: Vec<_> = q
            .axis_chunks_iter(Axis(0), CHUNK_ROWS)
            .zip(z.axis_chunks_iter_mut(Axis(0), CHUNK_ROWS))
            .zip(p.axis_chunks_iter_mut(Axis(0), CHUNK_ROWS))
            .zip(log_sums.chunks_mut(CHUNK_ROWS).zip(seen.chunks(CHUNK_ROWS)))
            .collect();
        chunks.into_par_iter().for_each(|(((q, mut z), mut p), (log_sums, seen))| {
            gemm(scale, q, k.t(), 0.0, z.view_mut());
            for (((z, p), log_sum), seen) in
                z.rows().into_iter().zip(p.rows_mut()).zip(log_sums).zip(seen)
            {
                let seen = seen.start - columns.start..seen.end - columns.start;
                let z = z.to_slice().expect("rows of a chunk of rows are contiguous");
                let p = p.into_slice().expect("rows of a chunk of rows are contiguous");
                *log_sum = f32::run(Normalise { z: &z[seen.clone()], p: &mut p[seen] });
            }
        });
        Self { rows, columns, seen, z, weights: p, log_sums }
    }

    /// log p of a pair; −∞ if the head may not attend to it.
    fn log_p(&self, local: usize, column: usize) -> f64 {
        if self.seen[local].contains(&column) {
            f64::from(self.z[[local, column - self.columns.start]]) - self.log_sums[local]
        } else {
            f64::NEG_INFINITY
        }
    }

    /// Replaces p by s·p + h and writes the blocks of the rows' queries.
    fn query_blocks(
        &mut self,
        part: &Part,
        masses: &[f64],
        penalty: &Penalty,
        head: usize,
        mut to: ArrayViewMut2<'_, f32>,
    ) {
        let d = part.k.ncols();
        let mean_keys = product(self.weights.view(), part.k.slice(s![self.columns.clone(), ..]));
        let first = self.columns.start;
        let rows = self.rows.clone().zip(&self.seen).zip(masses);
        for ((mut weights, z), ((row, seen), &mass)) in
            self.weights.rows_mut().into_iter().zip(self.z.rows()).zip(rows)
        {
            let multipliers = &penalty.multipliers[head][row];
            let seen = seen.start - first..seen.end - first;
            weights.slice_mut(s![seen.clone()]).mapv_inplace(|p| mass as f32 * p);
            hold(penalty, multipliers, (seen, first), z, weights);
        }
        let outer = part.key_outer.slice(s![self.columns.clone(), ..]);
        let entries: Vec<(usize, usize)> = lower(d).collect();
        let chunks: Vec<_> = to
            .axis_chunks_iter_mut(Axis(1), CHUNK_COLUMNS)
            .zip(outer.axis_chunks_iter(Axis(1), CHUNK_COLUMNS))
            .zip(entries.chunks(CHUNK_COLUMNS))
            .collect();
        chunks.into_par_iter().for_each(|((mut to, outer), entries)| {
            gemm(1.0, self.weights.view(), outer, 0.0, to.view_mut());
            for ((mut to, mean), &mass) in
                to.rows_mut().into_iter().zip(mean_keys.rows()).zip(masses)
            {
                for (to, &(a, b)) in to.iter_mut().zip(entries) {
                    *to -= mass as f32 * mean[a] * mean[b];
                }
            }
        });
    }

    /// Adds the rows' share to the blocks of the keys to which they may attend.
    fn add_key_blocks(&self, part: &Part, mut to: ArrayViewMut2<'_, f32>) {
        let outer = part.query_outer.slice(s![self.rows.clone(), ..]);
        let chunks: Vec<_> = to
            .axis_chunks_iter_mut(Axis(0), CHUNK_COLUMNS)
            .zip(self.weights.axis_chunks_iter(Axis(1), CHUNK_COLUMNS))
            .collect();
        chunks.into_par_iter().for_each(|(to, weights)| {
            gemm(1.0, weights.t(), outer, 1.0, to);
        });
    }
}

/// Adds h to the weights of a row with logits z: ρ where the logit bound is active. The row may attend to the columns `seen`,
/// counted from column `first`.
pub(super) fn hold(
    penalty: &Penalty,
    multipliers: &[Multiplier],
    (seen, first): (Range<usize>, usize),
    z: ArrayView1<'_, f32>,
    mut weights: ArrayViewMut1<'_, f32>,
) {
    let slope = penalty.slope as f32;
    for column in seen {
        weights[column] += if penalty.acts(z[column].into(), 0.0) { slope } else { 0.0 };
    }
    for &(column, multiplier) in multipliers {
        let column = column as usize - first;
        let acts = |multiplier| f32::from(penalty.acts(z[column].into(), multiplier));
        weights[column] += (acts(multiplier) - acts(0.0)) * slope;
    }
}

/// p ← softmax z; returns log Σ exp z.
struct Normalise<'a> {
    z: &'a [f32],
    p: &'a mut [f32],
}

impl Kernel<f32> for Normalise<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd<f32>>(self, simd: S) -> f64 {
        let (_, greatest) = extremes(simd, self.z);
        self.p.copy_from_slice(self.z);
        let sum = exponentials(simd, self.p, greatest as f32);
        let share = (1.0 / sum) as f32;
        self.p.iter_mut().for_each(|p| *p *= share);
        greatest + sum.ln()
    }
}

/// sₕᵢ per head for the rows of a block: the target's mass of each head.
fn masses(
    problem: &Problem,
    heads: &[Softmax],
    log_weights: &[f64],
    first: usize,
) -> Vec<Vec<f64>> {
    let rows = heads.first().map_or(0, |head| head.rows.len());
    if heads.len() == 1 {
        return vec![vec![1.0; rows]];
    }
    let mut masses = vec![vec![0.0; rows]; heads.len()];
    let mut joint = vec![0.0; heads.len()];
    for local in 0..rows {
        let (columns, a) = problem.target().row(first + local);
        for (&column, a) in columns.iter().zip(a) {
            for ((joint, head), weight) in joint.iter_mut().zip(heads).zip(log_weights) {
                *joint = weight + head.log_p(local, column as usize);
            }
            let greatest = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // A pair to which no head may attend counts for none.
            if greatest.is_finite() {
                joint.iter_mut().for_each(|joint| *joint = (*joint - greatest).exp());
                let total: f64 = joint.iter().sum();
                for (masses, joint) in masses.iter_mut().zip(&joint) {
                    masses[local] += a * joint / total;
                }
            }
        }
    }
    masses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::objective::Objective;
    use crate::solver::problem::Precision;
    use crate::targets::{Family, Visibility};

    /// A query's block equals the Hessian, since the gradient with respect to a query is that of a softmax regression.
    #[test]
    fn a_query_s_block_is_its_hessian() {
        let family = Family::DirichletBand { window: 6, alpha: 1.0 };
        let target = family.build(30, 5, Visibility::Causal).unwrap();
        let (n, d) = (30, 3);
        let problem = Problem::new(target, "global".parse().unwrap(), d).unwrap();
        let x = super::super::start::random(&problem, 8.0, 5).unwrap().to_vector();
        let mut objective = Objective::new(&problem, Precision::F64);
        let mut penalty = Penalty::new(&problem, 0.4, 0.3);
        penalty.multipliers = objective.updated_multipliers(&x, &penalty);
        let [queries, _] = &Blocks::blocks(&problem, &x, &penalty)[0];
        let mut slopes = |row: usize, a: usize, offset: f64| {
            let mut moved = x.clone();
            moved[row * d + a] += offset;
            let mut gradient = vec![0.0; x.len()];
            objective.evaluate(&moved, Some(&penalty), &mut gradient);
            gradient[row * d..(row + 1) * d].to_vec()
        };
        for row in 0..n {
            for a in 0..d {
                let h = 1e-6;
                let (above, below) = (slopes(row, a, h), slopes(row, a, -h));
                for b in 0..=a {
                    let difference = (above[b] - below[b]) / (2.0 * h) * (n * d) as f64;
                    let block = f64::from(queries[[row, a * (a + 1) / 2 + b]]);
                    let off = (difference - block).abs();
                    assert!(off < 1e-5, "row {row}, ({a}, {b}): {block} against {difference}");
                }
            }
        }
    }
}
