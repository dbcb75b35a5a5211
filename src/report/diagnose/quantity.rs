//! What the page of a model's heads tells of each.

use crate::predict::PARTS;
use crate::row::HeadFound;

/// Where the colours of a quantity begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From 0 to the largest of the heads shown.
    ToLargest,
    /// From 0 to 1.
    Share,
    /// From 1 to the largest, by logarithms.
    Times,
}

/// Something that is told of each head, by the name of its column of the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity {
    /// The column; of half the spread, `spread`.
    pub column: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// Its unit; empty of shares and ratios.
    pub unit: &'static str,
    /// What it means, in a sentence.
    pub means: &'static str,
    /// Where its colours begin and end.
    pub scale: Scale,
    /// Its value.
    pub of: fn(&HeadFound) -> Option<f64>,
}

const NATS: &str = "nats";

/// The quantities, that of the largest logit first.
pub(super) const QUANTITIES: [Quantity; 17] = [
    Quantity {
        column: "actual",
        name: "largest logit",
        unit: NATS,
        means: "The largest |z| over the pairs that the head sees, z = s·q·k before any softcap.",
        scale: Scale::ToLargest,
        of: |head| Some(head.actual),
    },
    Quantity {
        column: "spread",
        name: "half spread",
        unit: NATS,
        means: "Half the largest difference within a row of logits: what is left once each row is shifted to its middle, \
                which softmax does not see.",
        scale: Scale::ToLargest,
        of: |head| Some(0.5 * head.spread),
    },
    Quantity {
        column: "needed_tied",
        name: "needed with its inputs",
        unit: NATS,
        means: "The largest logit that was found to do for its attention, within ε, with queries and keys made of the \
                head's own inputs at its rank.",
        scale: Scale::ToLargest,
        of: |head| head.needed_tied,
    },
    Quantity {
        column: "needed",
        name: "needed at its rank",
        unit: NATS,
        means: "The same with any queries and keys of the head's rank.",
        scale: Scale::ToLargest,
        of: |head| head.needed,
    },
    Quantity {
        column: PARTS[0],
        name: "floor",
        unit: NATS,
        means: "What logits of any rank need for its attention within ε, exactly.",
        scale: Scale::ToLargest,
        of: |head| head.floor,
    },
    Quantity {
        column: PARTS[1],
        name: "inflation",
        unit: "",
        means: "needed at its rank / floor: the price of the rank.",
        scale: Scale::Times,
        of: |head| head.inflation,
    },
    Quantity {
        column: PARTS[2],
        name: "tying",
        unit: "",
        means: "needed with its inputs / needed at its rank: the price of making queries and keys of those inputs.",
        scale: Scale::Times,
        of: |head| head.tying,
    },
    Quantity {
        column: PARTS[3],
        name: "drift",
        unit: "",
        means: "half spread / needed with its inputs: what softmax sees and nothing needed.",
        scale: Scale::Times,
        of: |head| head.drift,
    },
    Quantity {
        column: PARTS[4],
        name: "gauge",
        unit: "",
        means: "largest logit / half spread: shifts of whole rows, which softmax does not see.",
        scale: Scale::Times,
        of: |head| head.gauge,
    },
    Quantity {
        column: "max_logit",
        name: "largest signed logit",
        unit: NATS,
        means: "max z, after the scale and before any softcap.",
        scale: Scale::ToLargest,
        of: |head| head.max_logit,
    },
    Quantity {
        column: "max_logit_capped",
        name: "largest after the softcap",
        unit: NATS,
        means: "max c·tanh(z/c), what softmax is of, c the model's cap.",
        scale: Scale::ToLargest,
        of: |head| head.max_logit_capped,
    },
    Quantity {
        column: "share_ramp",
        name: "ramp share",
        unit: "",
        means: "The share (R²) of a straight line over the keys' positions in the logits less their rows' means.",
        scale: Scale::Share,
        of: |head| head.share_ramp,
    },
    Quantity {
        column: "entropy_nats",
        name: "entropy of a row",
        unit: NATS,
        means: "Mean over rows of −Σ p ln p: e to its power is how many tokens attention is spread over.",
        scale: Scale::ToLargest,
        of: |head| Some(head.entropy_nats),
    },
    Quantity {
        column: "first_mass",
        name: "first-token mass",
        unit: "",
        means: "The share of attention on the first token of a passage.",
        scale: Scale::Share,
        of: |head| head.first_mass,
    },
    Quantity {
        column: "sink_mass",
        name: "sink share",
        unit: "",
        means: "The share that a learned sink takes before the rest is shared among tokens.",
        scale: Scale::Share,
        of: |head| head.sink_mass.filter(|&share| share > 0.0),
    },
    Quantity {
        column: "effective_rank_logits",
        name: "realised rank",
        unit: "",
        means: "The effective rank of the logits QKᵀ, the exponential of the entropy of their singular values: the head \
                dimension at most.",
        scale: Scale::ToLargest,
        of: |head| Some(head.effective_rank_logits),
    },
    Quantity {
        column: "mass_within_16",
        name: "mass within 16",
        unit: "",
        means: "The share of attention on the last 16 tokens, a token itself among them; without a causal mask on those \
                nearer than 16.",
        scale: Scale::Share,
        of: |head| Some(head.mass_within_16),
    },
];

impl Quantity {
    /// The values that its first and its last colour stand for, of heads of these values.
    pub fn ends(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let largest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        match self.scale {
            Scale::ToLargest if largest > 0.0 => (0.0, largest),
            Scale::ToLargest | Scale::Share => (0.0, 1.0),
            Scale::Times => (1.0, largest.max(2.0)),
        }
    }

    /// How far between those two a value lies, from 0 to 1.
    pub fn share(&self, value: f64, (from, to): (f64, f64)) -> f64 {
        let share = match self.scale {
            Scale::ToLargest | Scale::Share => (value - from) / (to - from),
            Scale::Times => value.max(from).ln() / to.ln(),
        };
        share.clamp(0.0, 1.0)
    }
}
