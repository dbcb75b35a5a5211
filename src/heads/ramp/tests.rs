use ndarray::Array2;

use super::*;
use crate::heads::positions::tests::{head, random};

/// z_ij = c·j + a_i.
fn ramp(tokens: usize, slope: f64, kind: HeadKind) -> HeadProbe {
    let scale = 2f64.sqrt();
    let queries = Array2::from_shape_fn((tokens, 2), |(i, k)| [1.0, (i % 7) as f64][k]);
    let keys = Array2::from_shape_fn((tokens, 2), |(j, k)| [scale * slope * j as f64, 0.5][k]);
    head(queries, keys, kind)
}

fn measured(probes: &[&HeadProbe]) -> RampMeasurement {
    RampMeasurement::measure(probes, 0, None).unwrap()
}

fn without_logits(tokens: usize) -> HeadProbe {
    let nothing = || Array2::zeros((tokens, 2));
    head(nothing(), nothing(), HeadKind::Global)
}

#[test]
fn a_head_that_is_a_ramp_is_told_as_one() {
    let (n, slope) = (200, 0.25);
    let probe = ramp(n, slope, HeadKind::Global);
    let found = measured(&[&probe, &probe]);
    assert_eq!(found.outcome, Outcome::Converged);
    let shares = [
        found.share_ramp,
        found.share_lines,
        found.share_position,
        found.share_key,
        found.share_lag,
        found.share_position_and_lag,
    ];
    assert!(shares.iter().all(|share| share.unwrap() > 1.0 - 1e-9), "{shares:?}");
    let divergences = [found.kl_ramp, found.kl_position, found.kl_lag];
    assert!(divergences.iter().all(|kl| *kl < 1e-9), "{divergences:?}");
    for c in [found.slope, found.slope_kl] {
        assert!((c / slope - 1.0).abs() < 1e-5, "a slope of {c}");
    }
    assert!((found.half_spread / (0.5 * 199.0 * slope) - 1.0).abs() < 1e-6);
    // The sum of distance · e^(−c·distance) over a row. The first rows are short, so the mean is slightly below τ of a long
    // row.
    let tau = ramp_lag(slope).unwrap();
    assert!((0.9 * tau..tau).contains(&found.mean_lag), "{} against {tau}", found.mean_lag);
    let formula = found.formula.unwrap();
    assert!((1.0..1.1).contains(&(formula / found.half_spread)), "{formula}");
    let within = 1.0 - (-16.0 * slope).exp();
    assert!((found.mass_within_16 / within - 1.0).abs() < 0.01, "{}", found.mass_within_16);
    assert_eq!(found.median_lag, 2, "half of e^(−lag/4) lies within ln 2 / 0.25 = 2.8");
    let ranks = [found.effective_rank_centred, found.stable_rank_centred];
    assert!(ranks.iter().all(|rank| (rank - 1.0).abs() < 1e-4), "{ranks:?}");
}

#[test]
fn a_window_takes_the_place_of_the_length() {
    let kind = HeadKind::Local { window: 16 };
    let found = measured(&[&ramp(200, 0.25, kind)]);
    let formula = 0.5 * 15.0 * (1.0 + 1.0 / found.mean_lag).ln();
    assert!((found.formula.unwrap() / formula - 1.0).abs() < 1e-12);
    assert!((found.half_spread / (0.5 * 15.0 * 0.25) - 1.0).abs() < 1e-5, "{}", found.half_spread);
    assert!(found.mass_within_16 > 1.0 - 1e-12);
}

/// Without logits attention is uniform: row i has a mean relative distance of i/2 and an entropy of ln(i + 1).
#[test]
fn a_head_without_logits_is_uniform() {
    let n = 21;
    let found = measured(&[&without_logits(n)]);
    assert!((found.mean_lag - (n - 1) as f64 / 4.0).abs() < 1e-12, "{}", found.mean_lag);
    let entropy: f64 = (1..=n).map(|m| (m as f64).ln()).sum::<f64>() / n as f64;
    assert!((found.entropy_nats - entropy).abs() < 1e-12);
    assert_eq!((found.half_spread, found.share_ramp, found.share_lines), (0.0, None, None));
    for kl in [found.kl_uniform, found.kl_ramp, found.kl_position, found.kl_lag] {
        assert!(kl < 1e-12, "{kl}");
    }
    // 21 rows of 1, 2, … 21 columns: the distances 0 to 4 hold half of the mass.
    let mass = |lag: usize| (lag + 1..=n).map(|m| 1.0 / m as f64).sum::<f64>();
    let median = (0..n).find(|&l| (0..=l).map(mass).sum::<f64>() >= 0.5 * n as f64);
    assert_eq!(Some(found.median_lag), median);
}

#[test]
fn wider_forms_explain_more_and_come_nearer() {
    for (seed, kind) in [(1, HeadKind::Global), (2, HeadKind::Local { window: 6 })] {
        let probes = random(30, kind, seed);
        for most in [None, Some(12)] {
            let found = RampMeasurement::measure(&probes.each_ref(), 0, most).unwrap();
            assert_eq!(found.outcome, Outcome::Converged);
            let share = |share: Option<f64>| share.unwrap();
            let line = share(found.share_ramp);
            assert!(line <= share(found.share_lines) && line <= share(found.share_lag));
            assert!(line <= share(found.share_position));
            let both = share(found.share_position_and_lag) + 1e-12;
            assert!(share(found.share_position) <= both && share(found.share_lag) <= both);
            assert!(found.kl_ramp <= found.kl_uniform);
            assert!(found.kl_position <= found.kl_ramp && found.kl_lag <= found.kl_ramp);
            assert!(found.half_spread <= found.actual);
        }
    }
}

/// Scores that differ between passages are of the keys, not of the positions; scores whose size hangs on the query are
/// neither in full.
#[test]
fn key_scores_are_free_in_each_passage_and_alike_for_every_query() {
    let n = 40;
    let score = |j: usize, passage: usize| (((17 + 12 * passage) * j) as f64).sin();
    let probe = |passage: usize, weight: &dyn Fn(usize) -> f64| {
        let queries = Array2::from_shape_fn((n, 1), |(i, _)| weight(i));
        let keys = Array2::from_shape_fn((n, 1), |(j, _)| 9.0 * score(j, passage));
        head(queries, keys, HeadKind::Global)
    };
    let measure = |weight: &dyn Fn(usize) -> f64| {
        let probes = [0, 1].map(|passage| probe(passage, weight));
        measured(&probes.each_ref())
    };
    let same = measured(&[&probe(0, &|_| 1.0), &probe(0, &|_| 1.0)]);
    assert!(same.share_position.unwrap() > 1.0 - 1e-10, "{:?}", same.share_position);
    assert!(same.kl_position < 1e-8 && same.kl_lag > 0.1, "{same:?}");
    let alike = measure(&|_| 1.0);
    assert!(alike.share_key.unwrap() > 1.0 - 1e-9, "{:?}", alike.share_key);
    assert!(alike.share_position.unwrap() < 0.8, "{:?}", alike.share_position);
    let by_turns = measure(&|i| if i % 2 == 0 { 1.0 } else { -1.0 });
    assert!(by_turns.share_key.unwrap() < 0.2, "{:?}", by_turns.share_key);
    assert!((by_turns.stable_rank_centred - 1.0).abs() < 1e-6, "rank one all the same");
}

/// A slope beside the logits moves the attention alone.
#[test]
fn what_a_head_is_given_is_no_logit_of_its_own() {
    let probe = HeadProbe { bias: Some(PositionBias::Linear(0.5)), ..without_logits(60) };
    let found = measured(&[&probe]);
    assert_eq!((found.half_spread, found.given_slope), (0.0, Some(0.5)));
    assert!((found.slope_kl - 0.5).abs() < 1e-4 && found.kl_ramp < 1e-9, "{}", found.slope_kl);
    assert!(found.formula.unwrap() > 10.0);
}

#[test]
fn heads_that_see_the_future_or_are_no_numbers_are_refused() {
    let [probe, _] = random(5, HeadKind::Global, 1);
    let both_ways = HeadProbe { visibility: Visibility::Bidirectional, ..probe.clone() };
    let error = RampMeasurement::measure(&[&both_ways], 0, None).unwrap_err().to_string();
    assert!(error.starts_with("layer 1, head 2 is not causal"), "{error}");
    let mut probe = probe;
    probe.keys[[1, 0]] = f32::NAN;
    let error = RampMeasurement::measure(&[&probe], 0, None).unwrap_err().to_string();
    assert!(error.contains("NaN"), "{error}");
    assert!(matches!(RampMeasurement::measure(&[], 0, None), Err(PredictError::NoPassage)));
}
