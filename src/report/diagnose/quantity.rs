//! The quantities that the page of a model's heads shows.

use crate::experiments::heads::HeadMeasurement;
use crate::heads::PARTS;

/// Ends of a quantity's colour scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From 0 to the largest of the heads shown.
    ToLargest,
    /// From 0 to 1.
    Share,
    /// From 1 to the largest, on a logarithmic scale.
    Times,
}

/// A quantity of each head, from a column of the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity {
    /// Column of the rows. The half-range has the column `spread`.
    pub column: &'static str,
    /// Name on the page.
    pub name: &'static str,
    /// Unit; empty for logits, shares and ratios.
    pub unit: &'static str,
    /// Definition in one sentence.
    pub means: &'static str,
    /// Ends of its colour scale.
    pub scale: Scale,
    /// Returns the value for a head.
    pub of: fn(&HeadMeasurement) -> Option<f64>,
}

/// The quantities, max |logit| first.
pub(super) const QUANTITIES: [Quantity; 18] = [
    Quantity {
        column: "actual",
        name: "max |logit|",
        unit: "",
        means: "The largest |z| over the pairs that the head sees; z = s·q·k, before any softcap.",
        scale: Scale::ToLargest,
        of: |head| Some(head.actual),
    },
    Quantity {
        column: "spread",
        name: "half the logit range",
        unit: "",
        means: "Half the largest logit range within a row: max |logit| after each row is shifted to its middle, \
                which softmax does not change.",
        scale: Scale::ToLargest,
        of: |head| Some(0.5 * head.spread),
    },
    Quantity {
        column: "needed_tied",
        name: "needed with its inputs",
        unit: "",
        means: "The smallest max |logit| found that gives the head's attention within the tolerance ε, with queries \
                and keys projected from the head's own inputs at its rank.",
        scale: Scale::ToLargest,
        of: |head| head.needed_tied,
    },
    Quantity {
        column: "needed",
        name: "needed at its rank",
        unit: "",
        means: "The same with free queries and keys of the head's rank.",
        scale: Scale::ToLargest,
        of: |head| head.needed,
    },
    Quantity {
        column: PARTS[0],
        name: "floor",
        unit: "",
        means: "The smallest max |logit| at full rank that gives the attention within ε, exactly.",
        scale: Scale::ToLargest,
        of: |head| head.floor,
    },
    Quantity {
        column: PARTS[1],
        name: "rank penalty",
        unit: "",
        means: "Needed at its rank / floor.",
        scale: Scale::Times,
        of: |head| head.inflation,
    },
    Quantity {
        column: PARTS[2],
        name: "input factor",
        unit: "",
        means: "Needed with its inputs / needed at its rank.",
        scale: Scale::Times,
        of: |head| head.tying,
    },
    Quantity {
        column: PARTS[3],
        name: "excess factor",
        unit: "",
        means: "Half the logit range / needed with its inputs: what softmax sees and the attention does not need.",
        scale: Scale::Times,
        of: |head| head.drift,
    },
    Quantity {
        column: PARTS[4],
        name: "shift factor",
        unit: "",
        means: "max |logit| / half the logit range: shifts of whole rows, which softmax cancels.",
        scale: Scale::Times,
        of: |head| head.gauge,
    },
    Quantity {
        column: "max_logit",
        name: "max signed logit",
        unit: "",
        means: "max z, after the scale and before any softcap.",
        scale: Scale::ToLargest,
        of: |head| head.max_logit,
    },
    Quantity {
        column: "max_logit_capped",
        name: "max after the softcap",
        unit: "",
        means: "max c·tanh(z/c), the input of softmax; c is the model's softcap.",
        scale: Scale::ToLargest,
        of: |head| head.max_logit_capped,
    },
    Quantity {
        column: "share_ramp",
        name: "ramp share",
        unit: "",
        means: "R² of a straight line over key positions in the logits, after subtracting the mean of each row.",
        scale: Scale::Share,
        of: |head| head.share_ramp,
    },
    Quantity {
        column: "kl_bf16",
        name: "bf16 risk",
        unit: "nats",
        means: "How much rounding of the logits to bfloat16 changes the attention: mean over rows of KL(P ‖ P̂).",
        scale: Scale::ToLargest,
        of: |head| head.precision.as_ref().map(|risk| risk.kl_bf16),
    },
    Quantity {
        column: "entropy_nats",
        name: "row entropy",
        unit: "nats",
        means: "The mean over rows of −Σ p ln p. Its exponential is the number of tokens that a row attends to.",
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
        means: "The share of attention on a learned sink.",
        scale: Scale::Share,
        of: |head| head.sink_mass.filter(|&share| share > 0.0),
    },
    Quantity {
        column: "effective_rank_logits",
        name: "effective rank",
        unit: "",
        means: "The effective rank of QKᵀ: the exponential of the entropy of its singular values, at most the head \
                dimension.",
        scale: Scale::ToLargest,
        of: |head| Some(head.effective_rank_logits),
    },
    Quantity {
        column: "mass_within_16",
        name: "mass within 16",
        unit: "",
        means: "The share of attention on the last 16 tokens, the query's own included; without a causal mask, on \
                keys nearer than 16.",
        scale: Scale::Share,
        of: |head| Some(head.mass_within_16),
    },
];

impl Quantity {
    /// Values at the two ends of the colour scale, for heads with these values.
    pub fn ends(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let largest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        match self.scale {
            Scale::ToLargest if largest > 0.0 => (0.0, largest),
            Scale::ToLargest | Scale::Share => (0.0, 1.0),
            Scale::Times => (1.0, largest.max(2.0)),
        }
    }

    /// Position of a value between the two ends, from 0 to 1.
    pub fn share(&self, value: f64, (from, to): (f64, f64)) -> f64 {
        let share = match self.scale {
            Scale::ToLargest | Scale::Share => (value - from) / (to - from),
            Scale::Times => value.max(from).ln() / to.ln(),
        };
        share.clamp(0.0, 1.0)
    }
}
