//! Starting points of fits.

use ndarray::{Array1, Array2, Array3, s};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::error::FitError;
use super::factors::Factors;
use super::problem::Problem;
use crate::numerics::{leading, product};
use crate::targets::HeadKind;

/// Rounds in which the pairs that the mask forbids are filled from the low-rank approximation itself.
const IMPUTATIONS: usize = 8;
/// The largest n for spectral starts, whose n² memory takes tenths of a second; above it starts are random.
pub(super) const LARGEST_SPECTRAL: usize = 512;

/// Normal queries and keys whose logits have a standard deviation of min(1, cap/4), and equal weights.
pub(super) fn random(problem: &Problem, cap: f64, seed: u64) -> Result<Factors, FitError> {
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

/// The division of the target's entries among heads that could all attend to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// By distance |i − j|: near entries go to one head, far ones to another.
    ByLag,
    /// By the weight of the whole column: shared columns go to one head, the rest to another.
    ByColumn,
}

/// The best rank-d approximation of each head's bounded log-target, from singular vectors. On allowed pairs the matrix is log
/// aᵢⱼ, shifted in its row and clamped to the bound; elsewhere it is the approximation itself.
///
/// With several heads each takes its own part of the target: a local head the entries in its window, global heads the rest, in
/// equal shares of the weight by `division`. If all heads started on the whole target, they would end in minima where none of
/// them specialises.
///
/// # Errors
/// The errors of `Factors`.
pub(super) fn spectral(
    problem: &Problem,
    cap: f64,
    seed: u64,
    division: Division,
) -> Result<Factors, FitError> {
    let (heads, n, d) = (problem.heads(), problem.n(), problem.rank());
    let drawn = random(problem, cap, seed)?;
    let mut queries = drawn.queries() * 0.1;
    let mut keys = drawn.keys() * 0.1;
    let owners = divide(problem, division);
    for (head, &kind) in problem.layout().heads().iter().enumerate() {
        let logits = capped_logits(problem, kind, cap, |entry| owners[entry] == head);
        let (q, k) = spectral_head(&logits, problem, kind);
        let used = d.min(n);
        queries.slice_mut(s![head, .., ..used]).assign(&q);
        keys.slice_mut(s![head, .., ..used]).assign(&k);
    }
    Factors::new(queries, keys, even(heads))
}

/// The head with which each of the target's entries, row by row, starts.
fn divide(problem: &Problem, division: Division) -> Vec<usize> {
    let kinds = problem.layout().heads();
    let globals: Vec<usize> =
        (0..kinds.len()).filter(|&head| kinds[head] == HeadKind::Global).collect();
    let (n, target) = (problem.n(), problem.target());
    let mut column_weight = vec![0.0; n];
    for row in 0..n {
        let (columns, a) = target.row(row);
        columns.iter().zip(a).for_each(|(&j, a)| column_weight[j as usize] += a);
    }
    let mut owners = vec![0; target.nonzeros()];
    // Entries in no window: (sort key, weight, index of the entry).
    let mut rest: Vec<(f64, f64, usize)> = Vec::new();
    let mut entry = 0;
    for row in 0..n {
        let (columns, a) = target.row(row);
        for (&j, &a) in columns.iter().zip(a) {
            let j = j as usize;
            let local = (0..kinds.len()).find(|&head| {
                kinds[head] != HeadKind::Global
                    && problem.target().seen(kinds[head], row).contains(&j)
            });
            match local {
                Some(head) => owners[entry] = head,
                None => {
                    let by = match division {
                        Division::ByLag => row.abs_diff(j) as f64,
                        Division::ByColumn => column_weight[j],
                    };
                    rest.push((by, a, entry));
                }
            }
            entry += 1;
        }
    }
    rest.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.2.cmp(&y.2)));
    let total: f64 = rest.iter().map(|(_, a, _)| a).sum();
    let mut before = 0.0;
    for (_, a, entry) in rest {
        let share = (before / total * globals.len() as f64) as usize;
        // Without a global head, the rest goes to the first head, which cannot attend to it.
        owners[entry] =
            globals.get(share.min(globals.len().saturating_sub(1))).copied().unwrap_or(0);
        before += a;
    }
    owners
}

fn even(heads: usize) -> Array1<f64> {
    Array1::from_elem(heads, 1.0 / heads as f64)
}

/// log aᵢⱼ, shifted so that its row's largest is at the bound, within [−cap, cap]. It is −cap where the target is zero or
/// `taken` rejects the entry.
fn capped_logits(
    problem: &Problem,
    kind: HeadKind,
    cap: f64,
    taken: impl Fn(usize) -> bool,
) -> Array2<f64> {
    let n = problem.n();
    let mut logits = Array2::zeros((n, n));
    let mut entry = 0;
    for row in 0..n {
        let seen = problem.target().seen(kind, row);
        logits.slice_mut(s![row, seen.clone()]).fill(-cap);
        let (columns, a) = problem.target().row(row);
        let greatest = a.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for (&j, a) in columns.iter().zip(a) {
            if taken(entry) && seen.contains(&(j as usize)) {
                logits[[row, j as usize]] = (cap + (a / greatest).ln()).max(-cap);
            }
            entry += 1;
        }
    }
    logits
}

/// Factors of the rank-d part, split equally: Q = U√S·d^¼, K = V√S·d^¼.
fn spectral_head(
    logits: &Array2<f64>,
    problem: &Problem,
    kind: HeadKind,
) -> (Array2<f64>, Array2<f64>) {
    let n = problem.n();
    let used = problem.rank().min(n);
    let mut filled = logits.clone();
    let mut carried = None;
    let mut round = 0;
    loop {
        let found = leading(filled.view(), used, carried);
        let root = Array1::from(found.values).mapv(f64::sqrt);
        let (q, k) = (found.left * &root, found.right * &root);
        round += 1;
        if round == IMPUTATIONS {
            let scale = (problem.rank() as f64).powf(0.25);
            return (q * scale, k * scale);
        }
        filled = product(q.view(), k.t());
        for row in 0..n {
            let seen = problem.target().seen(kind, row);
            filled.slice_mut(s![row, seen.clone()]).assign(&logits.slice(s![row, seen]));
        }
        carried = Some(found.carried);
    }
}
