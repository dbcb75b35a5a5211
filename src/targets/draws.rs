//! Seeded random draws. Every row has its own stream, so a row depends neither on other rows nor on the number of threads.

use rand::seq::index;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, Open01, StandardNormal};

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

/// A draw of `length` weights from the symmetric Dirichlet(α), by normalised Gamma(α) draws.
///
/// The draws are made as logarithms, log Γ(α) = log Γ(α + 1) + log(U)/α (Marsaglia and Tsang 2000, section 6), because at small
/// α every Gamma draw of a row can underflow to 0.
pub(super) fn dirichlet(
    rng: &mut impl Rng,
    gamma: &Gamma<f64>,
    alpha: f64,
    length: usize,
) -> Vec<f64> {
    let logarithms = (0..length)
        .map(|_| {
            let uniform: f64 = Open01.sample(rng);
            gamma.sample(rng).ln() + uniform.ln() / alpha
        })
        .collect();
    normalised_exponentials(logarithms)
}

/// `length` weights proportional to e^{σ·normal}.
pub(super) fn lognormal(rng: &mut impl Rng, sigma: f64, length: usize) -> Vec<f64> {
    let logarithms = (0..length)
        .map(|_| {
            let normal: f64 = StandardNormal.sample(rng);
            sigma * normal
        })
        .collect();
    normalised_exponentials(logarithms)
}

/// `length` weights drawn uniformly from the simplex, Dirichlet(1), as normalised exponential draws.
pub(super) fn on_the_simplex(rng: &mut impl Rng, length: usize) -> Vec<f64> {
    let logarithms = (0..length)
        .map(|_| {
            let uniform: f64 = Open01.sample(rng);
            (-uniform.ln()).ln()
        })
        .collect();
    normalised_exponentials(logarithms)
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
pub(super) fn normalised_exponentials(logarithms: Vec<f64>) -> Vec<f64> {
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = logarithms.into_iter().map(|x| (x - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    for weight in &mut weights {
        *weight /= sum;
    }
    weights
}
