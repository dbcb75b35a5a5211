//! One trained head of a table: its logits, and the logits that its attention needs.

use crate::experiments::heads::HeadMeasurement;
use crate::heads::Levels;
use crate::record::Row;

/// The display name of each of [`PARTS`](crate::heads::PARTS).
pub const FACTOR_NAMES: [&str; 5] =
    ["floor", "rank penalty", "input factor", "excess factor", "shift factor"];

/// One head at one step and ε.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeadParts {
    /// The study of its run.
    pub of: String,
    /// The run's name in that study.
    pub run: String,
    /// The variant.
    pub arm: String,
    /// The run's seed.
    pub seed: usize,
    /// The step of the weights.
    pub step: usize,
    /// The layer, from 0.
    pub layer: usize,
    /// The head, from 0.
    pub head: usize,
    /// The kind of head: `global` or `local:16`.
    pub kind: String,
    /// The number of tokens of a passage.
    pub n: usize,
    /// The head dimension d.
    pub rank: usize,
    /// ε in nats.
    pub epsilon: f64,
    /// max |z|.
    pub actual: f64,
    /// The largest max − min of a row's logits.
    pub spread: f64,
    /// L*(ε; P, d); `None` if no logits reached ε.
    pub needed: Option<f64>,
    /// Lˣ(ε; P, d).
    pub needed_tied: Option<f64>,
    /// L⁰(ε; P).
    pub floor: Option<f64>,
    /// The mean entropy of a row of attention, in nats.
    pub entropy_nats: f64,
    /// The attention's effective rank.
    pub effective_rank: Option<f64>,
}

impl From<&Row<HeadMeasurement>> for HeadParts {
    fn from(row: &Row<HeadMeasurement>) -> Self {
        let (of, found) = (&row.of.model, &row.found);
        Self {
            of: of.of.clone().unwrap_or_default(),
            run: of.run.clone(),
            arm: of.arm.clone(),
            seed: of.seed.unwrap_or(0) as usize,
            step: of.step.unwrap_or(0),
            layer: row.of.layer,
            head: found.head,
            kind: found.kind.to_string(),
            n: found.n,
            rank: found.rank,
            epsilon: found.epsilon,
            actual: found.actual,
            spread: found.spread,
            needed: found.needed,
            needed_tied: found.needed_tied,
            floor: found.floor,
            entropy_nats: found.entropy_nats,
            effective_rank: found.effective_rank_attention,
        }
    }
}

impl HeadParts {
    /// floor, inflation, tying, drift and gauge; `None` if one is unknown or the floor is 0.
    pub fn parts(&self) -> Option<[f64; 5]> {
        let &Self { floor, needed, needed_tied, spread, actual, .. } = self;
        let [floor, inflation, tying, drift, gauge] =
            Levels { floor, needed, needed_tied, spread, actual }.parts();
        Some([floor?, inflation?, tying?, drift?, gauge?])
    }

    pub(crate) fn setting(&self) -> (&str, &str, usize, usize, u64) {
        (&self.of, &self.run, self.rank, self.step, self.epsilon.to_bits())
    }

    /// The run, at one rank and ε.
    pub(crate) fn run(&self) -> (&str, &str, usize, usize, u64) {
        (&self.of, &self.run, self.seed, self.rank, self.epsilon.to_bits())
    }

    pub(crate) fn model(&self) -> (&str, &str, usize, usize, u64) {
        (&self.of, &self.run, self.seed, self.step, self.epsilon.to_bits())
    }
}
