//! A seeded corpus with the two things that attention is for: dense local structure and sparse
//! long-range recall, with one dial between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lm::LmError;
use crate::lm::error::require;

/// The largest table of the local source, in numbers.
const MAX_TABLE: usize = 1 << 24;
/// The largest number of anything: symbols are held in 32 bits.
const MOST: usize = 1 << 30;

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
/// uniform, or `query key value` with a key drawn uniformly from the `pairs` keys stored last, of those whose
/// values stand `beyond` tokens or more before where theirs is asked for, and the value that was stored with it:
/// one sparse look-up, far back. While there is none to ask for, every recall segment is a store.
///
/// **Entropy.** Every conditional distribution is known, so the corpus reports the mean entropy
/// of the next token given all before it: local symbols that of p, a segment's first token also
/// that of the choice of segment, a stored key ln K, a stored value ln V, a queried key
/// ln(keys that may be asked for), a queried value 0.
///
/// **Records.** With the definition's key `records` there are no segments: every record is one symbol that begins it and
/// local symbols, in rows of `columns`, and the vote is that of the symbol above alone, `columns` symbols before:
///
/// p(s) ∝ R\[x₋₁ … x₋ₖ\]\[s\] · exp(`vote` · M\[x₋c\]\[s\]), c = `columns`
///
/// Symbols before a record's first count as symbol 0, so the entropy is exact, without the beginnings, which have none.
/// There are A + 1 symbols, the last the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(default)]
pub struct SyntheticCorpus {
    /// Tokens of the synthetic corpus, which is used where no text is given.
    pub tokens: usize,
    /// Number of local symbols, A.
    pub alphabet: usize,
    /// Order k of the transition table R.
    pub order: usize,
    /// Dirichlet parameter of the rows of R. Small values make the next symbol nearly certain.
    pub concentration: f64,
    /// Last symbols that vote for the next one.
    pub window: usize,
    /// Symbols per row of a record, where the symbol above votes; 0 without records.
    pub columns: usize,
    /// Standard deviation of the vote in nats; 0 for none.
    pub vote: f64,
    /// Symbols per local segment.
    pub segment: usize,
    /// Share of segments that are look-ups, 0 to 1.
    pub recall: f64,
    /// Number of keys, K.
    pub keys: usize,
    /// Number of values, V.
    pub values: usize,
    /// Last stored keys that a query may ask for.
    pub pairs: usize,
    /// Least distance in tokens to a value that is asked for.
    pub beyond: usize,
    /// Seed of tables and stream.
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
            columns: 0,
            vote: 2.0,
            segment: 16,
            recall: 0.1,
            keys: 16,
            values: 16,
            pairs: 4,
            beyond: 0,
            seed: 0,
        }
    }
}

impl SyntheticCorpus {
    /// Symbols in all: A + 2 + K + V, or, of records, A beside the one that begins them.
    pub fn vocabulary_size(&self) -> usize {
        match self.columns {
            0 => self.alphabet + 2 + self.keys + self.values,
            _ => self.alphabet,
        }
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
        for (key, found) in [
            ("corpus.tokens", self.tokens),
            ("corpus.order", self.order),
            ("corpus.window", self.window),
            ("corpus.columns", self.columns),
            ("corpus.segment", self.segment),
            ("corpus.keys", self.keys),
            ("corpus.values", self.values),
            ("corpus.pairs", self.pairs),
            ("corpus.beyond", self.beyond),
        ] {
            require(found <= MOST, key, found, "must be at most 2^30")?;
        }
        let alphabet = self.alphabet;
        require(alphabet >= 2, "corpus.alphabet", alphabet, "must be at least 2")?;
        let table = u32::try_from(self.order + 1)
            .ok()
            .and_then(|power| self.alphabet.checked_pow(power))
            .is_some_and(|size| size <= MAX_TABLE);
        let why = format!(
            "gives {alphabet}^(order + 1) numbers, more than {MAX_TABLE}; lower alphabet or \
                         order"
        );
        require(table, "corpus.order", self.order, &why)?;
        let positive = self.concentration.is_finite() && self.concentration > 0.0;
        require(positive, "corpus.concentration", self.concentration, "must be above 0")?;
        let vote = self.vote.is_finite() && self.vote >= 0.0;
        require(vote, "corpus.vote", self.vote, "must be 0 or more")?;
        let recall = (0.0..=1.0).contains(&self.recall);
        require(recall, "corpus.recall", self.recall, "must be 0 to 1")
    }
}
