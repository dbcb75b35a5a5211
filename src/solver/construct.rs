//! Factors in closed form: upper bounds on L*(ε) without an optimiser, and starts for searches.

use std::f64::consts::TAU;

use nalgebra::{DMatrix, DVector};
use ndarray::{Array1, Array2, Array3, s};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::numerics::product;
use crate::solver::error::FitError;
use crate::solver::factors::Factors;
use crate::solver::problem::{Problem, check_cap};
use crate::targets::Visibility;

/// All constructions that apply to `problem`, with their names, each within the logit bound `cap`. Random codes draw from
/// `seed`; the others are deterministic. Empty for layouts of several heads.
///
/// # Errors
/// `Cap`, or values overflow.
pub fn constructions(
    problem: &Problem,
    cap: f64,
    seed: u64,
) -> Result<Vec<(&'static str, Factors)>, FitError> {
    let all = [
        ("fourier-features", fourier_features(problem, cap)?),
        ("moment-curve", moment_curve(problem, cap)?),
        ("random-codes", random_codes(problem, cap, seed)?),
    ];
    Ok(all.into_iter().filter_map(|(name, factors)| Some((name, factors?))).collect())
}

/// Largest difference between entries of rows with the same profile.
const SAME: f64 = 1e-9;

/// Logits zᵢⱼ = sᵢ(Σ_f c_f cos(2πf(i − j)/N + φ_f) − shift) over ⌊(d − 1)/2⌋ frequencies f.
///
/// **Applies** to one head and targets aᵢⱼ ∝ b(i − j) with one profile b, each row normalised over its allowed distances. Rows
/// without weight at any allowed distance may be arbitrary. Returns `None` for other targets and for d < 3 or n < 3.
///
/// **Rank d.** cos(x − y + φ) = cos(x + φ)cos y + sin(x + φ)sin y takes two dimensions per frequency; one more dimension shifts
/// the rows. These are random features (Rahimi and Recht 2007, *Random features for large-scale kernel machines*) with chosen
/// frequencies: those of largest amplitude in log b, clamped 2·cap below its maximum. Over one period N the cosines are
/// orthogonal, so this choice is the best approximation with that many frequencies in squared error. N is n with a causal mask,
/// whose distances are 0 to n − 1, and 2n without, so that no two distances coincide.
///
/// # Errors
/// `Cap`, or values overflow.
pub fn fourier_features(problem: &Problem, cap: f64) -> Result<Option<Factors>, FitError> {
    let (n, pairs) = (problem.n(), (problem.rank() - 1) / 2);
    if problem.heads() != 1 || pairs == 0 || n < 3 {
        return Ok(None);
    }
    let period = match problem.target().visibility() {
        Visibility::Causal => n,
        Visibility::Bidirectional => 2 * n,
    };
    let Some(profile) = profile(problem, period) else { return Ok(None) };
    let greatest = profile.iter().copied().fold(0.0, f64::max);
    let logs: Vec<f64> = profile.iter().map(|b| (b / greatest).ln().max(-2.0 * cap)).collect();
    let frequencies = strongest(&logs, pairs);
    let angle = |f: usize, i: usize| TAU * ((f * i) % period) as f64 / period as f64;
    let width = 2 * frequencies.len();
    let keys = Array2::from_shape_fn((n, width), |(j, feature)| {
        let angle = angle(frequencies[feature / 2].0, j);
        if feature % 2 == 0 { angle.cos() } else { angle.sin() }
    });
    // Re((c − is)·e^{i(x − y)}) = (c cos x + s sin x) cos y + (c sin x − s cos x) sin y.
    let queries = Array2::from_shape_fn((n, width), |(i, feature)| {
        let (f, c, s) = frequencies[feature / 2];
        let (sin, cos) = angle(f, i).sin_cos();
        if feature % 2 == 0 { c * cos + s * sin } else { c * sin - s * cos }
    });
    scaled_rows(problem, &queries, &keys, cap).map(Some)
}

/// b by relative distance modulo `period`; `None` if the target is not of this form.
///
/// The row with most entries is the reference: if any row has the whole profile, this one does.
fn profile(problem: &Problem, period: usize) -> Option<Vec<f64>> {
    let (n, target) = (problem.n(), problem.target());
    let kind = problem.layout().heads()[0];
    let lag = |row: usize, column: usize| (row + period - column) % period;
    let reference = (0..n).max_by_key(|&row| target.row(row).0.len())?;
    let mut profile = vec![0.0; period];
    let (columns, a) = target.row(reference);
    for (&column, &a) in columns.iter().zip(a) {
        profile[lag(reference, column as usize)] = a;
    }
    let fits = (0..n).all(|row| {
        let seen = problem.target().seen(kind, row);
        let sum: f64 = seen.clone().map(|column| profile[lag(row, column)]).sum();
        let (columns, a) = target.row(row);
        let mut exact = vec![0.0; n];
        columns.iter().zip(a).for_each(|(&column, &a)| exact[column as usize] = a);
        sum == 0.0 || seen.into_iter().all(|j| (exact[j] - profile[lag(row, j)] / sum).abs() < SAME)
    });
    fits.then_some(profile)
}

/// The `count` frequencies of largest amplitude strictly between 0 and N/2, with the coefficients of cosine and sine.
fn strongest(values: &[f64], count: usize) -> Vec<(usize, f64, f64)> {
    let period = values.len();
    let mut all: Vec<(usize, f64, f64)> = (1..period.div_ceil(2))
        .map(|f| {
            let norm = 2.0 / period as f64;
            let (mut c, mut s) = (0.0, 0.0);
            for (lag, value) in values.iter().enumerate() {
                let (sin, cos) = (TAU * ((f * lag) % period) as f64 / period as f64).sin_cos();
                c += norm * value * cos;
                s += norm * value * sin;
            }
            (f, c, s)
        })
        .collect();
    all.sort_by(|a, b| b.1.hypot(b.2).total_cmp(&a.1.hypot(a.2)).then(a.0.cmp(&b.0)));
    all.truncate(count);
    all
}

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
/// `Cap`, or values overflow.
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
/// `Cap`, or values overflow.
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
    let seen = problem.target().seen(problem.layout().heads()[0], row);
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
/// `Cap`, or a query or key is not finite.
fn scaled_rows(
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
        let seen = problem.target().seen(kind, row);
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
    Factors::new(q, k, Array1::ones(1))
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
