//! Tests of the tables of heads, on synthetic heads.

use crate::experiments::heads::tables::heads::{HeadRow, TrainedHeads};
use crate::experiments::heads::{HeadKey, HeadMeasurement};
use crate::experiments::model_key::ModelKey;

/// A head with the given factors and entropy of attention.
pub(crate) fn head(
    (arm, seed, step, head): (&str, u64, usize, usize),
    [floor, inflation, input_factor, excess_factor, shift_factor]: [f64; 5],
    entropy_nats: f64,
) -> HeadRow {
    let tied = floor * inflation * input_factor;
    let model = ModelKey {
        of: Some("runs".to_owned()),
        seed: Some(seed),
        ..ModelKey::of_published(&format!("{arm}-64"), arm, None, [1, 16, 64], Some(step))
    };
    HeadRow {
        study: "predictions".to_owned(),
        cell: String::new(),
        of: HeadKey { model, layer: 0 },
        found: HeadMeasurement {
            head,
            n: 64,
            rank: 8,
            epsilon: 0.01,
            actual: tied * excess_factor * shift_factor,
            spread: 2.0 * tied * excess_factor,
            needed: Some(floor * inflation),
            needed_from_input: Some(tied),
            floor: Some(floor),
            entropy_nats,
            ..HeadMeasurement::default()
        },
        settings: String::new(),
    }
}

/// A study of these heads.
pub(crate) fn study(heads: impl IntoIterator<Item = HeadRow>) -> TrainedHeads {
    TrainedHeads { heads: heads.into_iter().collect(), failed: 0 }
}

#[test]
fn parts_multiply_to_the_actual_and_an_unknown_one_leaves_none() {
    let one = head(("mhsa", 0, 10, 0), [2.0, 1.5, 3.0, 1.2, 1.1], 1.0).found;
    let parts = one.parts().unwrap();
    assert!((parts.iter().product::<f64>() / one.actual - 1.0).abs() < 1e-12);
    assert!((parts[2] - 3.0).abs() < 1e-12);
    assert_eq!(HeadMeasurement { needed: None, ..one.clone() }.parts(), None);
    assert_eq!(HeadMeasurement { floor: Some(0.0), ..one }.parts(), None);
}

#[test]
fn growth_is_that_of_the_largest_head_and_adds_up() {
    let heads = [
        head(("mhsa", 0, 10, 0), [2.0, 1.0, 1.0, 1.0, 1.0], 1.0),
        head(("mhsa", 0, 10, 1), [3.0, 1.0, 1.0, 1.0, 1.0], 1.0),
        head(("mhsa", 0, 20, 0), [3.0, 1.0, 4.0, 2.0, 1.0], 1.0),
        head(("mhsa", 0, 20, 1), [3.0, 1.0, 1.0, 1.0, 1.0], 1.0),
    ];
    let study = study(heads);
    let [one] = &study.growth()[..] else { panic!("one model") };
    assert!((one.growth - 8f64.ln()).abs() < 1e-12);
    assert!((one.by_part.iter().sum::<f64>() - one.growth).abs() < 1e-12);
    assert!((one.by_part[2] - 4f64.ln()).abs() < 1e-12 && one.by_part[1].abs() < 1e-12);
}

#[test]
fn an_ordering_is_within_a_model_and_of_its_last_step() {
    // Needed logits order the heads within each model, but not over both.
    let heads = (0..8).flat_map(|at| {
        let size = 1.0 + at as f64;
        [
            head(("mhsa", 0, 20, at), [size, 1.0, 1.0, 2.0, 1.0], 3.0 - size / 10.0),
            head(("mhsa", 1, 20, at), [10.0 * size, 1.0, 1.0, 0.1, 1.0], 3.0 - size / 10.0),
            head(("mhsa", 1, 10, at), [10.0 - size, 1.0, 1.0, size, 1.0], 3.0),
        ]
    });
    let study = study(heads);
    let orderings = study.orderings();
    let by = |name| orderings.iter().find(|o| o.by == name).map(|o| o.correlation);
    let needed = by("needed").unwrap();
    assert_eq!((needed.groups, needed.points), (2, 16));
    assert!((needed.rho - 1.0).abs() < 1e-12);
    assert!((by("low entropy").unwrap().rho - 1.0).abs() < 1e-12);
    assert_eq!(by("inflation"), None, "all alike");
    assert_eq!(by("needed, given entropy"), None, "nothing is left over");
}
