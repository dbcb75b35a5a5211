//! Products of a sparse target, and of its transpose, with a block of vectors.

use ndarray::Array2;
use rayon::prelude::*;

use crate::targets::Target;

/// Aᵀ of a target A, stored sparse, row by row of Aᵀ.
pub(super) struct Transpose {
    /// Start of each column of A in `rows` and `probabilities`; n + 1 offsets.
    offsets: Vec<usize>,
    rows: Vec<u32>,
    probabilities: Vec<f64>,
}

impl Transpose {
    /// Transposes A in O(nnz + n) with a counting sort of its entries by column.
    pub fn of(target: &Target) -> Self {
        let n = target.n();
        let mut offsets = vec![0; n + 1];
        for row in 0..n {
            target.row(row).0.iter().for_each(|&column| offsets[column as usize + 1] += 1);
        }
        for column in 0..n {
            offsets[column + 1] += offsets[column];
        }
        let mut next = offsets.clone();
        let mut rows = vec![0; target.nonzeros()];
        let mut probabilities = vec![0.0; target.nonzeros()];
        for row in 0..n {
            let (columns, entries) = target.row(row);
            for (&column, &p) in columns.iter().zip(entries) {
                let place = &mut next[column as usize];
                rows[*place] = row as u32;
                probabilities[*place] = p;
                *place += 1;
            }
        }
        Self { offsets, rows, probabilities }
    }

    /// Rows of column `column` of A, ascending, and their probabilities.
    fn column(&self, column: usize) -> (&[u32], &[f64]) {
        let stored = self.offsets[column]..self.offsets[column + 1];
        (&self.rows[stored.clone()], &self.probabilities[stored])
    }

    /// The number of columns of A with an entry, and the largest column sum, ‖A‖₁.
    pub fn columns_in_use(&self) -> (usize, f64) {
        let used = self.offsets.windows(2).filter(|pair| pair[0] < pair[1]).count();
        let sum = |column| self.column(column).1.iter().sum::<f64>();
        (used, (0..self.offsets.len() - 1).map(sum).fold(0.0, f64::max))
    }

    /// Aᵀ·X, for X of shape (n, l).
    pub fn times(&self, x: &Array2<f64>) -> Array2<f64> {
        gathered(|column| self.column(column), x)
    }
}

/// ‖AᵀA‖_F² = Σσ⁴, exact. Returns `None` if it needs more than `most` multiplications, Σᵢ (entries in row i)².
pub(super) fn fourth_powers(target: &Target, transpose: &Transpose, most: usize) -> Option<f64> {
    let n = target.n();
    let work = (0..n).map(|row| target.row(row).0.len().pow(2)).fold(0, usize::saturating_add);
    // Squared norm of row j of AᵀA. One thread computes each row, so rounding does not depend on the number of threads.
    let of_row = |sums: &mut (Vec<f64>, Vec<u32>), j: usize| {
        let (sums, touched) = sums;
        let (rows, weights) = transpose.column(j);
        for (&row, &weight) in rows.iter().zip(weights) {
            let (columns, probabilities) = target.row(row as usize);
            for (&column, &p) in columns.iter().zip(probabilities) {
                let sum = &mut sums[column as usize];
                if *sum == 0.0 {
                    touched.push(column);
                }
                *sum += weight * p;
            }
        }
        touched.drain(..).map(|column| std::mem::take(&mut sums[column as usize]).powi(2)).sum()
    };
    (work <= most).then(|| {
        let rows: Vec<f64> =
            (0..n).into_par_iter().map_init(|| (vec![0.0; n], Vec::new()), of_row).collect();
        rows.iter().sum()
    })
}

/// A·X, for X of shape (n, l).
pub(super) fn times(target: &Target, x: &Array2<f64>) -> Array2<f64> {
    gathered(|row| target.row(row), x)
}

/// Row i of the result is the sum of the rows of `x` that `entries(i)` names, times their weights.
///
/// Rows are computed in parallel, each by one thread in the order of its entries. So the result does not depend on the number
/// of threads.
fn gathered<'a>(
    entries: impl Fn(usize) -> (&'a [u32], &'a [f64]) + Sync,
    x: &Array2<f64>,
) -> Array2<f64> {
    let (n, width) = x.dim();
    let whole = x.as_standard_layout();
    let x = whole.as_slice().expect("the standard layout is contiguous");
    let mut product = vec![0.0; n * width];
    product.par_chunks_mut(width).enumerate().for_each(|(row, sum)| {
        let (others, weights) = entries(row);
        for (&other, &weight) in others.iter().zip(weights) {
            let from = other as usize * width;
            for (sum, value) in sum.iter_mut().zip(&x[from..from + width]) {
                *sum += weight * value;
            }
        }
    });
    Array2::from_shape_vec((n, width), product).expect("one chunk a row")
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::targets::{Family, Visibility};

    #[test]
    fn products_are_those_of_the_dense_matrix() {
        let target = Family::RandomSparse { k: 5 }.build(40, 3, Visibility::Causal).unwrap();
        let x = Array2::from_shape_fn((40, 3), |(i, j)| ((i * 7 + j * 11) as f64).sin());
        let dense = target.dense();
        for (name, found, expected) in [
            ("A·X", times(&target, &x), dense.dot(&x)),
            ("Aᵀ·X", Transpose::of(&target).times(&x), dense.t().dot(&x)),
        ] {
            let worst = (&found - &expected).iter().fold(0.0, |w: f64, d| w.max(d.abs()));
            assert!(worst < 1e-14, "{name} is off by {worst}");
        }
        let gram = dense.t().dot(&dense);
        let (exact, transpose) = (gram.iter().map(|x| x * x).sum::<f64>(), Transpose::of(&target));
        let found = fourth_powers(&target, &transpose, usize::MAX).unwrap();
        assert!((found - exact).abs() < 1e-13 * exact, "{found}, not {exact}");
        assert_eq!(fourth_powers(&target, &transpose, 10), None);
    }
}
