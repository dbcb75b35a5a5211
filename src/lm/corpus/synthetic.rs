//! Generates the tokens of the synthetic corpus.

use std::collections::VecDeque;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Gamma, StandardNormal};

use crate::lm::{LmError, SyntheticCorpus, memory_estimate};

/// A key with its stored value.
struct Held {
    key: usize,
    value: usize,
    /// The position of the first token of its segment.
    stored_at: usize,
}

impl SyntheticCorpus {
    /// Refuses sizes that do not fit into memory: tokens, a segment past the last of them, and votes.
    fn check_room(&self) -> Result<(), LmError> {
        let numbers = [self.tokens, self.segment, self.window].map(|size| size as f64);
        let bytes = 8.0 * numbers.iter().sum::<f64>();
        memory_estimate::check(
            "the synthetic corpus needs",
            bytes,
            "corpus.tokens, segment or window",
        )
    }

    /// The tokens and their mean conditional entropy in nats.
    pub(super) fn generate(&self) -> Result<(Vec<u32>, f64), LmError> {
        self.check()?;
        self.check_room()?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut local = LocalSource::new(self, &mut rng)?;
        let mut held: VecDeque<Held> = VecDeque::new();
        let mut tokens = Vec::with_capacity(self.tokens + self.segment + 3);
        let mut entropy = 0.0;
        let store = self.alphabet;
        let query = store + 1;
        let key_token = |key: usize| query + 1 + key;
        let value_token = |value: usize| query + 1 + self.keys + value;
        while tokens.len() < self.tokens {
            // The value is the last of three tokens in both kinds of segment, so values are as far apart as their
            // segments' starts.
            let is_far = |pair: &&Held| tokens.len() - pair.stored_at >= self.beyond;
            let far = held.iter().filter(is_far).count();
            // `held` is in order of storing: queries may ask for the last `pairs` of those that are far enough back.
            held.drain(..far.saturating_sub(self.pairs));
            let asked = far.min(self.pairs);
            let query_share = if asked == 0 { 0.0 } else { 0.5 * self.recall };
            entropy += [1.0 - self.recall, query_share, self.recall - query_share]
                .into_iter()
                .filter(|&p| p > 0.0)
                .map(|p: f64| -p * p.ln())
                .sum::<f64>();
            let draw: f64 = rng.random();
            if draw >= self.recall {
                for _ in 0..self.segment {
                    let (symbol, nats) = local.next(&mut rng);
                    tokens.push(symbol);
                    entropy += nats;
                }
            } else if draw < query_share {
                entropy += (asked as f64).ln();
                let Held { key, value, .. } = held[rng.random_range(0..asked)];
                tokens.extend([query, key_token(key), value_token(value)]);
            } else {
                let key = rng.random_range(0..self.keys);
                let value = rng.random_range(0..self.values);
                entropy += (self.keys as f64).ln() + (self.values as f64).ln();
                held.retain(|pair| pair.key != key);
                held.push_back(Held { key, value, stored_at: tokens.len() });
                tokens.extend([store, key_token(key), value_token(value)]);
            }
        }
        let mean = entropy / tokens.len() as f64;
        tokens.truncate(self.tokens);
        Ok((tokens.into_iter().map(|token| token as u32).collect(), mean))
    }
}

/// The source of local symbols, with the past symbols that the next one depends on.
pub(super) struct LocalSource {
    alphabet: usize,
    /// ln R, Aᵏ rows of A.
    log_table: Vec<f64>,
    /// `vote` · aₗ / ‖a‖ · M, one A × A matrix per relative distance; empty without votes.
    votes: Vec<f64>,
    /// The last symbols, newest first: as many as R or the vote depends on.
    past: VecDeque<usize>,
    order: usize,
}

impl LocalSource {
    pub(super) fn new(corpus: &SyntheticCorpus, rng: &mut impl Rng) -> Result<Self, LmError> {
        let a = corpus.alphabet;
        let gamma = Gamma::new(corpus.concentration, 1.0).map_err(|e| {
            let found = corpus.concentration;
            LmError::Refused(format!("corpus.concentration cannot be used: {e} ({found} found)"))
        })?;
        let rows = a.pow(corpus.order as u32);
        let mut log_table = Vec::with_capacity(rows * a);
        for _ in 0..rows {
            // A gamma draw with a tiny shape may underflow to 0. The offset keeps its logarithm
            // finite, and a row in which all underflow is still a distribution.
            let row: Vec<f64> = (0..a).map(|_| gamma.sample(rng) + 1e-12).collect();
            let sum: f64 = row.iter().sum();
            log_table.extend(row.iter().map(|x| (x / sum).ln()));
        }
        let mut votes = Vec::new();
        if corpus.vote > 0.0 {
            let matrix: Vec<f64> = (0..a * a).map(|_| StandardNormal.sample(rng)).collect();
            let lags: Vec<f64> = (0..corpus.window).map(|_| Exp1.sample(rng)).collect();
            let norm = lags.iter().map(|x| x * x).sum::<f64>().sqrt();
            for lag in lags {
                votes.extend(matrix.iter().map(|m| corpus.vote * lag / norm * m));
            }
        }
        let past = corpus.order.max(if corpus.vote > 0.0 { corpus.window } else { 0 });
        let past = (0..past).map(|_| rng.random_range(0..a)).collect();
        Ok(Self { alphabet: a, log_table, votes, past, order: corpus.order })
    }

    /// The next symbol, and the entropy in nats of the distribution from which it was drawn.
    pub(super) fn next(&mut self, rng: &mut impl Rng) -> (usize, f64) {
        let a = self.alphabet;
        let row = self.past.iter().take(self.order).fold(0, |row, symbol| row * a + symbol);
        let mut logits = self.log_table[row * a..][..a].to_vec();
        for (matrix, symbol) in self.votes.chunks(a * a).zip(&self.past) {
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
        // With order 0 and without votes no past is kept.
        if self.past.pop_back().is_some() {
            self.past.push_front(symbol);
        }
        (symbol, entropy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> SyntheticCorpus {
        SyntheticCorpus { tokens: 30_000, alphabet: 6, vote: 0.0, ..SyntheticCorpus::default() }
    }

    #[test]
    fn the_seed_and_the_vote_decide() {
        let tokens = |corpus: SyntheticCorpus| corpus.generate().unwrap().0;
        let first = tokens(small());
        assert_eq!(first, tokens(small()));
        assert_ne!(first, tokens(SyntheticCorpus { seed: 1, ..small() }));
        assert_ne!(first, tokens(SyntheticCorpus { vote: 2.0, ..small() }));
    }

    #[test]
    fn every_query_is_answered_by_one_of_the_last_pairs_stored_far_enough_back() {
        let near = SyntheticCorpus { recall: 0.6, pairs: 3, ..small() };
        let far = SyntheticCorpus { recall: 0.9, keys: 32, beyond: 40, ..near.clone() };
        for (corpus, least) in [(near, 0), (far, 40)] {
            let (tokens, _) = corpus.generate().unwrap();
            let (store, query) = (6, 7);
            let mut stored: Vec<(usize, u32, u32)> = Vec::new();
            let mut distances = Vec::new();
            for (at, three) in tokens.windows(3).enumerate() {
                if three[0] == store {
                    stored.retain(|pair| pair.1 != three[1]);
                    stored.push((at, three[1], three[2]));
                } else if three[0] == query {
                    let mut far = stored.iter().rev().filter(|pair| at - pair.0 >= least).take(3);
                    let asked = far.find(|pair| pair.1 == three[1]).unwrap();
                    assert_eq!(asked.2, three[2]);
                    distances.push(at - asked.0);
                }
            }
            assert!(distances.len() > 500, "{}", distances.len());
            assert_eq!(distances.iter().min(), Some(&least.max(3)));
        }
    }

    #[test]
    fn the_entropy_is_that_of_the_source() {
        // Without recall and with order 1, the entropy rate is Σ over pairs of −p(xy) ln p(y|x), which
        // counts of pairs estimate.
        let corpus = SyntheticCorpus { recall: 0.0, concentration: 1.0, ..small() };
        let (tokens, entropy) = corpus.generate().unwrap();
        let mut pairs = [[0.0f64; 6]; 6];
        for two in tokens.windows(2) {
            pairs[two[0] as usize][two[1] as usize] += 1.0;
        }
        let total: f64 = pairs.iter().flatten().sum();
        let counted: f64 = pairs
            .iter()
            .flat_map(|row| {
                let sum: f64 = row.iter().sum();
                row.iter().filter(|&&n| n > 0.0).map(move |n| -n / total * (n / sum).ln())
            })
            .sum();
        assert!((counted - entropy).abs() < 0.01, "{counted} against {entropy}");
    }

    #[test]
    fn pure_recall_has_the_entropy_of_its_draws() {
        let corpus = SyntheticCorpus { tokens: 300_000, recall: 1.0, pairs: 4, ..small() };
        let (tokens, entropy) = corpus.generate().unwrap();
        assert!(tokens.iter().all(|&t| t >= 6));
        // Three tokens: the choice of store or query; half the time a stored pair, half the time a queried key.
        let per_segment = 2f64.ln() + 0.5 * (16f64 * 16.0).ln() + 0.5 * 4f64.ln();
        assert!((entropy - per_segment / 3.0).abs() < 0.01, "{entropy}");
    }
}
