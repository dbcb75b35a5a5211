//! Heads and models for tests.

use super::model::{DiagnosedHead, DiagnosedModel};
use crate::experiments::heads::HeadMeasurement;
use crate::experiments::heads::tables::heads::tests::head as head_of_parts;
use crate::solver::Outcome;

/// A fitted head of rank 16 on 256 tokens. Its largest logit is the product of the factors floor, inflation, input_factor,
/// excess_factor and shift_factor.
pub(super) fn fitted(layer: usize, head: usize, parts: [f64; 5]) -> DiagnosedHead {
    let [_, inflation, input_factor, excess_factor, shift_factor] = parts;
    let of_parts = head_of_parts(("mhsa", 0, 0, head), parts, 3.0).found;
    let found = HeadMeasurement {
        passages: 2,
        n: 256,
        rows: 256,
        rank: 16,
        inflation: Some(inflation),
        input_factor: Some(input_factor),
        input_rank: Some(64),
        excess_factor: Some(excess_factor),
        shift_factor: Some(shift_factor),
        effective_rank_logits: 8.0,
        mass_within_1: 0.1,
        mass_within_4: 0.2,
        mass_within_16: 0.4,
        mass_within_64: 0.6,
        key_head: Some(0),
        scale: Some(0.25),
        max_logit: Some(of_parts.actual),
        max_dot: Some(4.0 * of_parts.actual),
        first_mass: Some(0.1),
        sink_mass: Some(0.0),
        share_ramp: Some(0.1),
        kl_nats: Some(0.01),
        kl_nats_from_input: Some(0.01),
        outcome: Outcome::Converged,
        outcome_from_input: Outcome::Converged,
        ..of_parts
    };
    DiagnosedHead { layer, found, look: None }
}

/// The same head, screened instead of fitted.
pub(super) fn screened(layer: usize, head: usize, parts: [f64; 5]) -> DiagnosedHead {
    let mut one = fitted(layer, head, parts);
    let found = &mut one.found;
    [found.outcome, found.outcome_from_input] = [Outcome::Screened; 2];
    for level in [
        &mut found.needed,
        &mut found.needed_from_input,
        &mut found.inflation,
        &mut found.input_factor,
        &mut found.excess_factor,
        &mut found.kl_nats,
        &mut found.kl_nats_from_input,
    ] {
        *level = None;
    }
    one
}

/// A model of these heads.
pub(super) fn model(name: &str, step: Option<usize>, heads: Vec<DiagnosedHead>) -> DiagnosedModel {
    DiagnosedModel { name: name.into(), step, arm: "mhsa".into(), heads, tokens: Vec::new() }
}
