//! Dense local attention: rows on the last tokens, their weights by lag.

use rand_distr::{Gamma, GammaError};

use super::draws::{self, Purpose, generator};
use super::entries::Row;

/// 1/w on each of the last w tokens.
pub(super) fn uniform(n: usize, window: usize) -> Vec<Row> {
    band(n, window, |_, lags| vec![1.0 / lags as f64; lags])
}

/// Weights ∝ e^{−lag/τ}.
pub(super) fn decaying(n: usize, window: usize, tau: f64) -> Vec<Row> {
    let weights = |lags| (0..lags).map(|lag| -(lag as f64) / tau).collect();
    band(n, window, |_, lags| draws::normalised_exponentials(weights(lags)))
}

/// Each row's weights drawn from the symmetric Dirichlet(α), from a stream of its own.
///
/// # Errors
/// An α that no Gamma distribution has.
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

/// Each row's weights ∝ e^{σ·normal}, from a stream of its own.
pub(super) fn lognormal(n: usize, window: usize, sigma: f64, seed: u64) -> Vec<Row> {
    band(n, window, |row, lags| {
        let mut rng = generator(seed, Purpose::LognormalBand, Some(row));
        draws::lognormal(&mut rng, sigma, lags)
    })
}

/// Rows on the last `window` tokens, whose weights by lag are `weights(row, lags)`.
fn band(n: usize, window: usize, weights: impl Fn(usize, usize) -> Vec<f64>) -> Vec<Row> {
    (0..n)
        .map(|row| {
            let lags = window.min(row + 1);
            let weights = weights(row, lags);
            weights.into_iter().enumerate().map(|(lag, p)| (row - lag, p)).collect()
        })
        .collect()
}
