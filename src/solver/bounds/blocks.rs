//! Fully allowed blocks of a target, to which arguments about rank apply.
//!
//! A bound on the rank of Z implies nothing if the mask allows only part of the matrix, as a causal mask does: the other part
//! can have any rank. It does apply to rows I and columns J if the mask allows every pair. Rows are divided into groups of
//! consecutive rows. Each group with the columns that all of its rows may attend to is such a block. No two groups share a row,
//! so the errors forced on the blocks add up to at most n·kl_nats.

use std::ops::Range;

use ndarray::Array2;
use ndarray_linalg::{JobSvd, SVDDC};

use crate::numerics::blas::on_one_thread;
use crate::solver::problem::Problem;

/// Rows and columns with every pair allowed.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub rows: Range<usize>,
    /// Column indices, ascending.
    pub columns: Vec<usize>,
}

impl Block {
    /// The square roots of the block's entries of the target.
    pub fn roots(&self, problem: &Problem) -> Array2<f64> {
        let mut dense = Array2::zeros((self.rows.len(), self.columns.len()));
        for row in self.rows.clone() {
            let (columns, a) = problem.target().row(row);
            for (&column, &a) in columns.iter().zip(a) {
                if let Ok(place) = self.columns.binary_search(&(column as usize)) {
                    dense[[row - self.rows.start, place]] = a.sqrt();
                }
            }
        }
        dense
    }
}

/// Divisions of the rows into groups of n, n/2, n/4, … ≥ `least` rows. Each group has the columns to which all of its rows may
/// attend and in which one of them has weight. Blocks of fewer than `least` rows or columns are left out.
pub(super) fn divisions(problem: &Problem, least: usize) -> Vec<Vec<Block>> {
    let n = problem.n();
    let sizes = std::iter::successors(Some(n), |size| Some(size.div_ceil(2)).filter(|s| s < size));
    sizes
        .take_while(|&size| size >= least)
        .map(|size| {
            (0..n)
                .step_by(size)
                .map(|first| block(problem, first..(first + size).min(n)))
                .filter(|block| block.rows.len() >= least && block.columns.len() >= least)
                .collect()
        })
        .filter(|blocks: &Vec<Block>| !blocks.is_empty())
        .collect()
}

fn block(problem: &Problem, rows: Range<usize>) -> Block {
    let kind = problem.layout().heads()[0];
    let mut has_weight = vec![false; problem.n()];
    let (mut first, mut end) = (0, problem.n());
    for row in rows.clone() {
        let seen = problem.target().seen(kind, row);
        (first, end) = (first.max(seen.start), end.min(seen.end));
        problem.target().row(row).0.iter().for_each(|&column| has_weight[column as usize] = true);
    }
    let columns = (first..end).filter(|&column| has_weight[column]).collect();
    Block { rows, columns }
}

/// τ_r² = Σ_{s>r} σₛ² for r = 0, 1, …: the smallest squared Frobenius distance to a matrix of rank r (Eckart and Young 1936,
/// *The approximation of one matrix by another of lower rank*). Each is lowered by the possible error of the singular values.
/// Returns `None` if LAPACK fails.
pub(super) fn squared_tails(matrix: &Array2<f64>) -> Option<Vec<f64>> {
    let (_, sigma, _) = on_one_thread(|| matrix.svddc(JobSvd::None)).ok()?;
    let largest = sigma.first().copied().unwrap_or(0.0);
    // The error of each of LAPACK's singular values is a modest multiple of ε·σ₁.
    let off = 10.0 * (matrix.nrows() + matrix.ncols()) as f64 * f64::EPSILON * largest;
    let mut tails: Vec<f64> = sigma
        .iter()
        .rev()
        .scan(0.0, |sum, sigma| {
            *sum += (sigma - off).max(0.0).powi(2);
            Some(*sum)
        })
        .collect();
    tails.reverse();
    tails.push(0.0);
    Some(tails)
}
