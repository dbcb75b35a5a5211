//! The moment curve for sparse rows: any k columns can have the largest logits, at rank 2k + 1 and any n.

use std::f64::consts::TAU;

use ndarray::Array2;

use super::scale::scaled_rows;
use crate::numerics::product;
use crate::solver::factors::Factors;
use crate::solver::problem::{FitError, Problem};

/// Logits zᵢⱼ = sᵢ(shift − Π_{c∈Sᵢ} (1 − cos(θⱼ − θ_c))) with θⱼ = 2πj/n and Sᵢ the columns with weight in row i.
///
/// **Applies** to one head and rows of at most k entries with 2k + 1 ≤ min(d, n); returns `None` otherwise.
///
/// **Why it works.** The product is 0 on Sᵢ and positive on every other column, so the row's k columns have its largest logits,
/// at any n. Without a logit bound, rank 2k + 1 thus represents every sign pattern of k-sparse rows. The product is a
/// trigonometric polynomial of degree k in θⱼ, that is linear in the 2k + 1 features 1, cos fθⱼ, sin fθⱼ. This is the
/// neighbourliness of cyclic polytopes (Gale 1963, *Neighborly and cyclic polytopes*; the argument with Π(t − t_c)² on the
/// moment curve is Ziegler 1995, *Lectures on polytopes*, section 0). The cost is a small margin: the next column differs by
/// about (2π²/n²) of the largest value at k = 1, and by far less for k > 1.
///
/// All columns of a row get the same logit, so weights within a row are equal.
///
/// # Errors
/// `Cap`; `Factors` if values overflow.
pub fn moment_curve(problem: &Problem, cap: f64) -> Result<Option<Factors>, FitError> {
    let (n, target) = (problem.n(), problem.target());
    let k = (0..n).map(|row| target.row(row).0.len()).max().unwrap_or(0);
    if problem.heads() != 1 || 2 * k + 1 > problem.rank().min(n) {
        return Ok(None);
    }
    let angle = |j: usize| TAU * (j % n) as f64 / n as f64;
    let keys = Array2::from_shape_fn((n, 2 * k), |(j, feature)| {
        let angle = angle((feature / 2 + 1) * j);
        if feature % 2 == 0 { angle.cos() } else { angle.sin() }
    });
    // n > 2k points determine a polynomial of degree k, by sums with its orthogonal features.
    let values = Array2::from_shape_fn((n, n), |(row, j)| {
        let at = |&c: &u32| 1.0 - angle(j + n - c as usize).cos();
        -target.row(row).0.iter().map(at).product::<f64>()
    });
    let queries = product(values.view(), keys.view()) * (2.0 / n as f64);
    scaled_rows(problem, &queries, &keys, cap).map(Some)
}
