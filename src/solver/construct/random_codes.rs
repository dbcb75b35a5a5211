//! Random codes: keys in nearly orthogonal directions, and queries that add up the keys of their columns.

use nalgebra::{DMatrix, DVector};
use ndarray::Array2;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::scale::scaled_rows;
use crate::solver::factors::Factors;
use crate::solver::problem::{FitError, Problem};

/// Ridge, as a share of the mean diagonal of the normal matrix.
const RIDGE: f64 = 1e-3;

/// Keys are random unit vectors in d − 1 dimensions. A row's query is the ridge solution of ⟨qᵢ, kⱼ⟩ + shift ≈ the bounded
/// log-target over its allowed columns; the columns with weight and the others count equally in total. Then each row is scaled
/// to the logit bound.
///
/// **Applies** to one head and d ≥ 2; returns `None` otherwise.
///
/// **Why it works.** Two random unit vectors of m dimensions have |⟨u, v⟩| > t with probability at most 2e^{−mt²/2}. So with
/// probability 1 − 1/n no two of n keys exceed t = √(6 ln n / m). A query that is the sum of the keys of its k columns then has
/// logits of at least 1 − (k − 1)t there and at most kt elsewhere. This is a constant margin at d of the order k² log n
/// (Johnson and Lindenstrauss 1984, *Extensions of Lipschitz mappings into a Hilbert space*, by the same concentration). Least
/// squares is no worse than that sum in squared error, apart from the ridge.
///
/// # Errors
/// `Cap`; `Factors` if values overflow.
pub fn random_codes(problem: &Problem, cap: f64, seed: u64) -> Result<Option<Factors>, FitError> {
    let (n, m) = (problem.n(), problem.rank() - 1);
    if problem.heads() != 1 || m == 0 {
        return Ok(None);
    }
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut keys = Array2::from_shape_simple_fn((n, m), || StandardNormal.sample(&mut generator));
    for mut key in keys.rows_mut() {
        let norm: f64 = key.dot(&key);
        key /= norm.sqrt();
    }
    let mut queries = Array2::zeros((n, m));
    for row in 0..n {
        let query = ridge(problem, &keys, row, cap);
        queries.row_mut(row).iter_mut().zip(&query).for_each(|(q, &value)| *q = value);
    }
    scaled_rows(problem, &queries, &keys, cap).map(Some)
}

/// The weighted ridge regression of one row's bounded log-target on the keys and a constant; returns it without the constant's
/// coefficient.
fn ridge(problem: &Problem, keys: &Array2<f64>, row: usize, cap: f64) -> Vec<f64> {
    let m = keys.ncols();
    let seen = problem.columns(problem.layout().heads()[0], row);
    let (columns, a) = problem.target().row(row);
    let greatest = a.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let others = seen.len().saturating_sub(columns.len()) as f64;
    let on = (others / columns.len() as f64).max(1.0);
    let mut aim = vec![(-2.0 * cap, 1.0); seen.len()];
    for (&column, a) in columns.iter().zip(a) {
        if let Some(entry) =
            (column as usize).checked_sub(seen.start).and_then(|place| aim.get_mut(place))
        {
            *entry = ((a / greatest).ln().max(-2.0 * cap), on);
        }
    }
    let design = DMatrix::from_fn(seen.len(), m + 1, |place, feature| {
        let value = if feature < m { keys[[seen.start + place, feature]] } else { 1.0 };
        value * aim[place].1.sqrt()
    });
    let wanted = DVector::from_fn(seen.len(), |place, _| aim[place].0 * aim[place].1.sqrt());
    let mut normal = design.tr_mul(&design);
    let ridge = RIDGE * normal.trace() / (m + 1) as f64;
    (0..m + 1).for_each(|i| normal[(i, i)] += ridge);
    let solved = normal
        .cholesky()
        .expect("a Gram matrix with a ridge is positive definite")
        .solve(&design.tr_mul(&wanted));
    solved.iter().take(m).copied().collect()
}
