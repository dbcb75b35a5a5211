//! The leading singular vectors of a dense matrix, computed with this crate's products. LAPACK's results differ in their
//! last digits between OpenBLAS's kernels, so a fit that starts from them would end elsewhere on another processor.

use nalgebra::DMatrix;
use ndarray::{Array2, ArrayView2, s};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::product;

/// Number of vectors beyond those requested (Halko, Martinsson and Tropp 2011, section 4.2: 5 or 10).
const OVERSAMPLING: usize = 10;
/// The iteration ends when a round increases the captured part of ‖A‖_F² by at most this share.
const STEADY: f64 = 1e-10;
/// The largest number of rounds: closely spaced singular values do not converge in a reasonable number.
const MOST_ROUNDS: usize = 24;
/// A vector with less than this relative length left after projection is linearly dependent up to rounding.
const VANISHED: f64 = 1e-12;

/// The leading singular vectors and values of a matrix.
pub(crate) struct Leading {
    /// uⱼ, (rows, count).
    pub left: Array2<f64>,
    /// σ̂ⱼ in descending order; each is at most the corresponding σⱼ.
    pub values: Vec<f64>,
    /// vⱼ, (columns, count).
    pub right: Array2<f64>,
    /// The subspace of the iteration, one vector per row: a start for the iteration on a similar matrix.
    pub carried: Array2<f64>,
}

/// The `count` leading singular vectors and values of A, by subspace iteration (Halko, Martinsson and Tropp 2011, *Finding
/// structure with randomness*, SIAM Review 53(2), algorithms 4.4 and 5.1). It starts from the vectors `near`, or else from
/// normal ones of a fixed seed. `count` must be at most the smaller side of A.
///
/// Time O(rows·columns·count) per round. The result is the same on all machines with one instruction set.
pub(crate) fn leading(
    matrix: ArrayView2<'_, f64>,
    count: usize,
    near: Option<Array2<f64>>,
) -> Leading {
    let (rows, columns) = matrix.dim();
    let width = (count + OVERSAMPLING).min(rows.min(columns));
    let mut generator = ChaCha8Rng::seed_from_u64(0);
    let mut right = near.unwrap_or_else(|| normals(width, columns, &mut generator));
    let (mut before, mut rounds) = (0.0, 0);
    loop {
        rounds += 1;
        let mut left = product(right.view(), matrix.t());
        orthonormal(&mut left, &mut generator);
        right = product(left.view(), matrix);
        let triangle = orthonormal(&mut right, &mut generator);
        let energy = triangle.iter().map(|r| r * r).sum::<f64>();
        if energy - before > STEADY * energy && rounds < MOST_ROUNDS {
            before = energy;
            continue;
        }
        // A ≈ U(AᵀU)ᵀ and AᵀU = V·R, which leaves the small matrix Rᵀ. With vectors as rows, Rᵀ is `triangle`.
        let small = DMatrix::from_fn(width, width, |i, j| triangle[[i, j]]).svd(true, true);
        let (Some(u), Some(vt)) = (small.u, small.v_t) else {
            unreachable!("both were asked for");
        };
        let outer = Array2::from_shape_fn((width, count), |(i, j)| u[(i, j)]);
        let inner = Array2::from_shape_fn((width, count), |(i, j)| vt[(j, i)]);
        return Leading {
            left: product(left.t(), outer.view()),
            values: small.singular_values.iter().take(count).copied().collect(),
            right: product(right.t(), inner.view()),
            carried: right,
        };
    }
}

fn normals(rows: usize, columns: usize, generator: &mut impl Rng) -> Array2<f64> {
    Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(generator))
}

/// Makes the rows orthonormal and returns the lower triangle L with rows before = L · rows after. A row that depends
/// linearly on the previous ones is replaced by an independent one, which has no entry in L.
///
/// Modified Gram–Schmidt, applied twice, which is enough (Giraud et al. 2005, Numerische Mathematik 101).
fn orthonormal(rows: &mut Array2<f64>, generator: &mut impl Rng) -> Array2<f64> {
    let count = rows.nrows();
    let mut triangle = Array2::zeros((count, count));
    for at in 0..count {
        let length = rows.row(at).dot(&rows.row(at)).sqrt();
        let mut left = clear(rows, at, Some(&mut triangle));
        if left <= VANISHED * length {
            while left <= VANISHED {
                rows.row_mut(at).mapv_inplace(|_| StandardNormal.sample(generator));
                left = clear(rows, at, None);
            }
        } else {
            triangle[[at, at]] = left;
        }
        rows.row_mut(at).mapv_inplace(|v| v / left);
    }
    triangle
}

/// Removes the components along all previous rows from a row, and returns the length of the rest.
fn clear(rows: &mut Array2<f64>, at: usize, mut triangle: Option<&mut Array2<f64>>) -> f64 {
    let (before, mut rest) = rows.multi_slice_mut((s![..at, ..], s![at, ..]));
    for _ in 0..2 {
        for (other, row) in before.rows().into_iter().enumerate() {
            let share = row.dot(&rest);
            rest.scaled_add(-share, &row);
            if let Some(triangle) = triangle.as_deref_mut() {
                triangle[[at, other]] += share;
            }
        }
    }
    rest.dot(&rest).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix with the given singular values.
    fn of_values(rows: usize, columns: usize, values: &[f64]) -> Array2<f64> {
        let mut generator = ChaCha8Rng::seed_from_u64(7);
        let mut side = |length| {
            let mut side = normals(values.len(), length, &mut generator);
            orthonormal(&mut side, &mut ChaCha8Rng::seed_from_u64(8));
            side
        };
        let (left, right) = (side(rows), side(columns));
        let scaled = &right * &ndarray::Array1::from(values.to_vec()).insert_axis(ndarray::Axis(1));
        product(left.t(), scaled.view())
    }

    #[test]
    fn values_and_vectors_are_those_that_the_matrix_was_made_of() {
        let values = [9.0, 5.0, 2.0, 1.0, 0.5, 1e-3, 1e-6];
        for (rows, columns, count) in [(40, 40, 3), (30, 50, 5), (50, 30, 7), (7, 9, 7)] {
            let matrix = of_values(rows, columns, &values);
            let first = leading(matrix.view(), count, None);
            // What was carried from the first time leads to the same.
            let carried = Some(first.carried.clone());
            for found in [first, leading(matrix.view(), count, carried)] {
                for (at, (found, value)) in found.values.iter().zip(values).enumerate() {
                    assert!((found - value).abs() < 1e-9, "{at}: {found} for {value}");
                }
                let singular = found.left * &ndarray::Array1::from(found.values);
                let missed = product(matrix.view(), found.right.view()) - singular;
                let most = missed.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
                assert!(most < 1e-7, "{rows} × {columns}: off by {most}");
            }
        }
    }

    /// If the rank is below `count`, the further vectors are still orthonormal, and their values are close to 0.
    #[test]
    fn a_matrix_of_lower_rank_has_nothing_beyond_it() {
        let matrix = of_values(20, 20, &[3.0, 2.0]);
        let found = leading(matrix.view(), 5, None);
        assert!(found.values[2..].iter().all(|v| *v < 1e-12), "{:?}", found.values);
        for side in [found.left, found.right] {
            let gram = product(side.t(), side.view());
            let off = (gram - Array2::<f64>::eye(5)).iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            assert!(off < 1e-12, "off by {off}");
        }
        let nothing = leading(Array2::zeros((6, 6)).view(), 2, None);
        assert!(nothing.values.iter().all(|v| *v == 0.0), "{:?}", nothing.values);
    }
}
