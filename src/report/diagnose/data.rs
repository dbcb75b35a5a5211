//! Data for the page's script: numbers of the heads as JSON, pictures and keys as bytes.

use serde_json::{Value, json};

use super::look::{Look, colours};
use super::model::{DiagnosedHead, DiagnosedModel};
use super::quantity::{QUANTITIES, Quantity, Scale};
use crate::figure::{Rgb, heat, hex};
use crate::report::document::{in_script, number};

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
