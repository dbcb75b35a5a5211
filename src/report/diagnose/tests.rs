//! Heads and models for tests.

use super::model::{DiagnosedHead, DiagnosedModel};
use crate::experiments::heads::HeadMeasurement;
use crate::solver::Outcome;
use crate::targets::HeadKind;

/// A fitted head of rank 16 on 256 tokens. Its largest logit is the product of the factors floor, inflation, input_factor,
/// excess_factor and shift_factor.
pub(super) fn fitted(layer: usize, head: usize, parts: [f64; 5]) -> DiagnosedHead {
    let [floor, inflation, input_factor, excess_factor, shift_factor] = parts;
    let needed = floor * inflation;
    let needed_from_input = needed * input_factor;
    let half_spread = needed_from_input * excess_factor;
    let found = HeadMeasurement {
        head,
        kind: HeadKind::Global,
        passages: 2,
        n: 256,
        rows: 256,
        rank: 16,
        epsilon: 0.01,
        actual: half_spread * shift_factor,
        spread: 2.0 * half_spread,
        needed: Some(needed),
        needed_from_input: Some(needed_from_input),
        floor: Some(floor),
        inflation: Some(inflation),
        input_factor: Some(input_factor),
        input_rank: Some(64),
        excess_factor: Some(excess_factor),
        shift_factor: Some(shift_factor),
        entropy_nats: 3.0,
        effective_rank_logits: 8.0,
        mass_within_1: 0.1,
        mass_within_4: 0.2,
        mass_within_16: 0.4,
        mass_within_64: 0.6,
        key_head: Some(0),
        scale: Some(0.25),
        max_logit: Some(half_spread * shift_factor),
        max_dot: Some(4.0 * half_spread * shift_factor),
        first_mass: Some(0.1),
        sink_mass: Some(0.0),
        share_ramp: Some(0.1),
        kl_nats: Some(0.01),
        kl_nats_from_input: Some(0.01),
        outcome: Outcome::Converged,
        outcome_from_input: Outcome::Converged,
        iterations: 10,
        evaluations: 20,
        wall_time_s: 1.0,
        ..HeadMeasurement::default()
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
