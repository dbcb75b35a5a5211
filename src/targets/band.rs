//! Dense local attention: rows with weight on the last tokens, by relative distance.

use rand_distr::{Gamma, GammaError};

use super::draws::{self, Purpose, generator};
use super::entries::Row;

/// 1/w on each of the last w tokens.
pub(super) fn uniform(n: usize, window: usize) -> Vec<Row> {
    band(n, window, |_, lags| vec![1.0 / lags as f64; lags])
}

/// Weights ∝ e^{−distance/τ} on the last `window` tokens.
pub(super) fn decaying(n: usize, window: usize, tau: f64) -> Vec<Row> {
    let weights = |lags| (0..lags).map(|lag| -(lag as f64) / tau).collect();
    band(n, window, |_, lags| draws::normalised_exponentials(weights(lags)))
}

/// Weights of each row drawn from the symmetric Dirichlet(α), with one random stream per row.
///
/// # Errors
/// The α is not valid for a Gamma distribution.
pub(super) fn dirichlet(
    n: usize,
    window: usize,
    alpha: f64,
    seed: u64,
) -> Result<Vec<Row>, GammaError> {
    let gamma = Gamma::new(alpha + 1.0, 1.0)?;
    Ok(band(n, window, |row, lags| {
        let mut rng = generator(seed, Purpose::DirichletBand, Some(row));
        draws::dirichlet(&mut rng, &gamma, alpha, lags)
    }))
}

/// Weights ∝ e^{σ·normal} in each row, with one random stream per row.
pub(super) fn lognormal(n: usize, window: usize, sigma: f64, seed: u64) -> Vec<Row> {
    band(n, window, |row, lags| {
        let mut rng = generator(seed, Purpose::LognormalBand, Some(row));
        draws::lognormal(&mut rng, sigma, lags)
    })
}

/// Rows on the last `window` tokens. `weights(row, count)` returns one weight per relative distance, from 0.
fn band(n: usize, window: usize, weights: impl Fn(usize, usize) -> Vec<f64>) -> Vec<Row> {
    (0..n)
        .map(|row| {
            let lags = window.min(row + 1);
            let weights = weights(row, lags);
            weights.into_iter().enumerate().map(|(lag, p)| (row - lag, p)).collect()
        })
        .collect()
}
