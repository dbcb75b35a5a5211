//! The quantities that the page of a model's heads shows, and their numbers as data for its script.

use serde_json::{Value, json};

use super::look::{Look, colours};
use super::model::{DiagnosedHead, DiagnosedModel};
use crate::experiments::heads::HeadMeasurement;
use crate::figure::{Rgb, heat, hex};
use crate::heads::PARTS;
use crate::report::document::{in_script, number};

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
    pub of: Of,
}

/// The quantities, max |logit| first.
pub(super) const QUANTITIES: [Quantity; 19] = [
    size(
        "actual",
        "max |logit|",
        "The largest |z| over the pairs that the head sees; z = s·q·k, before any softcap.",
        |head| Some(head.actual),
    ),
    size(
        "spread",
        "half the logit range",
        "Half the largest logit range within a row: max |logit| after each row is shifted to its middle, \
          which softmax does not change.",
        |head| Some(0.5 * head.spread),
    ),
    size(
        "needed_from_input",
        "needed with its inputs",
        "The smallest max |logit| found that gives the head's attention within the tolerance ε, with queries \
          and keys projected from the head's own inputs at its rank.",
        |head| head.needed_from_input,
    ),
    size(
        "needed",
        "needed at its rank",
        "The same with free queries and keys of the head's rank.",
        |head| head.needed,
    ),
    size(
        PARTS[0],
        "floor",
        "The smallest max |logit| at unlimited rank that gives the attention within ε, exactly.",
        |head| head.floor,
    ),
    times(PARTS[1], "rank penalty", "Needed at its rank / floor.", |head| head.inflation),
    times(PARTS[2], "input factor", "Needed with its inputs / needed at its rank.", |head| {
        head.input_factor
    }),
    times(
        PARTS[3],
        "excess factor",
        "Half the logit range / needed with its inputs: what softmax sees and the attention does not need.",
        |head| head.excess_factor,
    ),
    times(
        PARTS[4],
        "shift factor",
        "max |logit| / half the logit range: shifts of whole rows, which softmax cancels.",
        |head| head.shift_factor,
    ),
    size(
        "max_logit",
        "max signed logit",
        "max z, after the scale and before any softcap.",
        |head| head.max_logit,
    ),
    size(
        "max_logit_capped",
        "max after the softcap",
        "max c·tanh(z/c), the input of softmax; c is the model's softcap.",
        |head| head.max_logit_capped,
    ),
    size(
        "bias_range",
        "bias range",
        "The largest max − min of a row's position bias, which is added to the logits and not part of them.",
        |head| head.bias_range,
    ),
    share(
        "share_ramp",
        "ramp share",
        "R² of a straight line over key positions in the logits, after subtracting the mean of each row.",
        |head| head.share_ramp,
    ),
    in_nats(
        "kl_bf16",
        "bf16 risk",
        "How much rounding of the logits to bfloat16 changes the attention: mean over rows of KL(P ‖ P̂).",
        |head| head.precision.as_ref().map(|risk| risk.kl_bf16),
    ),
    in_nats(
        "entropy_nats",
        "row entropy",
        "The mean over rows of −Σ p ln p. Its exponential is the number of tokens that a row attends to.",
        |head| Some(head.entropy_nats),
    ),
    share(
        "first_mass",
        "first-token mass",
        "The share of attention on the first token of a passage.",
        |head| head.first_mass,
    ),
    share("sink_mass", "sink share", "The share of attention on a learned sink.", |head| {
        head.sink_mass.filter(|&share| share > 0.0)
    }),
    size(
        "effective_rank_logits",
        "effective rank",
        "The effective rank of QKᵀ: the exponential of the entropy of its singular values, at most the head \
          dimension.",
        |head| Some(head.effective_rank_logits),
    ),
    share(
        "mass_within_16",
        "mass within 16",
        "The share of attention on the last 16 tokens, the query's own included; without a causal mask, on \
          keys nearer than 16.",
        |head| Some(head.mass_within_16),
    ),
];

/// The value of a quantity for a head.
type Of = fn(&HeadMeasurement) -> Option<f64>;

/// A quantity without a unit, from 0 to the largest.
const fn size(column: &'static str, name: &'static str, means: &'static str, of: Of) -> Quantity {
    Quantity { column, name, unit: "", means, scale: Scale::ToLargest, of }
}

/// A quantity in nats, from 0 to the largest.
const fn in_nats(
    column: &'static str,
    name: &'static str,
    means: &'static str,
    of: Of,
) -> Quantity {
    Quantity { unit: "nats", ..size(column, name, means, of) }
}

/// A share, from 0 to 1.
const fn share(column: &'static str, name: &'static str, means: &'static str, of: Of) -> Quantity {
    Quantity { scale: Scale::Share, ..size(column, name, means, of) }
}

/// A factor, from 1 to the largest.
const fn times(column: &'static str, name: &'static str, means: &'static str, of: Of) -> Quantity {
    Quantity { scale: Scale::Times, ..size(column, name, means, of) }
}

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

/// Number of colours of the grid's scale.
const SHADES: usize = 64;

/// A quantity that heads on this page have, and the values at the two ends of its colour scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// The quantity.
    pub quantity: &'static Quantity,
    /// Values at the ends of the scale, the same for all models of the page.
    pub ends: (f64, f64),
}

impl Shown {
    /// Returns the quantities that at least one head of these models has.
    pub fn all(models: &[DiagnosedModel]) -> Vec<Self> {
        let shown = |quantity: &'static Quantity| {
            let heads = models.iter().flat_map(|model| &model.heads);
            let values: Vec<f64> = heads.filter_map(|head| (quantity.of)(&head.found)).collect();
            let ends = quantity.ends(values.iter().copied());
            (!values.is_empty()).then_some(Self { quantity, ends })
        };
        QUANTITIES.iter().filter_map(shown).collect()
    }

    /// Index of the colour of `value` in [`all_shades`].
    pub fn shade(&self, value: f64) -> usize {
        (self.quantity.share(value, self.ends) * (SHADES - 1) as f64).round() as usize
    }
}

/// The colours of the grid's scale.
pub(super) fn all_shades() -> Vec<Rgb> {
    (0..SHADES).map(|at| heat(at as f64 / (SHADES - 1) as f64)).collect()
}

/// Formats the numbers of all heads as JSON that is safe in a script.
pub(super) fn numbers(models: &[DiagnosedModel], shown: &[Shown]) -> String {
    let [attention, logits] = colours().map(|colours| joined(&colours));
    in_script(&json!({
        "quantities": shown.iter().map(of_quantity).collect::<Vec<_>>(),
        "colours": { "heat": joined(&all_shades()), "attention": attention, "logits": logits },
        "models": models.iter().map(|model| of_model(model, shown)).collect::<Vec<_>>(),
    }))
}

/// Concatenates colours as six hexadecimal digits each.
fn joined(colours: &[Rgb]) -> String {
    colours.iter().map(|&colour| hex(colour)).collect::<String>().replace('#', "")
}

fn of_quantity(shown: &Shown) -> Value {
    let Quantity { column, name, unit, means, scale, .. } = shown.quantity;
    json!({
        "column": column,
        "name": name,
        "unit": unit,
        "means": means,
        "times": *scale == Scale::Times,
        "from": number(shown.ends.0),
        "to": number(shown.ends.1),
    })
}

fn of_model(model: &DiagnosedModel, shown: &[Shown]) -> Value {
    let shares_keys =
        model.heads.iter().any(|head| head.found.key_head.is_some_and(|of| of != head.found.head));
    let heads = model.heads.iter().map(|head| of_head(head, shares_keys, shown));
    json!({
        "title": model.title(),
        "tokens": model.tokens,
        "heads": heads.collect::<Vec<_>>(),
    })
}

fn of_head(head: &DiagnosedHead, shares_keys: bool, shown: &[Shown]) -> Value {
    let DiagnosedHead { layer, found, look } = head;
    let value = |shown: &Shown| number((shown.quantity.of)(found).unwrap_or(f64::NAN));
    json!({
        "layer": layer,
        "head": found.head,
        "kind": found.kind.to_string(),
        "rank": found.rank,
        "keyHead": found.key_head.filter(|_| shares_keys),
        "values": shown.iter().map(value).collect::<Vec<_>>(),
        "look": look.as_ref().map(of_look),
    })
}

fn of_look(look: &Look) -> Value {
    json!({
        "side": look.side,
        "block": look.block,
        "causal": look.is_causal,
        "most": number(look.most),
        "keys": look.keys,
        "every": look.every,
    })
}
