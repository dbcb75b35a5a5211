//! A seeded corpus with the two things that attention is for: dense local structure and sparse
//! long-range recall, with one dial between them.

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::local::LocalSource;
use crate::lm::LmError;
use crate::lm::definition::require;

/// The largest table of the local source, in numbers.
const MAX_TABLE: usize = 1 << 24;

/// The synthetic corpus: a stream of segments, each local or recall.
///
/// **Symbols.** A local symbols, one `store` and one `query` mark, K keys and V values, numbered
/// in that order: A + 2 + K + V in all.
///
/// **Local segment** (probability 1 − `recall`): `segment` local symbols in a row. Given the local
/// symbols x₋₁, x₋₂, … before it, skipping anything else, the next is s with probability
///
/// p(s) ∝ R\[x₋₁ … x₋ₖ\]\[s\] · exp(`vote` · Σₗ aₗ M\[x₋ₗ\]\[s\] / ‖a‖), l = 1 … `window`
///
/// with k = `order`. Each of the Aᵏ rows of R is drawn from a symmetric Dirichlet of parameter
/// `concentration`, M has standard normal entries, and a is uniform on the simplex. So R asks for
/// exactly the last k symbols, and the vote, of standard deviation `vote` in nats, for all of the
/// last `window` ones: dense local attention.
///
/// **Recall segment** (probability `recall`): with equal chance `store key value`, key and value
/// uniform, or `query key value` with a key drawn uniformly from the `pairs` keys stored last and
/// the value that was stored with it: one sparse look-up, far back. While nothing is stored, every
/// recall segment is a store.
///
/// **Entropy.** Every conditional distribution is known, so the corpus reports the mean entropy
/// of the next token given all before it: local symbols that of p, a segment's first token also
/// that of the choice of segment, a stored key ln K, a stored value ln V, a queried key
/// ln(keys held), a queried value 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SyntheticCorpus {
    /// Tokens in all.
    pub tokens: usize,
    /// Local symbols: A.
    pub alphabet: usize,
    /// Symbols that a row of the table R depends on: k.
    pub order: usize,
    /// The Dirichlet parameter of R's rows; small ones make the next symbol nearly certain.
    pub concentration: f64,
    /// Symbols that vote.
    pub window: usize,
    /// The standard deviation of the vote, in nats; 0 leaves the table alone.
    pub vote: f64,
    /// Symbols in a local segment.
    pub segment: usize,
    /// The fraction of segments that are recall, 0 to 1.
    pub recall: f64,
    /// Keys: K.
    pub keys: usize,
    /// Values: V.
    pub values: usize,
    /// Keys that a query may ask for: those stored last.
    pub pairs: usize,
    /// Seeds the tables and the stream.
    pub seed: u64,
}

impl Default for SyntheticCorpus {
    fn default() -> Self {
        Self {
            tokens: 1_000_000,
            alphabet: 16,
            order: 1,
            concentration: 1.0,
            window: 16,
            vote: 2.0,
            segment: 16,
            recall: 0.1,
            keys: 16,
            values: 16,
            pairs: 4,
            seed: 0,
        }
    }
}

impl SyntheticCorpus {
    /// Symbols in all: A + 2 + K + V.
    pub fn vocabulary_size(&self) -> usize {
        self.alphabet + 2 + self.keys + self.values
    }

    /// Holds every value against what its key may be.
    pub(in crate::lm) fn check(&self) -> Result<(), LmError> {
        for (key, found) in [
            ("corpus.tokens", self.tokens),
            ("corpus.window", self.window),
            ("corpus.segment", self.segment),
            ("corpus.keys", self.keys),
            ("corpus.values", self.values),
            ("corpus.pairs", self.pairs),
        ] {
            require(found >= 1, key, found, "must be at least 1")?;
        }
        let alphabet = self.alphabet;
        require(alphabet >= 2, "corpus.alphabet", alphabet, "must be at least 2")?;
        let table = u32::try_from(self.order + 1)
            .ok()
            .and_then(|power| self.alphabet.checked_pow(power))
            .is_some_and(|size| size <= MAX_TABLE);
        let why = format!("{alphabet}^(order + 1) numbers are above {MAX_TABLE}: lower either");
        require(table, "corpus.order", self.order, &why)?;
        require(self.tokens <= 1 << 30, "corpus.tokens", self.tokens, "must be at most 2^30")?;
        let positive = self.concentration.is_finite() && self.concentration > 0.0;
        require(positive, "corpus.concentration", self.concentration, "must be above 0")?;
        let vote = self.vote.is_finite() && self.vote >= 0.0;
        require(vote, "corpus.vote", self.vote, "must be 0 or more")?;
        let recall = (0.0..=1.0).contains(&self.recall);
        require(recall, "corpus.recall", self.recall, "must be 0 to 1")
    }

    /// The tokens, and their mean conditional entropy in nats.
    pub(super) fn generate(&self) -> Result<(Vec<u32>, f64), LmError> {
        self.check()?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut local = LocalSource::new(self, &mut rng)?;
        let mut held: VecDeque<(usize, usize)> = VecDeque::new();
        let mut tokens = Vec::with_capacity(self.tokens + self.segment + 3);
        let mut entropy = 0.0;
        let store = self.alphabet;
        let query = store + 1;
        let key_token = |key: usize| query + 1 + key;
        let value_token = |value: usize| query + 1 + self.keys + value;
        while tokens.len() < self.tokens {
            let query_share = if held.is_empty() { 0.0 } else { 0.5 * self.recall };
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
                let (key, value) = held[rng.random_range(0..held.len())];
                entropy += (held.len() as f64).ln();
                tokens.extend([query, key_token(key), value_token(value)]);
            } else {
                let key = rng.random_range(0..self.keys);
                let value = rng.random_range(0..self.values);
                entropy += (self.keys as f64).ln() + (self.values as f64).ln();
                held.retain(|&(other, _)| other != key);
                held.push_back((key, value));
                if held.len() > self.pairs {
                    held.pop_front();
                }
                tokens.extend([store, key_token(key), value_token(value)]);
            }
        }
        let mean = entropy / tokens.len() as f64;
        tokens.truncate(self.tokens);
        Ok((tokens.into_iter().map(|token| token as u32).collect(), mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> SyntheticCorpus {
        SyntheticCorpus { tokens: 30_000, alphabet: 6, vote: 0.0, ..SyntheticCorpus::default() }
    }

    #[test]
    fn the_same_seed_gives_the_same_tokens() {
        let (a, _) = small().generate().unwrap();
        let (b, _) = small().generate().unwrap();
        let (c, _) = SyntheticCorpus { seed: 1, ..small() }.generate().unwrap();
        assert_eq!(a, b);
        assert_ne!(a, c);
    }

    #[test]
    fn every_query_is_answered_by_what_was_stored() {
        let corpus = SyntheticCorpus { recall: 0.6, pairs: 3, ..small() };
        let (tokens, _) = corpus.generate().unwrap();
        let (store, query) = (6, 7);
        let mut held: Vec<(u32, u32)> = Vec::new();
        let mut queries = 0;
        for three in tokens.windows(3) {
            if three[0] == store {
                held.retain(|pair| pair.0 != three[1]);
                held.push((three[1], three[2]));
            } else if three[0] == query {
                queries += 1;
                let recent = &held[held.len().saturating_sub(3)..];
                assert!(recent.contains(&(three[1], three[2])), "{three:?} not in {recent:?}");
            }
        }
        assert!(queries > 500, "{queries}");
    }

    #[test]
    fn the_entropy_is_that_of_the_source() {
        // Without recall at order 1, the entropy rate is Σ over pairs of −p(xy) ln p(y|x), which
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
        // Three tokens: which of two, then half the time a stored pair, half a queried key.
        let per_segment = 2f64.ln() + 0.5 * (16f64 * 16.0).ln() + 0.5 * 4f64.ln();
        assert!((entropy - per_segment / 3.0).abs() < 0.01, "{entropy}");
    }

    #[test]
    fn a_vote_changes_the_stream_and_a_table_too_large_is_refused() {
        let corpus = SyntheticCorpus { vote: 2.0, ..small() };
        let (with, _) = corpus.generate().unwrap();
        let (without, _) = small().generate().unwrap();
        assert_ne!(with, without);
        let error = SyntheticCorpus { order: 30, ..small() }.check().unwrap_err().to_string();
        assert!(error.contains("corpus.order"), "{error}");
    }
}
