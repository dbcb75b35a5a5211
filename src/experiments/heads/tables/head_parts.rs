//! One trained head of a table: what its logits are, and what they needed to be.

use crate::experiments::heads::HeadMeasurement;
use crate::heads::Levels;
use crate::record::Row;

/// Inputs that cost a head less than this factor leave nothing to take a share of.
const LEAST_TYING: f64 = 1.1;

/// The name that people read of each of [`PARTS`](crate::heads::PARTS).
pub const FACTOR_NAMES: [&str; 5] =
    ["floor", "rank penalty", "input factor", "excess factor", "shift factor"];

/// One head at one step and ε.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeadParts {
    /// The study of its run.
    pub of: String,
    /// The run's name there.
    pub run: String,
    /// The arm.
    pub arm: String,
    /// The text that it was trained on.
    pub corpus: String,
    /// The run's seed.
    pub seed: usize,
    /// The step of the weights.
    pub step: usize,
    /// The layer, from 0.
    pub layer: usize,
    /// The head, from 0.
    pub head: usize,
    /// What it sees: `global`, `local:16`.
    pub kind: String,
    /// Tokens of a passage.
    pub n: usize,
    /// The head dimension d.
    pub rank: usize,
    /// Which passages.
    pub passage: usize,
    /// ε in nats.
    pub epsilon: f64,
    /// max |z|.
    pub actual: f64,
    /// The greatest max − min of a row's logits.
    pub spread: f64,
    /// L*(ε; P, d); none where no logit reached ε.
    pub needed: Option<f64>,
    /// Lˣ(ε; P, d).
    pub needed_tied: Option<f64>,
    /// Lˣ(ε; P, ∞): tied to the same inputs at any rank; none where it was not asked for.
    pub needed_any_rank: Option<f64>,
    /// What is proven of that from below.
    pub lower_bound_tied: Option<f64>,
    /// L⁰(ε; P).
    pub floor: Option<f64>,
    /// The mean entropy of a row of attention, in nats.
    pub entropy_nats: f64,
    /// The attention's effective rank.
    pub effective_rank: Option<f64>,
    /// Its mass on the last 16 tokens.
    pub mass_within_16: Option<f64>,
}

impl From<&Row<HeadMeasurement>> for HeadParts {
    fn from(row: &Row<HeadMeasurement>) -> Self {
        let (of, found) = (&row.of.model, &row.found);
        Self {
            of: of.of.clone().unwrap_or_default(),
            run: of.run.clone(),
            arm: of.arm.clone(),
            corpus: of.corpus.clone().unwrap_or_default(),
            seed: of.seed.unwrap_or(0) as usize,
            step: of.step.unwrap_or(0),
            layer: row.of.layer,
            head: found.head,
            kind: found.kind.to_string(),
            n: found.n,
            rank: found.rank,
            passage: found.passage,
            epsilon: found.epsilon,
            actual: found.actual,
            spread: found.spread,
            needed: found.needed,
            needed_tied: found.needed_tied,
            needed_any_rank: found.needed_any_rank,
            lower_bound_tied: found.lower_bound_tied,
            floor: found.floor,
            entropy_nats: found.entropy_nats,
            effective_rank: found.effective_rank_attention,
            mass_within_16: Some(found.mass_within_16),
        }
    }
}

impl HeadParts {
    /// floor, inflation, tying, drift and gauge; none where one is not known, or the floor is 0.
    pub fn parts(&self) -> Option<[f64; 5]> {
        let &Self { floor, needed, needed_tied, spread, actual, .. } = self;
        let [floor, inflation, tying, drift, gauge] =
            Levels { floor, needed, needed_tied, spread, actual }.parts();
        Some([floor?, inflation?, tying?, drift?, gauge?])
    }

    /// The share of log tying, at rank d, that goes where inputs need `less` than Lˣ(d): log(Lˣ(d)/less) /
    /// log(Lˣ(d)/L*(d)); none where tying is under 1.1.
    pub fn share_of_tying_less(&self, less: f64) -> Option<f64> {
        let (needed, tied) = (self.needed?, self.needed_tied?);
        let share = (tied / less).ln() / (tied / needed).ln();
        (tied >= LEAST_TYING * needed && share.is_finite()).then_some(share)
    }

    /// The share that goes at any rank.
    pub fn share_of_tying_by_rank(&self) -> Option<f64> {
        self.share_of_tying_less(self.needed_any_rank?)
    }

    pub(crate) fn setting(&self) -> (&str, &str, usize, usize, u64) {
        (&self.of, &self.run, self.rank, self.step, self.epsilon.to_bits())
    }

    pub(crate) fn model(&self) -> (&str, &str, usize, usize, u64) {
        (&self.of, &self.run, self.seed, self.step, self.epsilon.to_bits())
    }
}

/// What the attention of a model's largest head would have needed at a larger rank, with the same inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct WiderHead<'h> {
    /// The head at its own rank d.
    pub own: &'h HeadParts,
    /// The same at the larger rank r.
    pub wider: &'h HeadParts,
}

impl WiderHead<'_> {
    /// The share of log tying that rank r takes away.
    pub fn share_of_tying(&self) -> Option<f64> {
        self.own.share_of_tying_less(self.wider.needed_tied?)
    }
}
