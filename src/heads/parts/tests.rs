//! The five factors of heads of small models: their order, their product, and what is refused.

use super::*;
use crate::heads::HeadMeasurement;
use crate::lm::{HeadProbe, Model, ModelShape, PositionBias, TrainDefinition};
use crate::solver::{Measured, SolverBudget};

fn untrained(settings: &str, deviation: f64) -> Model {
    let sizes = "layers=2 d_model=16 heads=2 window=7 context=40";
    let definition = TrainDefinition::default().with(sizes).with(settings);
    Model::new(ModelShape::new(&definition, 23), deviation, 3).unwrap()
}

fn passage(seed: u32) -> Vec<u32> {
    (0..40).map(|i| (i * i * 7 + i / 3 + seed * i) % 23).collect()
}

/// Every head of an untrained model on two passages, with at most `most` rows per passage, each with what it has without a
/// fit. The model's initial deviation keeps attention far from uniform.
fn heads_of(settings: &str, most: Option<usize>) -> Vec<(HeadMeasurement, TrainedHead)> {
    let model = untrained(settings, 0.5);
    let [first, second] = [0, 1].map(|seed| model.probe(&passage(seed)).unwrap());
    let head = |(a, b): (&HeadProbe, &HeadProbe)| {
        let screened = HeadMeasurement::screened(&[a, b], most).unwrap();
        (screened, TrainedHead::new(&[a, b], most).unwrap())
    };
    first.iter().zip(&second).map(head).collect()
}

fn options() -> SearchOptions {
    let fine = SolverBudget { iterations: 600, relative_decrease: 1e-4, ..Default::default() };
    SearchOptions {
        starts: 0,
        polished: 1,
        passes: 0,
        rough: fine,
        fine,
        ..SearchOptions::default()
    }
}

#[test]
fn a_head_s_own_weights_are_a_point_of_what_its_inputs_make() {
    for settings in [
        "arm=mhsa",
        "arm=ls positions=rope",
        "arm=ls positions=rope stabilisers=[\"qk-norm\"]",
        "arm=local-only stabilisers=[\"qk-norm\",\"sigma-reparam\"]",
    ] {
        for (_, head) in heads_of(settings, None) {
            let own = Measured::of(&head.problem, &head.own).unwrap();
            assert!(own.kl_nats.abs() < 1e-9, "{settings}: its own factors give its attention");
            let tied = head.tied.at(&head.point);
            let off = tied.queries() - head.own.queries();
            let off = off.iter().fold(0.0f64, |most, v| most.max(v.abs()));
            let tied = Measured::of(&head.problem, &tied).unwrap();
            assert!(off < 1e-4, "{settings}: queries off by {off}");
            assert!(tied.kl_nats.abs() < 1e-7, "{settings}: {}", tied.kl_nats);
        }
    }
}

#[test]
fn the_parts_multiply_to_what_is_and_none_is_under_its_least() {
    for (actual, head) in heads_of("arm=ls", None) {
        let mass_within = [actual.mass_within_1, actual.mass_within_16, actual.mass_within_64];
        assert!(mass_within.is_sorted() && actual.mass_within_64 < 1.0 + 1e-9);
        assert!(actual.effective_rank_logits <= head.rank() as f64 + 1e-9);
        for epsilon in [0.1, 0.001] {
            let parts = head.parts(epsilon, options()).unwrap();
            let [needed, tied] =
                [&parts.needed, &parts.needed_from_input].map(|f| f.max_abs_logit().unwrap());
            let floor = parts.floor.unwrap();
            let ascending = [floor, needed, tied, actual.actual * (1.0 + 1e-6)];
            assert!(ascending.is_sorted(), "{} at {epsilon}: {ascending:?}", head.kind);
            if floor > 0.0 {
                let product: f64 = actual.fitted(&parts, 0.0).parts().unwrap().iter().product();
                assert!((product / actual.actual - 1.0).abs() < 1e-12);
                for found in [&parts.needed, &parts.needed_from_input] {
                    let factors = &found.solution().unwrap().factors;
                    let again = Measured::of(&head.problem, factors).unwrap();
                    assert!(again.kl_nats <= epsilon);
                    assert_eq!(Some(again.max_abs_logit), found.max_abs_logit());
                }
            }
        }
    }
}

/// Compares early-stopped and thorough fits, free and shared, with and without RoPE. No search is sure to find the minimum,
/// and rounding can lead either to another minimum, some per cent away.
#[test]
fn sparing_fits_find_what_thorough_ones_do() {
    const OTHER_MINIMUM: f64 = 1.1;
    const ON_AVERAGE: f64 = 1.05;
    let epsilon = 0.01;
    let mut times = Vec::new();
    for positions in ["positions=learned", "positions=rope"] {
        for (_, head) in heads_of(positions, None).into_iter().take(2) {
            let TrainedHead { problem, own, tied, point, .. } = &head;
            let floor = Floor::new(problem).max_abs_logit(epsilon).unwrap();
            if floor == 0.0 {
                continue;
            }
            let fine = SolverBudget { iterations: 4000, relative_decrease: 1e-6, ..options().fine };
            let thorough = SearchOptions { fine, ..options() };
            let given = std::slice::from_ref(own);
            let free = needed_logit_from(problem, epsilon, given, thorough, &()).unwrap();
            let starts = std::slice::from_ref(point);
            let made = needed_logit_tied(problem, tied, starts, epsilon, thorough, &()).unwrap();
            let for_single = SearchOptions {
                precision: crate::solver::Precision::F32,
                fine: SolverBudget { iterations: 1500, ..options().fine },
                ..options()
            };
            let parts = head.parts(epsilon, for_single).unwrap();
            for (sparing, thorough) in [(&parts.needed, free), (&parts.needed_from_input, made)] {
                let least = thorough.best.unwrap().solution.max_abs_logit;
                let found = sparing.max_abs_logit().unwrap();
                let is_near = found <= OTHER_MINIMUM * least;
                assert!(is_near, "{positions}: {found} against {least}");
                times.push(found / least);
            }
        }
    }
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    assert!(times.len() >= 4 && mean <= ON_AVERAGE, "{times:?}");
}

/// A sample of rows is fitted, with the queries of these rows and all keys to which they may attend.
#[test]
fn a_sample_of_rows_needs_no_more_than_all_rows_do() {
    for settings in ["arm=ls", "positions=rope", "positions=rope stabilisers=[\"qk-norm\"]"] {
        let all = heads_of(settings, None);
        for ((actual_all, all), (actual, some)) in all.iter().zip(heads_of(settings, Some(10))) {
            assert_eq!((some.rows(), some.problem.rows(), some.problem.n()), (10, 20, 80));
            let own = Measured::of(&some.problem, &some.own).unwrap();
            assert!(own.kl_nats.abs() < 1e-9, "{settings}: {}", own.kl_nats);
            let tied = Measured::of(&some.problem, &some.tied.at(&some.point)).unwrap();
            assert!(tied.kl_nats.abs() < 1e-7, "{settings}: {}", tied.kl_nats);
            assert!(actual.actual <= actual_all.actual);
            assert_eq!(some.effective_rank_attention().unwrap(), None);
            let parts = some.parts(0.01, options()).unwrap();
            let whole = all.parts(0.01, options()).unwrap();
            let [needed, tied] =
                [&parts.needed, &parts.needed_from_input].map(|f| f.max_abs_logit().unwrap());
            let levels = [parts.floor.unwrap(), needed, tied, actual.actual];
            assert!(levels.is_sorted_by(|a, b| *a <= b * (1.0 + 1e-5)), "{settings}: {levels:?}");
            // The difference depends on the search; a sample of rows only bounds the needed logit from above.
            assert!(needed <= 1.05 * whole.needed.max_abs_logit().unwrap(), "{settings}");
            let certificate = &parts.needed.solution().unwrap().factors;
            assert!(Measured::of(&some.problem, certificate).unwrap().kl_nats <= 0.01);
        }
    }
}

#[test]
fn attention_that_is_uniform_needs_no_logits() {
    let probes = untrained("", 1e-4).probe(&[1, 5, 2, 9, 4, 4, 7]).unwrap();
    let head = TrainedHead::new(&[&probes[0]], None).unwrap();
    let actual = HeadMeasurement::screened(&[&probes[0]], None).unwrap();
    let parts = head.parts(0.01, options()).unwrap();
    assert_eq!((parts.floor, parts.needed.max_abs_logit()), (Some(0.0), Some(0.0)));
    let [floor, inflation, input_factor, excess_factor, shift_factor] =
        actual.fitted(&parts, 0.0).factors();
    assert_eq!((floor, inflation, input_factor, excess_factor), (Some(0.0), None, None, None));
    assert!(shift_factor.unwrap() >= 1.0 - 1e-12);
}

/// Attention after a softcap of 0.5 is not the softmax of the head's own logits. Its needed logits have no softcap, and
/// they are smaller.
#[test]
fn capped_attention_needs_logits_without_a_cap() {
    let probes = untrained("", 0.5).probe(&passage(0)).unwrap();
    let capped = HeadProbe { softcap: Some(0.5), ..probes[1].clone() };
    let head = TrainedHead::new(&[&capped], None).unwrap();
    let own = Measured::of(&head.problem, &head.own).unwrap();
    assert!(own.kl_nats > 0.01, "{}", own.kl_nats);
    let actual = HeadMeasurement::screened(&[&capped], None).unwrap();
    let parts = head.parts(0.01, options()).unwrap();
    let needed = parts.needed.max_abs_logit().unwrap();
    assert!(parts.floor.unwrap() <= needed && needed < actual.actual);
}

#[test]
fn heads_that_no_fit_can_be_held_against_are_refused() {
    let probes = untrained("", 0.5).probe(&[1, 2, 3]).unwrap();
    let biased = HeadProbe { bias: Some(PositionBias::Linear(0.1)), ..probes[1].clone() };
    let Err(error) = TrainedHead::new(&[&biased], None) else { panic!("a bias was accepted") };
    assert!(error.to_string().starts_with("layer 0, head 1 has"), "{error}");
    let mut probe = probes[0].clone();
    probe.keys[[1, 0]] = f32::NAN;
    let Err(error) = TrainedHead::new(&[&probe], None) else { panic!("NaN was accepted") };
    assert!(error.to_string().contains("NaN"), "{error}");
    assert!(matches!(TrainedHead::new(&[], None), Err(PredictError::NoPassage)));
}
