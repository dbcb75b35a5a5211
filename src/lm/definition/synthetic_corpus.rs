//! The definition of the synthetic corpus. It mixes dense local structure with sparse
//! long-range recall in a given share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lm::LmError;
use crate::lm::error::require;

/// The largest size of the table R, in numbers.
const MAX_TABLE: usize = 1 << 24;
/// The largest allowed value of a size; symbols are stored in 32 bits.
const MOST: usize = 1 << 30;

/// The synthetic corpus: a stream of segments, each local or recall.
///
/// **Symbols.** A local symbols, one `store` mark, one `query` mark, K keys and V values, numbered
/// in that order: A + 2 + K + V symbols.
///
/// **Local segment** (probability 1 − `recall`): `segment` local symbols in a row. Given the previous local
/// symbols x₋₁, x₋₂, …, without other symbols, the next one is s with probability
///
/// p(s) ∝ R\[x₋₁ … x₋ₖ\]\[s\] · exp(`vote` · Σₗ aₗ M\[x₋ₗ\]\[s\] / ‖a‖), l = 1 … `window`
///
/// with k = `order`. Each of the Aᵏ rows of R is drawn from a symmetric Dirichlet distribution of parameter
/// `concentration`, M has standard normal entries, and a is uniform on the simplex. So R depends on
/// exactly the last k symbols. The vote has a standard deviation of `vote` nats and depends on all of the
/// last `window` symbols, which needs dense local attention.
///
/// **Recall segment** (probability `recall`): with equal chance `store key value`, with a uniform key and value,
/// or `query key value`, where the value is the one stored with the key. The key is uniform among the last `pairs` stored keys
/// whose values are at least `beyond` tokens before the queried value. This needs one sparse, distant look-up. As long as
/// there is no such key, every recall segment is a `store`.
///
/// **Entropy.** Every conditional distribution is known, so the corpus reports the mean entropy
/// of the next token given all previous ones: that of p for a local symbol; in addition that of the choice of
/// segment for a segment's first token; ln K for a stored key; ln V for a stored value;
/// ln(number of keys that may be queried) for a queried key; 0 for a queried value.
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
    /// The number of symbols: A + 2 + K + V.
    pub fn vocabulary_size(&self) -> usize {
        self.alphabet + 2 + self.keys + self.values
    }

    /// Checks every value against the range of its key.
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
