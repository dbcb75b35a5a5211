//! Tests of the tables of heads, on synthetic heads.

use crate::experiments::heads::tables::head_parts::{HeadParts, WiderHead};
use crate::experiments::heads::tables::heads::TrainedHeads;

/// A head with the given factors and entropy of attention.
pub(crate) fn head(
    (arm, seed, step, head): (&str, usize, usize, usize),
    [floor, inflation, tying, drift, gauge]: [f64; 5],
    entropy_nats: f64,
) -> HeadParts {
    let tied = floor * inflation * tying;
    HeadParts {
        of: "runs".to_owned(),
        run: format!("{arm}-64"),
        arm: arm.to_owned(),
        seed,
        step,
        head,
        n: 64,
        rank: 8,
        epsilon: 0.01,
        actual: tied * drift * gauge,
        spread: 2.0 * tied * drift,
        needed: Some(floor * inflation),
        needed_tied: Some(tied),
        floor: Some(floor),
        entropy_nats,
        ..HeadParts::default()
    }
}

#[test]
fn parts_multiply_to_the_actual_and_an_unknown_one_leaves_none() {
    let one = head(("mhsa", 0, 10, 0), [2.0, 1.5, 3.0, 1.2, 1.1], 1.0);
    let parts = one.parts().unwrap();
    assert!((parts.iter().product::<f64>() / one.actual - 1.0).abs() < 1e-12);
    assert!((parts[2] - 3.0).abs() < 1e-12);
    assert_eq!(HeadParts { needed: None, ..one.clone() }.parts(), None);
    assert_eq!(HeadParts { floor: Some(0.0), ..one }.parts(), None);
}

#[test]
fn growth_is_that_of_the_largest_head_and_adds_up() {
    let heads = vec![
        head(("mhsa", 0, 10, 0), [2.0, 1.0, 1.0, 1.0, 1.0], 1.0),
        head(("mhsa", 0, 10, 1), [3.0, 1.0, 1.0, 1.0, 1.0], 1.0),
        head(("mhsa", 0, 20, 0), [3.0, 1.0, 4.0, 2.0, 1.0], 1.0),
        head(("mhsa", 0, 20, 1), [3.0, 1.0, 1.0, 1.0, 1.0], 1.0),
    ];
    let study = TrainedHeads { heads, failed: 0 };
    let growth = study.growth();
    assert_eq!(growth.len(), 1);
    let one = &growth[0];
    assert_eq!(one.steps, (10, 20));
    assert!((one.growth - 8f64.ln()).abs() < 1e-12);
    assert!((one.by_part.iter().sum::<f64>() - one.growth).abs() < 1e-12);
    assert!((one.by_part[2] - 4f64.ln()).abs() < 1e-12 && one.by_part[1].abs() < 1e-12);
    let tables = study.tables();
    assert_eq!(tables.len(), 3);
}

#[test]
fn a_wider_head_is_held_against_itself_at_its_own_rank() {
    let own = head(("mhsa", 0, 20, 1), [2.0, 1.0, 8.0, 1.0, 1.0], 1.0);
    let own = HeadParts { needed_any_rank: Some(4.0), ..own };
    let wider = HeadParts { rank: 64, needed_tied: Some(8.0), ..own.clone() };
    let smaller = head(("mhsa", 0, 20, 0), [2.0, 1.0, 4.0, 1.0, 1.0], 1.0);
    let smaller_wider = HeadParts { rank: 64, ..smaller.clone() };
    let heads = vec![smaller, smaller_wider, own.clone(), wider.clone()];
    let study = TrainedHeads { heads, failed: 0 };
    let found = study.wider();
    assert_eq!(found, [WiderHead { own: &own, wider: &wider }]);
    // The larger rank removes a factor of 2 of a tying of 8, a third of its logarithm.
    assert!((found[0].share_of_tying().unwrap() - 1.0 / 3.0).abs() < 1e-12);
    assert!((own.share_of_tying_by_rank().unwrap() - 2.0 / 3.0).abs() < 1e-12);
    let untied = HeadParts { needed_tied: own.needed, ..own.clone() };
    assert_eq!(WiderHead { own: &untied, wider: &wider }.share_of_tying(), None);
    assert!(study.ranks_table().to_csv().lines().nth(1).unwrap().starts_with("mhsa-64,64,"));
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
    let study = TrainedHeads { heads: heads.collect(), failed: 0 };
    let orderings = study.orderings();
    let by = |name| orderings.iter().find(|o| o.by == name).map(|o| o.correlation);
    let needed = by("needed").unwrap();
    assert_eq!((needed.groups, needed.points), (2, 16));
    assert!((needed.rho - 1.0).abs() < 1e-12);
    assert!((by("low entropy").unwrap().rho - 1.0).abs() < 1e-12);
    assert_eq!(by("inflation"), None, "all alike");
    assert_eq!(by("needed, given entropy"), None, "nothing is left over");
}
