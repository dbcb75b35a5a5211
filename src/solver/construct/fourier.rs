//! Fourier features for targets that depend only on the relative distance.

use std::f64::consts::TAU;

use ndarray::Array2;

use super::scale::scaled_rows;
use crate::solver::factors::Factors;
use crate::solver::problem::{FitError, Problem};
use crate::targets::Visibility;

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
/// `Cap`; `Factors` if values overflow.
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
        let seen = problem.columns(kind, row);
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
