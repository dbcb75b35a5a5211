//! Seeded random draws, and the rows of targets that are made of them. Every row has its own stream, so a row depends neither on
//! other rows nor on the number of threads.

use std::collections::HashMap;

use rand::seq::{SliceRandom, index};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, GammaError, Open01, StandardNormal};

/// Pairs (column, probability); all other columns have probability 0.
pub(super) type Row = Vec<(usize, f64)>;

/// The use of the draws. Each has its own stream, so families built from one seed, such as the parts of a mixture, are
/// independent.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    DirichletBand = 1,
    LognormalBand = 2,
    Landmark = 3,
    RandomSparse = 4,
    Permutation = 5,
    Clusters = 6,
    Tokens = 7,
}

/// The generator of row `row`, or with `None` the one that all rows share.
pub(super) fn generator(seed: u64, purpose: Purpose, row: Option<usize>) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let within = row.map_or(0, |row| row as u64 + 1);
    generator.set_stream(((purpose as u64) << 40) | within);
    generator
}

/// `length` weights drawn uniformly from the simplex, Dirichlet(1), as normalised exponential draws.
pub(super) fn on_the_simplex(rng: &mut impl Rng, length: usize) -> Vec<f64> {
    let logarithm = |_| {
        let uniform: f64 = Open01.sample(rng);
        (-uniform.ln()).ln()
    };
    normalised_exponentials((0..length).map(logarithm).collect())
}

/// `n` classes, each uniform on 0 to `classes` − 1. They are drawn in order, so a longer sequence starts with the shorter one.
pub(super) fn classes(rng: &mut impl Rng, classes: usize, n: usize) -> Vec<usize> {
    (0..n).map(|_| rng.random_range(0..classes)).collect()
}

/// `amount` distinct members of `first..end`, ascending; all members if there are fewer.
pub(super) fn distinct(rng: &mut impl Rng, first: usize, end: usize, amount: usize) -> Vec<usize> {
    let length = end - first;
    let mut members: Vec<usize> =
        index::sample(rng, length, amount.min(length)).into_iter().map(|at| first + at).collect();
    members.sort_unstable();
    members
}

/// exp(xᵢ) / Σ exp(xⱼ). The maximum is subtracted first, so that at least one weight does not underflow.
fn normalised_exponentials(logarithms: Vec<f64>) -> Vec<f64> {
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = logarithms.into_iter().map(|x| (x - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    for weight in &mut weights {
        *weight /= sum;
    }
    weights
}

/// 1/w on each of the last w tokens.
pub(super) fn uniform_band(n: usize, window: usize) -> Vec<Row> {
    band(n, window, |_, lags| vec![1.0 / lags as f64; lags])
}

/// Weights ∝ e^{−distance/τ} on the last `window` tokens.
pub(super) fn decay_band(n: usize, window: usize, tau: f64) -> Vec<Row> {
    let weights = |lags| (0..lags).map(|lag| -(lag as f64) / tau).collect();
    band(n, window, |_, lags| normalised_exponentials(weights(lags)))
}

/// Weights of each row drawn from the symmetric Dirichlet(α) by normalised Gamma(α) draws, with one random stream per row.
///
/// The draws are made as logarithms, log Γ(α) = log Γ(α + 1) + log(U)/α (Marsaglia and Tsang 2000, section 6), because at small
/// α every Gamma draw of a row can underflow to 0.
///
/// # Errors
/// The α is not valid for a Gamma distribution.
pub(super) fn dirichlet_band(
    n: usize,
    window: usize,
    alpha: f64,
    seed: u64,
) -> Result<Vec<Row>, GammaError> {
    let gamma = Gamma::new(alpha + 1.0, 1.0)?;
    Ok(band(n, window, |row, lags| {
        let mut rng = generator(seed, Purpose::DirichletBand, Some(row));
        let logarithm = |_| {
            let uniform: f64 = Open01.sample(&mut rng);
            gamma.sample(&mut rng).ln() + uniform.ln() / alpha
        };
        normalised_exponentials((0..lags).map(logarithm).collect())
    }))
}

/// Weights ∝ e^{σ·normal} in each row, with one random stream per row.
pub(super) fn lognormal_band(n: usize, window: usize, sigma: f64, seed: u64) -> Vec<Row> {
    band(n, window, |row, lags| {
        let mut rng = generator(seed, Purpose::LognormalBand, Some(row));
        let logarithm = |_| {
            let normal: f64 = StandardNormal.sample(&mut rng);
            sigma * normal
        };
        normalised_exponentials((0..lags).map(logarithm).collect())
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

/// Row i has equal weight on the positions j ≤ i in the cluster of i. `clusters` holds the cluster of each position.
pub(super) fn clustered(clusters: &[usize]) -> Vec<Row> {
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    let row = |(row, &cluster)| {
        let seen = members.entry(cluster).or_default();
        seen.push(row);
        let p = 1.0 / seen.len() as f64;
        seen.iter().map(|&column| (column, p)).collect()
    };
    clusters.iter().enumerate().map(row).collect()
}

/// Row i has all its weight on the position after the last earlier occurrence of token i, and on itself if the token is new.
pub(super) fn induction(tokens: &[usize]) -> Vec<Row> {
    let mut last: HashMap<usize, usize> = HashMap::new();
    let row = |(row, &token)| {
        let column = last.insert(token, row).map_or(row, |before| before + 1);
        vec![(column, 1.0)]
    };
    tokens.iter().enumerate().map(row).collect()
}

/// Dirichlet(1) weights on those of m shared columns that the causal mask allows.
///
/// # Errors
/// There are fewer than m columns.
pub(super) fn landmark(n: usize, m: usize, seed: u64) -> Result<Vec<Row>, String> {
    if m > n {
        return Err(format!("m is {m}; it must be at most the number of columns, {n}"));
    }
    let mut shared = generator(seed, Purpose::Landmark, None);
    let mut columns = vec![0];
    columns.extend(distinct(&mut shared, 1, n, m - 1));
    let row = |row: usize| {
        let seen = columns.partition_point(|&column| column <= row);
        let mut rng = generator(seed, Purpose::Landmark, Some(row));
        let weights = on_the_simplex(&mut rng, seen);
        columns[..seen].iter().copied().zip(weights).collect()
    };
    Ok((0..n).map(row).collect())
}

/// Dirichlet(1) weights on `k` distinct columns of each row.
pub(super) fn random_sparse(n: usize, k: usize, seed: u64) -> Vec<Row> {
    (0..n)
        .map(|row| {
            let mut rng = generator(seed, Purpose::RandomSparse, Some(row));
            let columns = distinct(&mut rng, 0, row + 1, k);
            let weights = on_the_simplex(&mut rng, columns.len());
            columns.into_iter().zip(weights).collect()
        })
        .collect()
}

/// λ·local + (1 − λ)·global; weights of common columns are added.
pub(super) fn mix(lambda: f64, local: Row, global: Row) -> Row {
    let mut row: Row = local.into_iter().map(|(column, p)| (column, lambda * p)).collect();
    row.extend(global.into_iter().map(|(column, p)| (column, (1.0 - lambda) * p)));
    row.sort_by_key(|&(column, _)| column);
    row.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            kept.1 += later.1;
        }
        same
    });
    row
}

/// P A Pᵀ: row i of A becomes row π(i), and column j column π(j).
pub(super) fn permuted(rows: Vec<Row>, seed: u64) -> Vec<Row> {
    let mut permutation: Vec<usize> = (0..rows.len()).collect();
    permutation.shuffle(&mut generator(seed, Purpose::Permutation, None));
    let mut shuffled = vec![Row::new(); rows.len()];
    for (row, entries) in rows.into_iter().enumerate() {
        shuffled[permutation[row]] =
            entries.into_iter().map(|(column, p)| (permutation[column], p)).collect();
    }
    shuffled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_shared_evenly() {
        let rows = clustered(&[1, 0, 1, 1, 0]);
        let third = 1.0 / 3.0;
        let expected: [&[(usize, f64)]; 5] = [
            &[(0, 1.0)],
            &[(1, 1.0)],
            &[(0, 0.5), (2, 0.5)],
            &[(0, third), (2, third), (3, third)],
            &[(1, 0.5), (4, 0.5)],
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_place_after_the_last_of_the_same_token_is_copied() {
        let rows = induction(&[3, 5, 3, 3, 5, 7, 3]);
        let columns: Vec<usize> = rows.iter().map(|row| row[0].0).collect();
        assert_eq!(columns, [0, 1, 1, 3, 2, 5, 4]);
        assert!(rows.iter().all(|row| row.len() == 1 && row[0].1 == 1.0), "{rows:?}");
    }
}
