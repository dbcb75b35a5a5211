//! Every family, at random sizes, parameters and seeds, holds what its definition says.

use ndarray::Axis;
use proptest::prelude::*;
use rank_study::targets::{Family, Parameters, Target, Visibility};

const CAUSAL: Visibility = Visibility::Causal;

fn plain_family() -> impl Strategy<Value = Family> {
    prop_oneof![
        (1usize..40).prop_map(|window| Family::UniformBand { window }),
        (1usize..40, 0.01..50.0f64).prop_map(|(window, tau)| Family::DecayBand { window, tau }),
        (1usize..40, 1e-6..20.0f64)
            .prop_map(|(window, alpha)| Family::DirichletBand { window, alpha }),
        (1usize..40, 0.01..50.0f64)
            .prop_map(|(window, sigma)| Family::LognormalBand { window, sigma }),
        (1usize..40).prop_map(|k| Family::PreviousToken { k }),
        Just(Family::Landmark { m: 1 }),
        (1usize..40).prop_map(|k| Family::RandomSparse { k }),
        (1usize..40).prop_map(|c| Family::Clustered { c }),
        (1usize..40).prop_map(|vocabulary| Family::Induction { vocabulary }),
        Just(Family::Prefix),
    ]
}

fn family() -> impl Strategy<Value = Family> {
    let global = prop_oneof![
        (1usize..20).prop_map(|k| Family::RandomSparse { k }),
        (1usize..20).prop_map(|c| Family::Clustered { c }),
        (1usize..20).prop_map(|vocabulary| Family::Induction { vocabulary }),
    ];
    let mixture =
        (0.05..0.95f64, 1usize..20, global).prop_map(|(lambda, window, global)| Family::Mixture {
            lambda,
            local: Box::new(Family::DirichletBand { window, alpha: 1.0 }),
            global: Box::new(global),
        });
    prop_oneof![4 => plain_family(), 1 => mixture]
}

fn entries(target: &Target, row: usize) -> Vec<(usize, f64)> {
    let (columns, probabilities) = target.row(row);
    columns.iter().map(|&column| column as usize).zip(probabilities.iter().copied()).collect()
}

fn all_entries(target: &Target) -> Vec<Vec<(usize, f64)>> {
    (0..target.n()).map(|row| entries(target, row)).collect()
}

/// The diagonal, sorted.
fn diagonal(target: &Target) -> Vec<f64> {
    sorted(target.dense().diag().to_vec())
}

/// The row sums of the elementwise product A ∘ A, times the column sums of A, sorted.
fn products(target: &Target) -> Vec<f64> {
    let a = target.dense();
    sorted((a.mapv(|p| p * p).sum_axis(Axis(1)) * a.sum_axis(Axis(0))).to_vec())
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The columns in which a row has weight.
fn columns(target: &Target, row: usize) -> Vec<usize> {
    entries(target, row).iter().map(|entry| entry.0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_are_distributions_over_earlier_tokens(family in family(), n in 1usize..70, seed: u64) {
        let target = family.build(n, seed, CAUSAL).unwrap();
        for row in 0..n {
            let entries = entries(&target, row);
            let sum: f64 = entries.iter().map(|&(_, p)| p).sum();
            prop_assert!((sum - 1.0).abs() < 1e-12, "row {row} sums to {sum}");
            prop_assert!(entries.iter().all(|&(column, p)| column <= row && p > 0.0));
            prop_assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0), "columns repeat");
        }
    }

    #[test]
    fn the_seed_decides(family in family(), n in 1usize..70, seed: u64) {
        let target = family.build(n, seed, CAUSAL).unwrap();
        prop_assert_eq!(&target, &family.build(n, seed, CAUSAL).unwrap());
        if matches!(family.name(), "uniform-band" | "decay-band" | "previous-token" | "prefix") {
            prop_assert_eq!(&target, &family.build(n, seed ^ 1, CAUSAL).unwrap());
        }
        let other = family.build(n, seed, Visibility::Bidirectional).unwrap();
        prop_assert_eq!(all_entries(&target), all_entries(&other));
    }

    #[test]
    fn a_row_does_not_depend_on_how_many_follow(
        size in 1usize..20, n in 1usize..50, more in 1usize..20, seed: u64
    ) {
        for family in [
            Family::DirichletBand { window: size, alpha: 0.5 },
            Family::Clustered { c: size },
            Family::Induction { vocabulary: size },
        ] {
            let short = family.build(n, seed, CAUSAL).unwrap();
            let long = family.build(n + more, seed, CAUSAL).unwrap();
            prop_assert_eq!(all_entries(&short), all_entries(&long)[..n].to_vec());
        }
    }

    #[test]
    fn bands_reach_their_window_and_no_farther(window in 1usize..40, n in 1usize..70, seed: u64) {
        for family in [
            Family::UniformBand { window },
            Family::DecayBand { window, tau: window as f64 },
            Family::DirichletBand { window, alpha: 1.0 },
            Family::LognormalBand { window, sigma: 1.0 },
        ] {
            let target = family.build(n, seed, CAUSAL).unwrap();
            for row in 0..n {
                let first = (row + 1).saturating_sub(window);
                prop_assert_eq!(columns(&target, row), (first..=row).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn sparse_rows_have_as_many_columns_as_asked(k in 1usize..40, n in 1usize..70, seed: u64) {
        let target = Family::RandomSparse { k }.build(n, seed, CAUSAL).unwrap();
        for row in 0..n {
            prop_assert_eq!(entries(&target, row).len(), k.min(row + 1));
        }
        let target = Family::PreviousToken { k }.build(n, seed, CAUSAL).unwrap();
        for row in 0..n {
            prop_assert_eq!(entries(&target, row), vec![(row.saturating_sub(k), 1.0)]);
        }
    }

    #[test]
    fn landmarks_are_shared_by_every_row(n in 1usize..70, fraction in 0.0..1.0f64, seed: u64) {
        let m = 1 + ((n - 1) as f64 * fraction) as usize;
        let target = Family::Landmark { m }.build(n, seed, CAUSAL).unwrap();
        let landmarks = columns(&target, n - 1);
        prop_assert!(landmarks.len() <= m && landmarks[0] == 0);
        for row in 0..n {
            let seen: Vec<usize> = landmarks.iter().copied().filter(|&c| c <= row).collect();
            prop_assert_eq!(columns(&target, row), seen);
        }
    }

    #[test]
    fn clusters_divide_the_tokens(c in 1usize..40, n in 1usize..70, seed: u64) {
        let target = Family::Clustered { c }.build(n, seed, CAUSAL).unwrap();
        let mut clusters: Vec<Vec<usize>> = Vec::new();
        for row in 0..n {
            let columns = columns(&target, row);
            let earlier = &columns[..columns.len() - 1];
            // A row's columns are all that its cluster had before it, and itself.
            match clusters.iter_mut().find(|cluster| cluster.as_slice() == earlier) {
                Some(cluster) if !earlier.is_empty() => cluster.push(row),
                _ => clusters.push(vec![row]),
            }
            prop_assert_eq!(columns.last(), Some(&row));
            prop_assert!(clusters.contains(&columns), "row {row}");
            for (_, p) in entries(&target, row) {
                let difference = (p - 1.0 / columns.len() as f64).abs();
                prop_assert!(difference < 1e-15, "row {row}: off by {difference}");
            }
        }
        prop_assert!(clusters.len() <= c, "{} clusters", clusters.len());
    }

    #[test]
    fn induction_copies_no_place_twice(vocabulary in 1usize..40, n in 1usize..70, seed: u64) {
        let target = Family::Induction { vocabulary }.build(n, seed, CAUSAL).unwrap();
        let mut copied = vec![false; n];
        for row in 0..n {
            let entries = entries(&target, row);
            prop_assert_eq!(entries.len(), 1);
            let column = entries[0].0;
            prop_assert!(vocabulary > 1 || column == row, "row {row} copies {column}");
            if column < row {
                prop_assert!(!std::mem::replace(&mut copied[column], true), "{column} twice");
            }
        }
    }

    #[test]
    fn a_mixture_is_the_combination_of_its_parts(
        lambda in 0.01..0.99f64, window in 1usize..20, k in 1usize..20, n in 1usize..60, seed: u64
    ) {
        let local = Family::DirichletBand { window, alpha: 1.0 };
        let global = Family::RandomSparse { k };
        let parts = [local.build(n, seed, CAUSAL).unwrap(), global.build(n, seed, CAUSAL).unwrap()];
        let mixture =
            Family::Mixture { lambda, local: Box::new(local), global: Box::new(global) };
        let mixture = mixture.build(n, seed, CAUSAL).unwrap();
        for row in 0..n {
            let mut expected = vec![0.0; n];
            for (part, weight) in parts.iter().zip([lambda, 1.0 - lambda]) {
                for (column, p) in entries(part, row) {
                    expected[column] += weight * p;
                }
            }
            for (column, p) in entries(&mixture, row) {
                let difference = (p - std::mem::take(&mut expected[column])).abs();
                prop_assert!(difference < 1e-15, "row {row}, column {column}: off by {difference}");
            }
            prop_assert!(expected.iter().all(|&left| left == 0.0), "row {row} lacks a column");
        }
    }

    #[test]
    fn a_permutation_moves_rows_and_columns_alike(window in 1usize..20, n in 1usize..60, seed: u64) {
        let family = Family::DirichletBand { window, alpha: 1.0 };
        let permuted = Family::Permuted { family: Box::new(family.clone()) };
        prop_assert!(permuted.build(n, seed, CAUSAL).is_err());
        let plain = family.build(n, seed, Visibility::Bidirectional).unwrap();
        let shuffled = permuted.build(n, seed, Visibility::Bidirectional).unwrap();
        // Both are unchanged by P A Pᵀ, and by no other shuffling of continuous draws.
        for (name, invariant) in
            [("diagonal", diagonal as fn(&Target) -> Vec<f64>), ("squares", products)]
        {
            let (plain, shuffled) = (invariant(&plain), invariant(&shuffled));
            let worst = plain.iter().zip(shuffled).fold(0.0, |w: f64, (a, b)| w.max((a - b).abs()));
            prop_assert!(worst < 1e-14, "{name} changed by {worst}");
        }
        prop_assert_eq!(shuffled.nonzeros(), plain.nonzeros());
    }

    #[test]
    fn a_family_reads_back_from_its_parameters(family in family()) {
        let read = Family::from_parameters(family.name(), &family.parameters()).unwrap();
        prop_assert_eq!(family, read);
    }
}

#[test]
fn different_seeds_give_different_targets() {
    let window = 8;
    for family in [
        Family::DirichletBand { window, alpha: 1.0 },
        Family::LognormalBand { window, sigma: 1.0 },
        Family::Landmark { m: 4 },
        Family::RandomSparse { k: 4 },
        Family::Clustered { c: 4 },
        Family::Induction { vocabulary: 4 },
        Family::Permuted { family: Box::new(Family::UniformBand { window }) },
    ] {
        let build = |seed| family.build(40, seed, Visibility::Bidirectional).unwrap();
        assert_ne!(build(1), build(2), "{family}");
    }
}

/// The mean over the second half of the rows, where few tokens are new.
fn late_mean(target: &Target, of_row: impl Fn(usize, &[u32]) -> f64) -> f64 {
    let late = target.n() / 2..target.n();
    let count = late.len() as f64;
    late.map(|row| of_row(row, target.row(row).0)).sum::<f64>() / count
}

#[test]
fn tokens_are_drawn_uniformly() {
    let (n, kinds) = (4000, 8);
    // A token comes again after a geometric number of places, of mean and deviation about 8: the
    // mean of 2,000 is off by 0.18 (one standard deviation).
    let target = Family::Induction { vocabulary: kinds }.build(n, 1, CAUSAL).unwrap();
    let back = late_mean(&target, |row, columns| (row - columns[0] as usize + 1) as f64);
    assert!((back - 8.0).abs() < 0.7, "tokens come again after {back}");
    let target = Family::Clustered { c: kinds }.build(n, 1, CAUSAL).unwrap();
    let share = late_mean(&target, |row, columns| columns.len() as f64 / (row + 1) as f64);
    assert!((share - 0.125).abs() < 0.01, "clusters have a share of {share}");
}

#[test]
fn decay_falls_by_e_over_tau() {
    let target = Family::DecayBand { window: 12, tau: 3.0 }.build(20, 0, CAUSAL).unwrap();
    let (_, p) = target.row(19);
    let error = (p[11] / p[8] - 1.0f64.exp()).abs();
    assert!(error < 1e-12, "off by {error}");
}

#[test]
fn defaults_are_filled_in_and_labelled() {
    let given = || Parameters { window: Some(32), ..Default::default() };
    let (of, local) = (Some("induction".to_owned()), Some("dirichlet-band".to_owned()));
    let (vocabulary, global, m) = (Some(9), Some("landmark".to_owned()), Some(4));
    for (name, parameters, label) in [
        ("dirichlet-band", given(), "(window=32,alpha=1)"),
        ("lognormal-band", given(), "(window=32,sigma=1)"),
        ("decay-band", given(), "(window=32,tau=8)"),
        ("prefix", Parameters::default(), ""),
        ("clustered", Parameters { c: Some(4), ..Default::default() }, "(c=4)"),
        (
            "permuted",
            Parameters { of, vocabulary, ..Default::default() },
            "(of=induction(vocabulary=9))",
        ),
        (
            "mixture",
            Parameters { m, local, global, ..given() },
            "(lambda=0.5,local=dirichlet-band(window=32,alpha=1),global=landmark(m=4))",
        ),
    ] {
        let family = Family::from_parameters(name, &parameters).unwrap();
        assert_eq!(family.label(), format!("{name}{label}"));
    }
}

#[test]
fn wrong_parameters_are_named_with_their_value() {
    let given = Parameters::default;
    let name = |name: &str| Some(name.to_owned());
    let (window, local) = (Some(8), name("prefix"));
    for (family, parameters, part) in [
        ("dirichlet-bnad", given(), "dirichlet-band"),
        ("uniform-band", given(), "needs window"),
        ("uniform-band", Parameters { window: Some(0), ..given() }, "window is 0"),
        ("uniform-band", Parameters { window, tau: Some(1.0), ..given() }, "tau is not"),
        ("prefix", Parameters { k: Some(1), ..given() }, "k is not"),
        ("decay-band", Parameters { window, tau: Some(-1.0), ..given() }, "tau is -1"),
        ("dirichlet-band", Parameters { window, alpha: Some(f64::NAN), ..given() }, "alpha is NaN"),
        ("dirichlet-band", Parameters { window, alpha: Some(1e9), ..given() }, "1000000000"),
        ("lognormal-band", Parameters { window, sigma: Some(0.0), ..given() }, "sigma is 0"),
        ("landmark", Parameters { m: Some(0), ..given() }, "m is 0"),
        ("previous-token", Parameters { k: Some(0), ..given() }, "k is 0"),
        ("clustered", given(), "needs c"),
        ("clustered", Parameters { c: Some(0), ..given() }, "c is 0"),
        ("induction", given(), "needs vocabulary"),
        ("induction", Parameters { vocabulary: Some(0), ..given() }, "vocabulary is 0"),
        ("induction", Parameters { vocabulary: Some(3), c: Some(3), ..given() }, "c is not"),
        ("mixture", given(), "needs local"),
        ("mixture", Parameters { local: local.clone(), ..given() }, "needs global"),
        (
            "mixture",
            Parameters {
                lambda: Some(1.5),
                local: local.clone(),
                global: name("landmark"),
                m: Some(2),
                ..given()
            },
            "lambda is 1.5",
        ),
        ("mixture", Parameters { global: local.clone(), local, ..given() }, "different families"),
        ("permuted", Parameters { of: name("permuted"), ..given() }, "permuted"),
        ("permuted", Parameters { of: name("prefx"), ..given() }, "\"prefix\""),
    ] {
        let error = Family::from_parameters(family, &parameters).unwrap_err().to_string();
        assert!(error.contains(part), "{family}: {error}");
    }
}

#[test]
fn sizes_that_cannot_be_built_are_errors() {
    let empty = Box::new(Family::UniformBand { window: 0 });
    for (family, n, part) in [
        (Family::Prefix, 0, "no rows"),
        (Family::Prefix, 1_000_000, "lower n"),
        (Family::PreviousToken { k: 1 }, usize::MAX, "lower n"),
        (Family::Landmark { m: 5 }, 4, "m is 5"),
        (Family::Landmark { m: 0 }, 4, "m is 0"),
        (Family::Permuted { family: empty }, 4, "window is 0"),
    ] {
        let error = family.build(n, 0, CAUSAL).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
