//! Tests of the tables of ramps, on synthetic heads.

use crate::experiments::ModelKey;
use crate::experiments::ramp::tables::{LAST, OF_AGE, RampHead, Ramps, largest};
use crate::experiments::ramp::{RampKey, RampMeasurement};
use crate::heads::ramp_half_spread;
use crate::solver::Outcome;
use crate::targets::HeadKind;

/// A local head of mhsa with learned positions. Its half-range is `times` the formula, and a line explains `share` of
/// its logits.
pub(crate) fn head(n: usize, seed: u64, mean_lag: f64, times: f64, share: f64) -> RampHead {
    let formula = ramp_half_spread(n, mean_lag);
    let half_spread = times * formula.unwrap_or(0.0);
    RampHead {
        study: "ramps".to_owned(),
        cell: format!("mhsa-{n}/s{seed}"),
        settings: String::new(),
        of: RampKey {
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
            share_ramp: Some(share),
            share_lines: Some(share),
            share_position: Some(share),
            share_key: None,
            share_lag: Some(share),
            share_position_and_lag: Some(share),
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

/// Heads of `seeds` seeds at each length, with mean distances from 3 to 8. Half-ranges grow as n^`exponent`, with some scatter.
pub(crate) fn heads(lengths: &[usize], seeds: u64, exponent: f64, share: f64) -> Ramps {
    let mut heads = Vec::new();
    for &n in lengths {
        for seed in 1..=seeds {
            for at in 0..3u64 {
                let lag = 3.0 + ((7 * seed + 3 * at + n as u64 / 256) % 6) as f64;
                let scatter = [0.97, 1.0, 1.03][(seed % 3) as usize];
                let times = 1.3 * scatter * (n as f64 / 256.0).powf(exponent - 1.0);
                heads.push(head(n, seed, lag, times, share));
            }
        }
    }
    Ramps::of_heads(heads, 0)
}

#[test]
fn exponents_are_those_that_the_heads_have() {
    let found = heads(&[256, 512, 1024], 5, 0.6, 0.9).exponents().unwrap();
    let [n, steepness] = found.coefficients[..] else { panic!("{found:?}") };
    assert!((n.value - 0.6).abs() < 0.03 && n.low < 0.6 && n.high > 0.6, "{n:?}");
    assert!((steepness.value - 1.0).abs() < 0.05, "{steepness:?}");
    assert_eq!((found.points, found.clusters), (45, 15));
}

/// Heads of other dimensions and widths would mix their own effect with that of the length.
#[test]
fn the_law_is_of_the_shape_that_has_most_lengths() {
    let mut all = heads(&[256, 512], 2, 1.0, 0.9);
    let mut small = heads(&[512], 9, 1.0, 0.9);
    small.heads.iter_mut().for_each(|head| head.found.rank = 8);
    let mut wide = heads(&[512], 1, 1.0, 0.9);
    wide.heads.iter_mut().for_each(|head| head.of.model.d_model = Some(128));
    all.heads.splice(0..0, small.heads);
    all.heads.extend(wide.heads);
    assert_eq!(all.shape_of_the_law(), Some((16, Some(64))));
    assert_eq!((all.bought().len(), all.all_bought().count()), (12, 42));
}

/// Heads that a position bias or a window can make local, and heads that are not local, are no evidence for the law.
#[test]
fn only_local_heads_that_logits_alone_can_make_local_are_of_the_law() {
    let one = head(256, 1, 5.0, 1.0, 0.9);
    let mut sloped = one.clone();
    sloped.of.slopes = Some("alibi".to_owned());
    sloped.of.model.seed = Some(2);
    let mut rotary = one.clone();
    rotary.of.positions = Some("rope".to_owned());
    let mut wide = one.clone();
    wide.found.mass_within_16 = 0.5;
    let mut windowed = one.clone();
    windowed.found.kind = HeadKind::Local { window: 16 };
    let all = Ramps::of_heads(vec![one, sloped, rotary, wide, windowed], 1);
    assert_eq!(all.bought().len(), 1);
    let tables = all.tables();
    let local: Vec<String> = tables[1]
        .rows()
        .iter()
        .map(|row| format!("{}/{}", row[5].shown(), row[6].shown()))
        .collect();
    assert_eq!(local, ["3/4", "1/1"], "global heads, and the windowed one");
    assert!(tables[2].rows().is_empty(), "one length has no exponent");
    assert!(tables[1].notes[1].contains("1 cell"));
}

/// Longer models become local later and have the same logits at the same time after that.
#[test]
fn models_of_several_lengths_are_compared_at_equal_time_since_they_became_local() {
    let mut all = Vec::new();
    for (n, from) in [(256, 1_000), (512, 2_000), (1_024, 4_000)] {
        for seed in 1..=4 {
            for step in (1_000..=9_000).step_by(1_000) {
                let mut one = head(n, seed, 5.0 + seed as f64, 1.0, 0.9);
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
    let of_n = |at: &str| {
        let all = study.all_exponents();
        let peaks = all.iter().find(|one| one.quantity.starts_with("max") && one.at == at);
        peaks.unwrap().found
    };
    assert!(of_n(LAST).high < -0.1, "at the same step longer models have smaller logits");
    assert!(of_n(OF_AGE).value.abs() < 1e-9);
}
