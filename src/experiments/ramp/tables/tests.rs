//! Tests of the tables of ramps, on synthetic heads.

use crate::experiments::ramp::RampMeasurement;
use crate::experiments::ramp::tables::{RampHead, Ramps, largest};
use crate::experiments::{CheckpointKey, ModelKey};
use crate::heads::ramp_half_spread;
use crate::lm::{HeadProbe, Model, ModelShape, TrainDefinition};

/// The first head of a small random model on ten tokens.
pub(crate) fn probe() -> HeadProbe {
    let definition = TrainDefinition {
        layers: 1,
        d_model: 8,
        heads: 2,
        context: 12,
        ..TrainDefinition::default()
    };
    let model = Model::new(ModelShape::new(&definition, 5), 3.0, 0).unwrap();
    model.probe(&[0, 3, 1, 4, 2, 2, 0, 1, 1, 3]).unwrap().remove(0)
}

/// A local head of mhsa with learned positions. What no test looks at is that of a random head.
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
            n,
            rows: n,
            rank: 16,
            actual: half_spread,
            half_spread,
            formula,
            mean_lag,
            mass_within_16: 0.9,
            share_key: None,
            ..RampMeasurement::measure(&[&probe()], 0, None).unwrap()
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
