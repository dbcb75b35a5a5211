//! From the shape of the logits to factors: shifts and scales each row to make the best use of a logit bound.

use ndarray::{Array1, Array2, Array3, s};

use crate::solver::factors::Factors;
use crate::solver::problem::{FitError, Problem, check_cap};

/// Bisection steps for a row's scale.
const HALVINGS: usize = 60;
/// Margin below the logit bound, as a share of it, for rounding when the factors are multiplied again.
const ROOM: f64 = 1e-9;
/// A row whose logits differ by less than this share of ‖q‖·max‖k‖ counts as constant: the differences are rounding, which
/// scaling would amplify.
const FLAT: f64 = 1e-5;

/// The factors with logits zᵢⱼ = sᵢ(⟨qᵢ, kⱼ⟩ − cᵢ) for queries and keys of shape (n, m), m < d. cᵢ is the middle of the allowed
/// logits of row i, and sᵢ ≥ 0 the scale of least KL(Aᵢ ‖ Pᵢ) within the bound `cap`.
///
/// cᵢ takes one dimension, a key of 1. A row's KL is convex in sᵢ (log Σe^{s·x} − s·Σa·x), so sᵢ is found by bisection on its
/// derivative, E_p[x] − E_a[x]. Queries and keys get equal Frobenius norms.
///
/// # Errors
/// `Cap`; `Factors` if a query or key is not finite.
pub(super) fn scaled_rows(
    problem: &Problem,
    queries: &Array2<f64>,
    keys: &Array2<f64>,
    cap: f64,
) -> Result<Factors, FitError> {
    check_cap(cap)?;
    let (n, d, m) = (problem.n(), problem.rank(), keys.ncols());
    let kind = problem.layout().heads()[0];
    let mut q = Array3::zeros((1, n, d));
    let mut k = Array3::zeros((1, n, d));
    k.slice_mut(s![0, .., ..m]).assign(keys);
    k.slice_mut(s![0, .., m]).fill(1.0);
    let root = (d as f64).sqrt();
    let longest = keys.rows().into_iter().map(|k| k.dot(&k)).fold(0.0, f64::max).sqrt();
    for row in 0..n {
        let seen = problem.columns(kind, row);
        let shape = keys.slice(s![seen.clone(), ..]).dot(&queries.row(row));
        let high = shape.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = shape.iter().copied().fold(f64::INFINITY, f64::min);
        let (middle, half) = (0.5 * (high + low), 0.5 * (high - low));
        let length = queries.row(row).dot(&queries.row(row)).sqrt();
        if half <= FLAT * length * longest {
            // The logits stay 0, because the row is uniform at any scale.
            continue;
        }
        let largest = (1.0 - ROOM) * cap / half;
        let (columns, a) = problem.target().row(row);
        let wanted: f64 = columns
            .iter()
            .zip(a)
            .filter_map(|(&column, a)| {
                let place = (column as usize).checked_sub(seen.start)?;
                Some(a * (shape.get(place)? - middle))
            })
            .sum();
        let scale = best_scale(&shape.mapv(|x| x - middle), wanted, largest);
        q.slice_mut(s![0, row, ..m]).assign(&(&queries.row(row) * (scale * root)));
        q[[0, row, m]] = -scale * middle * root;
    }
    let norm = |x: &Array3<f64>| x.iter().map(|v| v * v).sum::<f64>().sqrt();
    let balance = (norm(&k) / norm(&q)).sqrt();
    if balance.is_finite() && balance > 0.0 {
        q *= balance;
        k /= balance;
    }
    Ok(Factors::new(q, k, Array1::ones(1))?)
}

/// The s in [0, `largest`] of least log Σ e^{s·x} − s·`wanted`.
fn best_scale(x: &Array1<f64>, wanted: f64, largest: f64) -> f64 {
    let slope = |scale: f64| {
        let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut mean) = (0.0, 0.0);
        for x in x {
            let weight = (scale * (x - top)).exp();
            sum += weight;
            mean += weight * x;
        }
        mean / sum - wanted
    };
    if slope(largest) <= 0.0 {
        return largest;
    }
    let (mut low, mut high) = (0.0, largest);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if slope(middle) < 0.0 { low = middle } else { high = middle }
    }
    low
}
