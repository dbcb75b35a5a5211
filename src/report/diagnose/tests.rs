//! Heads and models for tests.

use super::model::{DiagnosedHead, DiagnosedModel};
use crate::experiments::heads::HeadMeasurement;
use crate::solver::Outcome;
use crate::targets::HeadKind;

/// A fitted head of rank 16 on 256 tokens. Its largest logit is the product of the factors floor, inflation, tying,
/// drift and gauge.
pub(super) fn fitted(layer: usize, head: usize, parts: [f64; 5]) -> DiagnosedHead {
    let [floor, inflation, tying, drift, gauge] = parts;
    let needed = floor * inflation;
    let needed_tied = needed * tying;
    let half_spread = needed_tied * drift;
    let found = HeadMeasurement {
        head,
        kind: HeadKind::Global,
        passage: 0,
        passages: 2,
        n: 256,
        rows: 256,
        rank: 16,
        epsilon: 0.01,
        actual: half_spread * gauge,
        spread: 2.0 * half_spread,
        needed: Some(needed),
        needed_tied: Some(needed_tied),
        floor: Some(floor),
        inflation: Some(inflation),
        tying: Some(tying),
        drift: Some(drift),
        gauge: Some(gauge),
        entropy_nats: 3.0,
        effective_rank_logits: 8.0,
        effective_rank_attention: None,
        mass_within_1: 0.1,
        mass_within_4: 0.2,
        mass_within_16: 0.4,
        mass_within_64: 0.6,
        key_head: Some(0),
        scale: Some(0.25),
        softcap: None,
        max_logit: Some(half_spread * gauge),
        max_logit_capped: None,
        max_dot: Some(4.0 * half_spread * gauge),
        first_mass: Some(0.1),
        sink_mass: Some(0.0),
        share_ramp: Some(0.1),
        precision: None,
        kl_nats: Some(0.01),
        kl_nats_tied: Some(0.01),
        outcome: Outcome::Converged,
        outcome_tied: Outcome::Converged,
        iterations: 10,
        evaluations: 20,
        wall_time_s: 1.0,
    };
    DiagnosedHead { layer, found, look: None }
}

/// The same head, screened instead of fitted.
pub(super) fn screened(layer: usize, head: usize, parts: [f64; 5]) -> DiagnosedHead {
    let mut one = fitted(layer, head, parts);
    let found = &mut one.found;
    [found.outcome, found.outcome_tied] = [Outcome::Screened; 2];
    for level in [
        &mut found.needed,
        &mut found.needed_tied,
        &mut found.inflation,
        &mut found.tying,
        &mut found.drift,
        &mut found.kl_nats,
        &mut found.kl_nats_tied,
    ] {
        *level = None;
    }
    one
}

/// A model of these heads.
pub(super) fn model(name: &str, step: Option<usize>, heads: Vec<DiagnosedHead>) -> DiagnosedModel {
    DiagnosedModel { name: name.into(), step, arm: "mhsa".into(), heads, tokens: Vec::new() }
}
