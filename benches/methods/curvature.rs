//! The Gauss–Newton matrix of one causal head's objective at a point: its diagonal blocks and its products with
//! vectors.
//!
//! The objective is convex in the logits z = QKᵀ/√d. Its Hessian there is (diag(p + h) − ppᵀ)/n for each row, where h
//! is the penalty's weight for logits beyond the bound and 0 otherwise. With the derivative J of the logits, the
//! Gauss–Newton matrix is Jᵀ·(that Hessian)·J. It leaves out ∂/∂z times the second derivative of the (bilinear) logits.

use nalgebra::{Cholesky, DMatrix};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, Axis, s};

use crate::problems::Stage;

/// Rows that are processed together: with a causal mask, early rows attend to fewer columns.
const CHUNK: usize = 32;

/// Probabilities and weights at one point.
pub struct Curvature {
    n: usize,
    d: usize,
    q: Array2<f64>,
    k: Array2<f64>,
    /// p/n, zero above the diagonal.
    probability: Array2<f64>,
    /// (p + h)/n, zero above the diagonal.
    weight: Array2<f64>,
}

/// One d × d matrix per query, followed by one per key.
pub struct Blocks {
    d: usize,
    matrices: Vec<f64>,
}

impl Curvature {
    /// Computes them at the point x = (Q, K), each of shape (n, d).
    pub fn at(stage: &Stage, x: &[f64]) -> Self {
        let (problem, (cap, slope)) = (&stage.problem, stage.penalty);
        let (n, d) = (problem.n(), problem.rank());
        let [q, k] = halves(x, n, d).map(|half| half.to_owned());
        let (mut probability, mut weight) = (Array2::zeros((n, n)), Array2::zeros((n, n)));
        let scale = 1.0 / (d as f64).sqrt();
        for (rows, seen) in chunks(n) {
            let mut z = Array2::zeros((rows.len(), seen));
            let keys = k.slice(s![..seen, ..]);
            general_mat_mul(scale, &q.slice(s![rows.clone(), ..]), &keys.t(), 0.0, &mut z);
            for (i, mut z) in rows.zip(z.rows_mut()) {
                let z = &mut z.as_slice_mut().expect("rows are contiguous")[..=i];
                let held: Vec<bool> = z.iter().map(|z| z.abs() > cap).collect();
                let greatest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                z.iter_mut().for_each(|z| *z = (*z - greatest).exp());
                let whole = z.iter().sum::<f64>() * n as f64;
                for (j, (e, held)) in z.iter().zip(held).enumerate() {
                    probability[[i, j]] = e / whole;
                    weight[[i, j]] = e / whole + if held { slope / n as f64 } else { 0.0 };
                }
            }
        }
        Self { n, d, q, k, probability, weight }
    }

    /// The d × d blocks on the diagonal: the exact Hessian for queries, and an upper bound of the exact Hessian for
    /// keys.
    pub fn blocks(&self) -> Blocks {
        let (n, d) = (self.n, self.d);
        let mut queries = Array2::zeros((n, d * d));
        let mut keys = Array2::zeros((n, d * d));
        let scale = 1.0 / d as f64;
        let (query_outer, key_outer) = (outer(&self.q), outer(&self.k));
        let mut means = Array2::zeros((n, d));
        for (rows, seen) in chunks(n) {
            let at = s![rows.clone(), ..seen];
            let weight = self.weight.slice(at);
            let mut to = queries.slice_mut(s![rows.clone(), ..]);
            general_mat_mul(scale, &weight, &key_outer.slice(s![..seen, ..]), 0.0, &mut to);
            let mut to = keys.slice_mut(s![..seen, ..]);
            let outer = query_outer.slice(s![rows.clone(), ..]);
            general_mat_mul(scale, &weight.t(), &outer, 1.0, &mut to);
            let mut to = means.slice_mut(s![rows, ..]);
            let keys = self.k.slice(s![..seen, ..]);
            general_mat_mul(n as f64, &self.probability.slice(at), &keys, 0.0, &mut to);
        }
        for (mut block, mean) in queries.rows_mut().into_iter().zip(means.rows()) {
            for (place, block) in block.iter_mut().enumerate() {
                *block -= scale / n as f64 * mean[place / d] * mean[place % d];
            }
        }
        Blocks { d, matrices: queries.into_iter().chain(keys).collect() }
    }

    /// Product of the matrix and v.
    pub fn product(&self, v: &[f64]) -> Vec<f64> {
        let (n, d) = (self.n, self.d);
        let [dq, dk] = halves(v, n, d);
        let mut queries = Array2::zeros((n, d));
        let mut keys = Array2::zeros((n, d));
        let scale = 1.0 / (d as f64).sqrt();
        for (rows, seen) in chunks(n) {
            let mut dz = Array2::zeros((rows.len(), seen));
            let (k, dk) = (self.k.slice(s![..seen, ..]), dk.slice(s![..seen, ..]));
            let q = self.q.slice(s![rows.clone(), ..]);
            general_mat_mul(scale, &dq.slice(s![rows.clone(), ..]), &k.t(), 0.0, &mut dz);
            general_mat_mul(scale, &q, &dk.t(), 1.0, &mut dz);
            for (i, mut dz) in rows.clone().zip(dz.rows_mut()) {
                let dz = dz.as_slice_mut().expect("rows are contiguous");
                let probability = self.probability.row(i);
                let weight = self.weight.row(i);
                let p = &probability.as_slice().expect("rows are contiguous")[..seen];
                let w = &weight.as_slice().expect("rows are contiguous")[..seen];
                let mean = n as f64 * p.iter().zip(&*dz).map(|(p, z)| p * z).sum::<f64>();
                for ((dz, p), w) in dz.iter_mut().zip(p).zip(w) {
                    *dz = w * *dz - p * mean;
                }
            }
            general_mat_mul(scale, &dz, &k, 0.0, &mut queries.slice_mut(s![rows.clone(), ..]));
            general_mat_mul(scale, &dz.t(), &q, 1.0, &mut keys.slice_mut(s![..seen, ..]));
        }
        queries.into_iter().chain(keys).collect()
    }
}

impl Blocks {
    /// Mean of all diagonal entries.
    pub fn mean_curvature(&self) -> f64 {
        let d = self.d;
        let traces =
            self.matrices.chunks_exact(d * d).map(|m| m.iter().step_by(d + 1).sum::<f64>());
        traces.sum::<f64>() / (self.matrices.len() / d) as f64
    }

    /// Adds `damping` to every diagonal entry.
    pub fn damped(mut self, damping: f64) -> Self {
        for block in self.matrices.chunks_exact_mut(self.d * self.d) {
            block.iter_mut().step_by(self.d + 1).for_each(|v| *v += damping);
        }
        self
    }

    /// The blocks of the queries or of the keys.
    pub fn half(&self, which: Half) -> Self {
        let middle = self.matrices.len() / 2;
        let matrices = match which {
            Half::Queries => &self.matrices[..middle],
            Half::Keys => &self.matrices[middle..],
        };
        Self { d: self.d, matrices: matrices.to_vec() }
    }

    /// The inverse of every block; `None` if a block is not positive definite.
    pub fn inverse(&self) -> Option<Self> {
        let d = self.d;
        let mut matrices = Vec::with_capacity(self.matrices.len());
        for block in self.matrices.chunks_exact(d * d) {
            matrices.extend(Cholesky::new(DMatrix::from_row_slice(d, d, block))?.inverse().iter());
        }
        Some(Self { d, matrices })
    }

    /// Product of every block and its part of v.
    pub fn product(&self, v: &[f64]) -> Vec<f64> {
        let d = self.d;
        let rows = self.matrices.chunks_exact(d * d).zip(v.chunks_exact(d));
        rows.flat_map(|(block, v)| block.chunks_exact(d).map(|row| multiply(row, v))).collect()
    }
}

/// One of the two factors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Queries,
    Keys,
}

fn multiply(row: &[f64], v: &[f64]) -> f64 {
    row.iter().zip(v).map(|(m, v)| m * v).sum()
}

fn halves(x: &[f64], n: usize, d: usize) -> [ArrayView2<'_, f64>; 2] {
    let half = |part| ArrayView2::from_shape((n, d), part).expect("a factor is n × d");
    let (q, k) = x.split_at(n * d);
    [half(q), half(k)]
}

/// Ranges of rows, and the number of columns to which the last row of each attends.
fn chunks(n: usize) -> impl Iterator<Item = (std::ops::Range<usize>, usize)> {
    (0..n).step_by(CHUNK).map(move |first| {
        let last = n.min(first + CHUNK);
        (first..last, last)
    })
}

/// Products of all pairs of entries of each row, with shape (n, d²).
fn outer(m: &Array2<f64>) -> Array2<f64> {
    let (n, d) = m.dim();
    let mut products = Array2::zeros((n, d * d));
    for (mut to, row) in products.axis_iter_mut(Axis(0)).zip(m.rows()) {
        for (place, to) in to.iter_mut().enumerate() {
            *to = row[place / d] * row[place % d];
        }
    }
    products
}
