//! Screening: properties of a head's logits and attention, and its floor, without a fit.

use ndarray::{Array2, Axis};
use ndarray_linalg::QR;
use rayon::prelude::*;

use super::head::{attention_of, check_finite, held_rows, problem_of};
use super::positions::{Form, SeenRows, extremes};
use super::precision::PrecisionRisk;
use super::{HeadMeasurement, PredictError};
use crate::lm::{HeadProbe, LmError, Probed};
use crate::numerics::blas::on_one_thread;
use crate::solver::{Floor, Outcome};
use crate::targets::{Spectrum, TargetError, Visibility};

/// Numbers of last tokens, including the token itself, for which the attention mass is reported.
pub(super) const LAGS: [usize; 4] = [1, 4, 16, 64];

impl HeadMeasurement {
    /// What a head has without a fit and an ε, from `probes`, one per passage. All rows of a passage are measured, or `most`
    /// evenly spaced ones of a longer passage.
    ///
    /// Logits z = s·q·k are those before any softcap and without a position bias. The attention P is the
    /// softmax of both, normalised over tokens; the share of a learned sink is reported separately.
    ///
    /// # Errors
    /// No probe, logits that are not finite, or LAPACK fails.
    pub fn screened(probes: &[&HeadProbe], most: Option<usize>) -> Result<Self, PredictError> {
        let &first = probes.first().ok_or(PredictError::NoPassage)?;
        check_finite(probes)?;
        let tokens = first.queries.nrows();
        let held = held_rows(tokens, most);
        let seen = SeenRows::of(probes, &held);
        let [mut least, mut max_logit, mut logit_spread] = [f64::INFINITY, f64::NEG_INFINITY, 0.0];
        let (mut entropy, mut first_mass, mut mass_within) = (0.0, 0.0, [0.0; 4]);
        for row in seen.each() {
            let [low, high] = row.extremes();
            (least, max_logit) = (least.min(low), max_logit.max(high));
            logit_spread = logit_spread.max(high - low);
            entropy += row.entropy();
            if row.columns.start == 0 {
                first_mass += row.attention[0];
            }
            for (mass, lag) in mass_within.iter_mut().zip(LAGS) {
                let nearest = (row.position + 1).saturating_sub(lag).max(row.columns.start);
                let last = (row.position + lag).min(row.columns.end);
                let seen = nearest - row.columns.start..last - row.columns.start;
                *mass += row.attention[seen].iter().sum::<f64>();
            }
        }
        // The same in every passage.
        let bias_range = first.bias.as_ref().map(|bias| {
            let of_row = |&row: &usize| {
                let columns = first.kind.columns(row, tokens, first.visibility);
                let [low, high] = extremes(columns.map(|column| bias.at(row, column)));
                high - low
            };
            held.iter().map(of_row).fold(0.0, f64::max)
        });
        let rows = seen.len() as f64;
        let causal = first.visibility == Visibility::Causal;
        let share_ramp = causal.then(|| seen.share_of(Form::Ramp).of_variance).flatten();
        let sinks: f64 = probes.iter().flat_map(|probe| probe.sink_shares_of(&held)).sum();
        let ranks = probes.iter().map(|probe| {
            let queries = probe.queries.select(Axis(0), &held).mapv(f64::from);
            Ok(spectrum_of_product(&queries, &probe.keys.mapv(f64::from))?.effective_rank)
        });
        let ranks = ranks.sum::<Result<f64, TargetError>>()?;
        let [mass_within_1, mass_within_4, mass_within_16, mass_within_64] =
            mass_within.map(|mass| mass / rows);
        let softcap = first.softcap.map(f64::from);
        Ok(Self {
            head: first.head,
            kind: first.kind,
            passages: probes.len(),
            n: tokens,
            rows: held.len(),
            rank: first.queries.ncols(),
            actual: max_logit.max(-least),
            spread: logit_spread,
            entropy_nats: entropy / rows,
            effective_rank_logits: ranks / probes.len() as f64,
            mass_within_1,
            mass_within_4,
            mass_within_16,
            mass_within_64,
            key_head: Some(first.key_head),
            scale: Some(first.scale),
            softcap,
            max_logit: Some(max_logit),
            max_logit_capped: softcap.map(|cap| cap * (max_logit / cap).tanh()),
            max_dot: Some(max_logit / first.scale),
            bias_range,
            first_mass: Some(first_mass / rows),
            sink_mass: Some(sinks / rows),
            share_ramp,
            precision: Some(PrecisionRisk::of_rows(&seen, softcap)),
            outcome: Outcome::Screened,
            outcome_from_input: Outcome::Screened,
            ..Self::default()
        })
    }
}

/// L⁰(ε; P) of the same rows as [`HeadMeasurement::screened`] at each of `epsilons`: the smallest max |logit| at any rank. `None`
/// if no finite logits reach ε, or if the head has
/// a position bias, beside which the least logits are not defined here.
///
/// # Errors
/// As [`HeadMeasurement::screened`].
pub(super) fn floors(
    probes: &[&HeadProbe],
    most: Option<usize>,
    epsilons: &[f64],
) -> Result<Vec<Option<f64>>, PredictError> {
    let &first = probes.first().ok_or(PredictError::NoPassage)?;
    if first.bias.is_some() {
        return Ok(vec![None; epsilons.len()]);
    }
    let held = held_rows(first.queries.nrows(), most);
    let problem = problem_of(probes, &held, &attention_of(probes, &held))?;
    let floor = Floor::new(&problem);
    Ok(epsilons.iter().map(|&epsilon| floor.max_abs_logit(epsilon)).collect())
}

/// The singular values of QKᵀ, computed as those of the small R_q·R_kᵀ.
pub(super) fn spectrum_of_product(
    queries: &Array2<f64>,
    keys: &Array2<f64>,
) -> Result<Spectrum, TargetError> {
    let triangle = |m: &Array2<f64>| -> Result<Array2<f64>, TargetError> {
        let (_, r) = on_one_thread(|| m.qr()).map_err(TargetError::decomposition)?;
        Ok(r)
    };
    Spectrum::of_matrix(&triangle(queries)?.dot(&triangle(keys)?.t()))
}

/// max |z| of each head of `layers` over the allowed pairs of all passages, ordered by layer and head.
///
/// # Errors
/// As [`Probed::probe_layers`].
pub fn largest_logits(
    model: &dyn Probed,
    passages: &[Vec<u32>],
    layers: &[usize],
) -> Result<Vec<f64>, LmError> {
    let mut largest = Vec::new();
    model.each_layer(passages, layers, |probes| {
        let heads = probes.first().map_or(0, Vec::len);
        let of_head =
            |head: usize| probes.iter().map(|of| largest_logit(&of[head])).fold(0.0, f64::max);
        largest.extend((0..heads).into_par_iter().map(of_head).collect::<Vec<f64>>());
        Ok::<bool, LmError>(true)
    })?;
    Ok(largest)
}

/// max |z| over the allowed pairs.
pub(super) fn largest_logit(probe: &HeadProbe) -> f64 {
    let visible = probe.logits();
    visible.iter().filter(|z| z.is_finite()).fold(0.0, |most, z| most.max(z.abs()))
}

/// The threshold on max |logit| for fits: it selects the heads above `above`, but at most `most` heads, those of the largest
/// logits.
pub fn fitted_above(mut largest: Vec<f64>, above: f64, most: usize) -> f64 {
    largest.sort_by(|a, b| b.total_cmp(a));
    match (most.checked_sub(1).and_then(|last| largest.get(last)), largest.get(most)) {
        // Halfway between both values, so that rounding of either does not matter.
        (Some(last), Some(next)) if *next > above => 0.5 * (last + next),
        (None, Some(first)) => first.max(above),
        _ => above,
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::heads::TrainedHead;
    use crate::heads::positions::tests::head;
    use crate::lm::PositionBias;
    use crate::targets::HeadKind;

    const TOKENS: usize = 24;

    /// A head whose logits rise along the positions with a small wave. The first channel of all queries is equal.
    fn probe(visibility: Visibility) -> HeadProbe {
        let wave = |i: usize, j: usize| (0.7 * (i * (j + 1)) as f64 + 0.3).sin();
        let mut queries = Array2::from_shape_fn((TOKENS, 4), |(i, j)| wave(i, j));
        let mut keys = Array2::from_shape_fn((TOKENS, 4), |(i, j)| wave(i + 2, j + 1));
        queries.column_mut(0).fill(2.0);
        keys.column_mut(0).indexed_iter_mut().for_each(|(j, key)| *key = 0.4 * j as f64 - 5.0);
        let plain = head(queries, keys, HeadKind::Global);
        HeadProbe { head: 5, visibility, key_head: 1, scale: 0.25, ..plain }
    }

    fn screened(probe: &HeadProbe) -> HeadMeasurement {
        HeadMeasurement::screened(&[probe], None).unwrap()
    }

    #[test]
    fn what_is_screened_is_what_the_matrices_say() {
        for visibility in [Visibility::Causal, Visibility::Bidirectional] {
            let probe = probe(visibility);
            let found = screened(&probe);
            assert_eq!((found.head, found.key_head, found.rank), (5, Some(1), 4));
            let (z, p) = (probe.logits(), probe.attention());
            let visible = || z.iter().filter(|z| z.is_finite());
            let largest = visible().fold(0.0f64, |most, z| most.max(z.abs()));
            let signed = visible().fold(f64::NEG_INFINITY, |most, &z| most.max(z));
            assert_eq!((found.actual, found.max_logit), (largest, Some(signed)));
            assert!((found.max_dot.unwrap() - 4.0 * signed).abs() < 1e-12);
            let mean = |of: &dyn Fn(usize, usize) -> f64| -> f64 {
                let pairs = (0..TOKENS).flat_map(|i| (0..TOKENS).map(move |j| (i, j)));
                pairs.map(|(i, j)| of(i, j)).sum::<f64>() / TOKENS as f64
            };
            let first = mean(&|i, j| if j == 0 { p[[i, j]] } else { 0.0 });
            assert!((found.first_mass.unwrap() - first).abs() < 1e-12);
            let mass_within = [
                found.mass_within_1,
                found.mass_within_4,
                found.mass_within_16,
                found.mass_within_64,
            ];
            for (lag, told) in LAGS.into_iter().zip(mass_within) {
                let near = mean(&|i, j| if i.abs_diff(j) < lag { p[[i, j]] } else { 0.0 });
                assert!((told - near).abs() < 1e-12, "{lag}: {told} against {near}");
            }
            let entropy =
                mean(&|i, j| if p[[i, j]] > 0.0 { -p[[i, j]] * p[[i, j]].ln() } else { 0.0 });
            assert!((found.entropy_nats - entropy).abs() < 1e-12);
            assert_eq!(found.share_ramp.is_some(), visibility == Visibility::Causal);
        }
        let share = screened(&probe(Visibility::Causal)).share_ramp.unwrap();
        assert!((0.5..1.0).contains(&share), "most of the logits is a ramp: {share}");
    }

    #[test]
    fn a_cap_bounds_what_is_told_after_it_and_a_sink_takes_its_share() {
        let plain = probe(Visibility::Causal);
        let uncapped = screened(&plain);
        assert_eq!((uncapped.max_logit_capped, uncapped.sink_mass), (None, Some(0.0)));
        let capped = screened(&HeadProbe { softcap: Some(2.0), ..plain.clone() });
        assert_eq!(capped.max_logit, uncapped.max_logit);
        let (largest, max_logit) = (capped.max_logit_capped.unwrap(), capped.max_logit.unwrap());
        assert!((largest - 2.0 * (max_logit / 2.0).tanh()).abs() < 1e-12 && largest < 2.0);
        // A sink as large as all tokens together takes half of a row.
        let flat = HeadProbe { keys: Array2::zeros((TOKENS, 4)), ..plain };
        let sunk = screened(&HeadProbe { sink: Some(0.0), ..flat.clone() });
        let share = (1..=TOKENS).map(|seen| 1.0 / (1 + seen) as f64).sum::<f64>() / TOKENS as f64;
        let found = sunk.sink_mass.unwrap();
        assert!((found - share).abs() < 1e-7, "{found} against {share}");
        assert_eq!(sunk.first_mass, screened(&flat).first_mass, "the rest is shared as before");
        assert_eq!(sunk.share_ramp, None, "constant logits are of no form");
    }

    /// A bias moves the attention, is reported apart from the logits, and leaves no floor.
    #[test]
    fn a_position_bias_is_reported_apart() {
        for visibility in [Visibility::Causal, Visibility::Bidirectional] {
            let plain = probe(visibility);
            let alibi = HeadProbe { bias: Some(PositionBias::Linear(0.5)), ..plain.clone() };
            let values = (0..2 * TOKENS - 1).map(|at| -0.5 * at.abs_diff(TOKENS - 1) as f32);
            let table =
                HeadProbe { bias: Some(PositionBias::Table(values.collect())), ..plain.clone() };
            let [unbiased, slope, table] = [&plain, &alibi, &table].map(screened);
            assert_eq!((unbiased.bias_range, unbiased.actual), (None, slope.actual));
            assert_eq!(slope.bias_range, Some(0.5 * (TOKENS - 1) as f64));
            assert!(slope.mass_within_4 > unbiased.mass_within_4 + 0.05);
            assert_eq!(
                (slope.bias_range, slope.mass_within_4),
                (table.bias_range, table.mass_within_4)
            );
            assert_eq!(floors(&[&alibi], None, &[0.1, 0.01]).unwrap(), [None, None]);
        }
    }

    #[test]
    fn floors_are_those_of_the_fit_and_some_rows_are_those_it_holds() {
        let probe = probe(Visibility::Causal);
        for most in [None, Some(6)] {
            let (pair, epsilons) = ([&probe, &probe], [0.1, 0.01]);
            let found = HeadMeasurement::screened(&pair, most).unwrap();
            let head = TrainedHead::new(&pair, most).unwrap();
            assert_eq!(found.rows, head.rows());
            let floor = Floor::new(&head.problem);
            let floors = epsilons.map(|epsilon| floor.max_abs_logit(epsilon));
            assert_eq!(super::floors(&pair, most, &epsilons).unwrap(), floors);
            let own = crate::solver::Measured::of(&head.problem, &head.own).unwrap();
            assert!((own.max_abs_logit - found.actual).abs() < 1e-12);
            assert!((own.logit_spread - found.spread).abs() < 1e-12);
        }
    }

    #[test]
    fn as_many_are_fitted_as_are_large_and_no_more_than_asked_for() {
        let heads = || vec![3.0, 40.0, 25.0, 30.0, 50.0];
        for (above, most, fitted) in
            [(20.0, 16, 4), (20.0, 2, 2), (45.0, 2, 1), (0.0, 5, 5), (0.0, 0, 0)]
        {
            let above = fitted_above(heads(), above, most);
            assert_eq!(heads().into_iter().filter(|head| *head > above).count(), fitted);
        }
        assert_eq!(fitted_above(heads(), 20.0, 4), 20.0);
    }
}
