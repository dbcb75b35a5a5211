//! The local symbols of the synthetic corpus.

use std::collections::VecDeque;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, Gamma, StandardNormal};

use crate::lm::{LmError, SyntheticCorpus};

/// The source of local symbols, with the symbols that it goes by.
pub(super) struct LocalSource {
    alphabet: usize,
    /// ln R, Aᵏ rows of A.
    log_table: Vec<f64>,
    /// `vote` · aₗ / ‖a‖ · M, one A × A matrix a lag; empty where nothing votes.
    votes: Vec<f64>,
    /// How far back the symbol of the first of them is, less 1.
    nearest: usize,
    /// The last symbols, the newest first: as many as R or the vote depends on.
    past: VecDeque<usize>,
    order: usize,
}

impl LocalSource {
    pub(super) fn new(corpus: &SyntheticCorpus, rng: &mut impl Rng) -> Result<Self, LmError> {
        let a = corpus.alphabet;
        let gamma = Gamma::new(corpus.concentration, 1.0).map_err(|e| LmError::Value {
            key: "corpus.concentration",
            found: corpus.concentration.to_string(),
            why: format!("cannot be used: {e}"),
        })?;
        let rows = a.pow(corpus.order as u32);
        let mut log_table = Vec::with_capacity(rows * a);
        for _ in 0..rows {
            // A gamma draw of a tiny shape may underflow to 0; the offset keeps its logarithm
            // finite and a whole row of them a distribution.
            let row: Vec<f64> = (0..a).map(|_| gamma.sample(rng) + 1e-12).collect();
            let sum: f64 = row.iter().sum();
            log_table.extend(row.iter().map(|x| (x / sum).ln()));
        }
        let mut votes = Vec::new();
        let farthest = if corpus.columns > 0 { corpus.columns } else { corpus.window };
        if corpus.vote > 0.0 {
            let matrix: Vec<f64> = (0..a * a).map(|_| StandardNormal.sample(rng)).collect();
            let lags: Vec<f64> = match corpus.columns {
                0 => (0..corpus.window).map(|_| Exp1.sample(rng)).collect(),
                _ => vec![1.0],
            };
            let norm = lags.iter().map(|x| x * x).sum::<f64>().sqrt();
            for lag in lags {
                votes.extend(matrix.iter().map(|m| corpus.vote * lag / norm * m));
            }
        }
        let past = corpus.order.max(if corpus.vote > 0.0 { farthest } else { 0 });
        let past = (0..past).map(|_| rng.random_range(0..a)).collect();
        let nearest = corpus.columns.saturating_sub(1);
        Ok(Self { alphabet: a, log_table, votes, nearest, past, order: corpus.order })
    }

    /// Begins a record: what came before counts as symbol 0.
    pub(super) fn begin(&mut self) {
        self.past.iter_mut().for_each(|symbol| *symbol = 0);
    }

    /// The next symbol, and the entropy in nats of the distribution that it was drawn from.
    pub(super) fn next(&mut self, rng: &mut impl Rng) -> (usize, f64) {
        let a = self.alphabet;
        let row = self.past.iter().take(self.order).fold(0, |row, symbol| row * a + symbol);
        let mut logits = self.log_table[row * a..][..a].to_vec();
        let voters = self.past.iter().skip(self.nearest);
        for (matrix, symbol) in self.votes.chunks(a * a).zip(voters) {
            for (logit, vote) in logits.iter_mut().zip(&matrix[symbol * a..][..a]) {
                *logit += vote;
            }
        }
        let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logits.iter().map(|z| (z - max).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let entropy =
            weights.iter().map(|w| w / sum).filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum();
        let mut draw = rng.random::<f64>() * sum;
        let mut symbol = a - 1;
        for (candidate, weight) in weights.iter().enumerate() {
            draw -= weight;
            if draw < 0.0 {
                symbol = candidate;
                break;
            }
        }
        // With order 0 and no vote there is no past to keep.
        if self.past.pop_back().is_some() {
            self.past.push_front(symbol);
        }
        (symbol, entropy)
    }
}
