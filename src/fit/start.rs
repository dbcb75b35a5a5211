//! Where a fit begins.

use ndarray::{Array1, Array2, Array3, s};
use ndarray_linalg::{JobSvd, SVDDC};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::factors::{Factors, FactorsError};
use super::problem::Problem;
use crate::target::HeadKind;

/// Rounds of filling what a row does not see from the low-rank approximation itself.
const IMPUTATIONS: usize = 8;
/// A whole SVD is cheap up to here (tenths of a second); beyond it starts are random.
pub(super) const LARGEST_SPECTRAL: usize = 512;

/// Normal queries and keys whose logits have a standard deviation of min(1, cap/4), and even
/// weights.
pub(super) fn random(problem: &Problem, cap: f64, seed: u64) -> Result<Factors, FactorsError> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let shape = (problem.heads(), problem.n(), problem.rank());
    // A product of two normals of deviation σ, summed over d and divided by √d, has deviation σ².
    let deviation = (cap / 4.0).min(1.0).sqrt();
    let mut draw = || {
        let value: f64 = StandardNormal.sample(&mut generator);
        deviation * value
    };
    let queries = Array3::from_shape_simple_fn(shape, &mut draw);
    let keys = Array3::from_shape_simple_fn(shape, &mut draw);
    Factors::new(queries, keys, even(problem.heads()))
}

/// The best rank-d approximation of each head's capped log-target: singular vectors of the matrix
/// that is log aᵢⱼ, centred in its row and clamped to the cap, where a row sees j, and the
/// approximation itself where it does not.
///
/// # Errors
/// Those of `Factors`; a decomposition that fails falls back to `random`.
pub(super) fn spectral(problem: &Problem, cap: f64, seed: u64) -> Result<Factors, FactorsError> {
    let (heads, n, d) = (problem.heads(), problem.n(), problem.rank());
    let fallback = random(problem, cap, seed)?;
    let mut queries = fallback.queries() * 0.1;
    let mut keys = fallback.keys() * 0.1;
    for (head, &kind) in problem.layout().heads().iter().enumerate() {
        let Some((q, k)) = spectral_head(&capped_logits(problem, kind, cap), problem, kind) else {
            return Ok(fallback);
        };
        let used = d.min(n);
        let put = |into: &mut Array3<f64>, from: &Array2<f64>| {
            let mut place = into.slice_mut(s![head, .., ..used]);
            // Heads that see the same start a little apart.
            if heads > 1 { place += from } else { place.assign(from) }
        };
        put(&mut queries, &q);
        put(&mut keys, &k);
    }
    Factors::new(queries, keys, even(heads))
}

fn even(heads: usize) -> Array1<f64> {
    Array1::from_elem(heads, 1.0 / heads as f64)
}

/// log aᵢⱼ less half its row's range, within [−cap, cap]: −cap where the target is zero.
fn capped_logits(problem: &Problem, kind: HeadKind, cap: f64) -> Array2<f64> {
    let n = problem.n();
    let mut logits = Array2::zeros((n, n));
    for row in 0..n {
        let seen = problem.columns(kind, row);
        logits.slice_mut(s![row, seen.clone()]).fill(-cap);
        let (columns, a) = problem.target().row(row);
        let greatest = a.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for (&j, a) in columns.iter().zip(a) {
            if seen.contains(&(j as usize)) {
                logits[[row, j as usize]] = (cap + (a / greatest).ln()).max(-cap);
            }
        }
    }
    logits
}

/// Factors of the rank-d part, split evenly: Q = U√S·d^¼, K = V√S·d^¼.
fn spectral_head(
    logits: &Array2<f64>,
    problem: &Problem,
    kind: HeadKind,
) -> Option<(Array2<f64>, Array2<f64>)> {
    let n = problem.n();
    let used = problem.rank().min(n);
    let mut filled = logits.clone();
    let mut parts = None;
    for _ in 0..IMPUTATIONS {
        let (u, sigma, vt) = filled.svddc(JobSvd::Some).ok()?;
        let root = sigma.slice(s![..used]).mapv(f64::sqrt);
        let q = u?.slice(s![.., ..used]).to_owned() * &root;
        let k = vt?.slice(s![..used, ..]).t().to_owned() * &root;
        filled = q.dot(&k.t());
        for row in 0..n {
            let seen = problem.columns(kind, row);
            filled.slice_mut(s![row, seen.clone()]).assign(&logits.slice(s![row, seen]));
        }
        parts = Some((q, k));
    }
    let (q, k) = parts?;
    let scale = (problem.rank() as f64).powf(0.25);
    Some((q * scale, k * scale))
}
