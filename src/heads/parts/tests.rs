//! The five factors of heads of small models: their order, their product, and what is refused.

use super::*;
use crate::heads::HeadMeasurement;
use crate::lm::{
    HeadProbe, Model, ModelShape, PositionBias, Positions, PretrainedModel, Probed as _, Published,
    Stabiliser, TrainDefinition,
};
use crate::solver::{Measured, SolverBudget};
use crate::targets::Visibility;

/// Every head of an untrained model on two passages. Its initial deviation keeps attention far from uniform.
fn heads(definition: &TrainDefinition) -> Vec<TrainedHead> {
    heads_of(definition, None).into_iter().map(|(_, head)| head).collect()
}

/// As [`heads`] with at most `most` rows per passage, each head with what it has without a fit.
fn heads_of(
    definition: &TrainDefinition,
    most: Option<usize>,
) -> Vec<(HeadMeasurement, TrainedHead)> {
    let model = Model::new(ModelShape::new(definition, 23), 0.5, 3).unwrap();
    let passage = |seed: u32| -> Vec<HeadProbe> {
        let tokens: Vec<u32> = (0..40).map(|i| (i * i * 7 + i / 3 + seed * i) % 23).collect();
        model.probe(&tokens).unwrap()
    };
    let [first, second] = [passage(0), passage(1)];
    let pairs = first.iter().zip(&second);
    let head = |(a, b): (&HeadProbe, &HeadProbe)| {
        let screened = HeadMeasurement::screened(&[a, b], most).unwrap();
        (screened, TrainedHead::new(&[a, b], most).unwrap())
    };
    pairs.map(head).collect()
}

fn definition(arm: &str, positions: Positions, stabilisers: &[Stabiliser]) -> TrainDefinition {
    let mut definition = TrainDefinition {
        layers: 2,
        d_model: 16,
        heads: 2,
        window: 7,
        context: 40,
        positions,
        stabilisers: stabilisers.to_vec(),
        ..TrainDefinition::default()
    };
    definition.set("arm", arm).unwrap();
    definition
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
    use Stabiliser::{QkNorm, SigmaReparam};
    for (arm, positions, stabilisers) in [
        ("mhsa", Positions::Learned, &[][..]),
        ("ls", Positions::Rope, &[]),
        ("ls", Positions::Rope, &[QkNorm]),
        ("local-only", Positions::Learned, &[QkNorm, SigmaReparam]),
    ] {
        for head in heads(&definition(arm, positions, stabilisers)) {
            let own = Measured::of(&head.problem, &head.own).unwrap();
            assert!(own.kl_nats.abs() < 1e-9, "{arm}: its own factors give its attention");
            let tied = head.tied.at(&head.point);
            let off = tied.queries() - head.own.queries();
            let off = off.iter().fold(0.0f64, |most, v| most.max(v.abs()));
            let tied = Measured::of(&head.problem, &tied).unwrap();
            assert!(off < 1e-4, "{arm} {positions:?} {stabilisers:?}: queries off by {off}");
            assert!(tied.kl_nats.abs() < 1e-7, "{arm}: {}", tied.kl_nats);
        }
    }
}

#[test]
fn a_published_encoder_s_heads_are_bidirectional_problems_that_their_own_weights_solve() {
    let folder = tempfile::tempdir().unwrap();
    Published::bert().write(folder.path(), safetensors::Dtype::F32);
    let model = PretrainedModel::read(folder.path()).unwrap();
    let [first, second] = [[3, 16, 0, 7, 7, 11, 2, 5], [1, 9, 4, 4, 12, 0, 3, 8]]
        .map(|tokens| model.probe(&tokens).unwrap());
    for (a, b) in first.iter().zip(&second) {
        let head = TrainedHead::new(&[a, b], None).unwrap();
        assert_eq!(head.problem.target().visibility(), Visibility::Bidirectional);
        let own = Measured::of(&head.problem, &head.own).unwrap();
        assert!(own.kl_nats.abs() < 1e-9, "its own factors: {}", own.kl_nats);
        let tied = Measured::of(&head.problem, &head.tied.at(&head.point)).unwrap();
        assert!(tied.kl_nats.abs() < 1e-7, "its own weights: {}", tied.kl_nats);
    }
}

#[test]
fn the_parts_multiply_to_what_is_and_none_is_under_its_least() {
    for (actual, head) in heads_of(&definition("ls", Positions::Learned, &[]), None) {
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
    for positions in [Positions::Learned, Positions::Rope] {
        let definition = definition("mhsa", positions, &[]);
        for (_, head) in heads_of(&definition, None).into_iter().take(2) {
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
                assert!(is_near, "{positions:?}: {found} against {least}");
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
    use Stabiliser::QkNorm;
    for (arm, positions, stabilisers) in [
        ("ls", Positions::Learned, &[][..]),
        ("mhsa", Positions::Rope, &[]),
        ("mhsa", Positions::Rope, &[QkNorm]),
    ] {
        let definition = definition(arm, positions, stabilisers);
        let all = heads_of(&definition, None);
        for ((actual_all, all), (actual, some)) in all.iter().zip(heads_of(&definition, Some(10))) {
            assert_eq!((some.rows(), some.problem.rows(), some.problem.n()), (10, 20, 80));
            let own = Measured::of(&some.problem, &some.own).unwrap();
            assert!(own.kl_nats.abs() < 1e-9, "{arm} {positions:?}: {}", own.kl_nats);
            let tied = Measured::of(&some.problem, &some.tied.at(&some.point)).unwrap();
            assert!(tied.kl_nats.abs() < 1e-7, "{arm} {positions:?}: {}", tied.kl_nats);
            assert!(actual.actual <= actual_all.actual);
            assert_eq!(some.effective_rank_attention().unwrap(), None);
            let parts = some.parts(0.01, options()).unwrap();
            let whole = all.parts(0.01, options()).unwrap();
            let [needed, tied] =
                [&parts.needed, &parts.needed_from_input].map(|f| f.max_abs_logit().unwrap());
            let levels = [parts.floor.unwrap(), needed, tied, actual.actual];
            assert!(levels.is_sorted_by(|a, b| *a <= b * (1.0 + 1e-5)), "{arm}: {levels:?}");
            // The difference depends on the search; a sample of rows only bounds the needed logit from above.
            assert!(needed <= 1.05 * whole.needed.max_abs_logit().unwrap(), "{arm}");
            let certificate = &parts.needed.solution().unwrap().factors;
            assert!(Measured::of(&some.problem, certificate).unwrap().kl_nats <= 0.01);
        }
    }
}

#[test]
fn attention_that_is_uniform_needs_no_logits() {
    let model =
        Model::new(ModelShape::new(&definition("mhsa", Positions::Learned, &[]), 23), 1e-4, 3);
    let probes = model.unwrap().probe(&[1, 5, 2, 9, 4, 4, 7]).unwrap();
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
    let model =
        Model::new(ModelShape::new(&definition("mhsa", Positions::Learned, &[]), 23), 0.5, 3);
    let tokens: Vec<u32> = (0..40).map(|i| (i * i * 7 + i / 3) % 23).collect();
    let probes = model.unwrap().probe(&tokens).unwrap();
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
    let plain = definition("mhsa", Positions::Learned, &[]);
    let model = Model::new(ModelShape::new(&plain, 23), 0.5, 3).unwrap();
    let probes = model.probe(&[1, 2, 3]).unwrap();
    let biased = HeadProbe { bias: Some(PositionBias::Linear(0.1)), ..probes[1].clone() };
    let Err(error) = TrainedHead::new(&[&biased], None) else { panic!("a bias was accepted") };
    assert!(error.to_string().starts_with("layer 0, head 1 has"), "{error}");
    let mut probe = probes[0].clone();
    probe.keys[[1, 0]] = f32::NAN;
    let Err(error) = TrainedHead::new(&[&probe], None) else { panic!("NaN was accepted") };
    assert!(error.to_string().contains("NaN"), "{error}");
    assert!(matches!(TrainedHead::new(&[], None), Err(PredictError::NoPassage)));
}
