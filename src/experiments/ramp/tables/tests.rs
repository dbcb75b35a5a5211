//! Tests of the tables of ramps, on synthetic heads.

use crate::experiments::ramp::RampMeasurement;
use crate::experiments::ramp::tables::{RampHead, Ramps, largest};
use crate::experiments::{CheckpointKey, ModelKey};
use crate::heads::ramp_half_spread;
use crate::solver::Outcome;
use crate::targets::HeadKind;

/// A local head of mhsa with learned positions.
fn head(n: usize, seed: u64, mean_lag: f64) -> RampHead {
    let formula = ramp_half_spread(n, mean_lag);
    let half_spread = 1.3 * formula.unwrap_or(0.0);
    RampHead {
        study: "ramps".to_owned(),
        cell: format!("mhsa-{n}/s{seed}"),
        settings: String::new(),
        of: CheckpointKey {
            model: ModelKey {
                d_model: Some(64),
                seed: Some(seed),
                ..ModelKey::of_published(&format!("mhsa-{n}"), "mhsa", None, [1, 4, n], Some(100))
            },
            positions: Some("learned".to_owned()),
            slopes: Some("none".to_owned()),
        },
        found: RampMeasurement {
            layer: 0,
            head: 0,
            kind: HeadKind::Global,
            passage: 0,
            passages: 1,
            n,
            rows: n,
            rank: 16,
            given_slope: None,
            actual: half_spread,
            half_spread,
            formula,
            mean_lag,
            median_lag: mean_lag as usize,
            entropy_nats: 2.0,
            mass_within_1: 0.2,
            mass_within_4: 0.5,
            mass_within_16: 0.9,
            mass_within_64: 1.0,
            effective_rank_logits: 2.0,
            effective_rank_centred: 1.1,
            stable_rank_centred: 1.0,
            share_ramp: Some(0.9),
            share_lines: Some(0.9),
            share_position: Some(0.9),
            share_key: None,
            share_lag: Some(0.9),
            share_position_and_lag: Some(0.9),
            slope: 0.1,
            kl_uniform: 3.0,
            kl_ramp: 1.0,
            kl_position: 0.5,
            kl_lag: 0.5,
            ramp_kl_share: Some(2.0 / 3.0),
            slope_kl: 0.1,
            ramp_lag: Some(9.0),
            precision: None,
            outcome: Outcome::Converged,
            wall_time_s: 0.1,
        },
    }
}

/// Three heads of each of `seeds` seeds at each length.
pub(crate) fn heads(lengths: &[usize], seeds: u64) -> Ramps {
    let of_model = |n, seed| [3.0, 5.0, 8.0].map(|mean_lag| head(n, seed, mean_lag));
    let of_length = |&n: &usize| (1..=seeds).flat_map(move |seed| of_model(n, seed));
    Ramps::of_heads(lengths.iter().flat_map(of_length).collect(), 0)
}

/// Longer models become local later and have the same logits at the same time after that.
#[test]
fn models_of_several_lengths_are_compared_at_equal_time_since_they_became_local() {
    let mut all = Vec::new();
    for (n, from) in [(256, 1_000), (512, 2_000), (1_024, 4_000)] {
        for seed in 1..=4 {
            for step in (1_000..=9_000).step_by(1_000) {
                let mut one = head(n, seed, 5.0 + seed as f64);
                one.of.model.step = Some(step);
                one.found.mass_within_16 = if step < from { 0.1 } else { 0.9 };
                one.found.half_spread = 10.0 + (step as f64 - from as f64).max(0.0) / 100.0;
                one.found.actual = one.found.half_spread;
                all.push(one);
            }
        }
    }
    let study = Ramps::of_heads(all, 0);
    let models = study.models();
    assert_eq!(models.len(), 12);
    assert!(models.iter().all(|model| largest(&model.aged) == Some(40.0)));
    let from: Vec<_> = models.iter().map(|model| model.local_from).step_by(4).collect();
    assert_eq!(from, [Some(1_000), Some(2_000), Some(4_000)]);
}
