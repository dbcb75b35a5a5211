use ndarray_linalg::SVD;

use super::*;
use crate::heads::positions::tests::{head, random};

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn a_uniform_head_is_spread_over_all_that_it_sees() {
    let (n, window) = (64, 8);
    let found = ConcentrationMeasurement::of_uniform(n, window).unwrap();
    // Rows 32 to 63 may attend to 33 to 64 columns, of which 24 to 55 are far.
    assert_eq!((found.columns, found.far_columns), (48.5, 39.5));
    assert!(near(found.effective_tokens, 48.5));
    let mean = |value: &dyn Fn(f64) -> f64| (33..=64).map(|m| value(m as f64)).sum::<f64>() / 32.0;
    assert!(near(found.tokens_90, mean(&|m| (0.9 * m).ceil())));
    for (top, k) in [found.top_4, found.top_16, found.top_64].into_iter().zip(TOP) {
        assert!(near(top, mean(&|m| (k as f64 / m).min(1.0))), "{k}");
    }
    assert!(near(found.sink_mass, mean(&|m| 1.0 / m)));
    assert!(near(found.far_mass, mean(&|m| (m - 9.0) / m)));
    let far = found.far.unwrap();
    assert!(near(far.far_effective_tokens, 39.5));
    assert!(near(far.far_top_4, mean(&|m| 4.0 / (m - 9.0))));
    // Shuffling equal entries changes nothing.
    let shuffled = [far.shuffled_rank_90, far.shuffled_rank_99, far.shuffled_stable_rank];
    assert_eq!(shuffled, [far.far_rank_90, far.far_rank_99, far.far_stable_rank]);
    // The mean of prefixes of a to 1 leaves (1 − a)/6 of (1 + a)/2: 0.13 at a = 24/55.
    assert_eq!(far.far_rank_90, 2.0);
    assert!(far.far_rank_99 > 2.0 && far.far_rank_99 < 12.0, "{far:?}");
}

/// A head with logits of 0 equals uniform attention; measurements of two passages are the mean of both.
#[test]
fn a_head_is_measured_as_its_attention_is() {
    let n = 40;
    let nothing = || Array2::zeros((n, 3));
    let flat = head(nothing(), nothing(), HeadKind::Global);
    let found = ConcentrationMeasurement::measure(&[&flat, &flat], 0, 5, 1).unwrap();
    let uniform = ConcentrationMeasurement::of_uniform(n, 5).unwrap();
    assert_eq!((found.layer, found.head, found.rank), (1, 2, 3));
    assert!(near(found.effective_tokens, uniform.effective_tokens));
    assert!(near(found.far_mass, uniform.far_mass));
    assert_eq!(found.far.unwrap().far_rank_99, uniform.far.unwrap().far_rank_99);

    let probes = random(n, HeadKind::Global, 3);
    let both = ConcentrationMeasurement::measure(&probes.each_ref(), 0, 5, 1).unwrap();
    let each = probes
        .each_ref()
        .map(|probe| ConcentrationMeasurement::measure(&[probe], 0, 5, 1).unwrap());
    let mean =
        |value: fn(&ConcentrationMeasurement) -> f64| 0.5 * (value(&each[0]) + value(&each[1]));
    for value in [
        |c: &ConcentrationMeasurement| c.far_mass,
        |c: &ConcentrationMeasurement| c.sink_mass,
        |c: &ConcentrationMeasurement| c.effective_tokens,
        |c: &ConcentrationMeasurement| c.far.as_ref().unwrap().far_top_16,
        |c: &ConcentrationMeasurement| c.far.as_ref().unwrap().far_stable_rank,
    ] {
        assert!(near(value(&both), mean(value)));
    }
    // The far part computed independently from the whole matrix.
    let (p, far) = (probes[0].attention(), |row: usize| 1..row - 4);
    let far_mass = (20..n).map(|row| p.slice(s![row, far(row)]).sum()).sum::<f64>() / 20.0;
    assert!(near(each[0].far_mass, far_mass));
    let mut kept = Array2::zeros((20, n));
    for row in 20..n {
        kept.slice_mut(s![row - 20, far(row)]).assign(&p.slice(s![row, far(row)]));
    }
    let sigma = kept.svd(false, false).unwrap().1;
    let energy: f64 = sigma.iter().map(|v| v * v).sum();
    let left = |rank: usize| sigma.iter().skip(rank).map(|v| v * v).sum::<f64>();
    let rank_90 = (0..=20).find(|&rank| left(rank) <= 0.1 * energy).unwrap();
    let rank_99 = (0..=20).find(|&rank| left(rank) <= 0.01 * energy).unwrap();
    let far = each[0].far.as_ref().unwrap();
    assert_eq!((far.far_rank_90, far.far_rank_99), (rank_90 as f64, rank_99 as f64));
    assert!(near(far.far_stable_rank, energy / (sigma[0] * sigma[0])));
}

/// One token per row: if all rows share it the rank is one, if each row has its own the rank is full. So sparsity and rank are
/// independent.
#[test]
fn one_hot_rows_are_sparse_whatever_their_rank() {
    let (n, window) = (32, 4);
    let rows = n - held_from(n, window);
    let one_hot = |column: &dyn Fn(usize) -> usize| {
        let mut p = Array2::zeros((rows, n));
        (0..rows).for_each(|at| p[[at, column(at)]] = 1.0);
        ConcentrationMeasurement::of_rows(&[p], HeadKind::Global, window, 7).unwrap()
    };
    let (shared, own) = (one_hot(&|_| 3), one_hot(&|at| 1 + at % 12));
    for found in [&shared, &own] {
        let far = found.far.as_ref().unwrap();
        assert!(near(far.far_effective_tokens, 1.0) && near(far.far_tokens_90, 1.0));
        assert!(near(far.far_top_4, 1.0) && near(found.far_mass, 1.0));
        assert_eq!(found.sink_mass, 0.0);
    }
    let [shared, own] = [shared, own].map(|found| found.far.unwrap());
    assert_eq!(shared.far_rank_99, 1.0);
    // 16 rows on 12 columns: four columns occur twice.
    assert_eq!(own.far_rank_99, 12.0);
    assert!(near(own.far_stable_rank, 8.0), "{own:?}");
    // With σ² = 2 four times and 1 eight times, the remainder may be 1.6.
    assert_eq!(own.far_rank_90, 11.0);
    // A random order of the entries destroys rank one.
    assert!(shared.shuffled_rank_90 > 5.0, "{shared:?}");
}

#[test]
fn blocks_of_equal_rows_have_as_many_dimensions_as_there_are_blocks() {
    let (n, window) = (48, 4);
    let first = held_from(n, window);
    for blocks in [1, 2, 3, 6] {
        let p = Array2::from_shape_fn((n - first, n), |(at, j)| {
            let block = at * blocks / (n - first);
            if j >= 1 && (j - 1) / 3 == block { 1.0 / 3.0 } else { 0.0 }
        });
        let found = ConcentrationMeasurement::of_rows(&[p], HeadKind::Global, window, 0).unwrap();
        let ConcentrationMeasurement { rank_90, rank_99, stable_rank, .. } = found;
        assert_eq!((rank_90, rank_99), (blocks as f64, blocks as f64));
        assert!(near(stable_rank, blocks as f64));
        assert!(near(found.effective_tokens, 3.0));
        let far = found.far.unwrap();
        let of_far = [far.far_rank_90, far.far_rank_99, far.far_stable_rank];
        assert_eq!(of_far, [rank_90, rank_99, stable_rank]);
    }
}

#[test]
fn a_local_head_has_no_far_part() {
    let probes = random(40, HeadKind::Local { window: 6 }, 2);
    let found = ConcentrationMeasurement::measure(&probes.each_ref(), 0, 6, 0).unwrap();
    assert_eq!((found.columns, found.far_columns), (6.0, 0.0));
    assert_eq!((found.far_mass, &found.far), (0.0, &None));
    assert!(found.effective_tokens <= 6.0 && found.top_16 == 1.0, "{found:?}");
}

#[test]
fn heads_without_a_row_to_hold_are_refused() {
    let [probe, _] = random(8, HeadKind::Global, 1);
    assert_eq!(held_from(8, 5), 7);
    assert!(ConcentrationMeasurement::measure(&[&probe], 0, 5, 0).is_ok());
    let error = ConcentrationMeasurement::measure(&[&probe], 0, 6, 0).unwrap_err().to_string();
    assert!(error.contains("a window of 6"), "{error}");
    let both_ways = HeadProbe { visibility: Visibility::Bidirectional, ..probe.clone() };
    assert!(matches!(
        ConcentrationMeasurement::measure(&[&both_ways], 0, 2, 0),
        Err(PredictError::NotCausal { layer: 1, head: 2 })
    ));
    let mut broken = probe;
    broken.keys[[1, 0]] = f32::NAN;
    assert!(matches!(
        ConcentrationMeasurement::measure(&[&broken], 0, 2, 0),
        Err(PredictError::NotFinite { .. })
    ));
    assert!(matches!(
        ConcentrationMeasurement::measure(&[], 0, 2, 0),
        Err(PredictError::NoPassage)
    ));
}
