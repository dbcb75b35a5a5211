//! Compares the objective with dense matrices and finite differences, on every vector extension of the processor.

use super::*;
use crate::solver::Factors;
use crate::targets::{Family, HeadKind, Layout, Target, Visibility};
use ndarray::{Array2, Axis};
use proptest::prelude::*;

/// A band with landmarks, or a band only if no head attends beyond its window.
fn problem(layout: &str, visibility: Visibility, n: usize, rank: usize, seed: u64) -> Problem {
    let layout: Layout = layout.parse().unwrap();
    let family = match layout.heads().contains(&HeadKind::Global) {
        true => Family::Mixture {
            lambda: 0.5,
            local: Box::new(Family::DirichletBand { window: 5, alpha: 1.0 }),
            global: Box::new(Family::Landmark { m: 3 }),
        },
        false => Family::DirichletBand { window: 7, alpha: 1.0 },
    };
    let target = family.build(n, seed, visibility).unwrap();
    Problem::new(target, layout, rank).unwrap()
}

fn vector(problem: &Problem, seed: u64) -> Vec<f64> {
    let mut x = super::super::start::random(problem, 8.0, seed).unwrap().to_vector();
    if problem.heads() > 1 {
        let length = x.len();
        x[length - 1] += 0.3;
    }
    x
}

/// kl_nats and its gradient from the definition with dense matrices, independent of the block code.
fn naive(problem: &Problem, x: &[f64]) -> (f64, Vec<f64>) {
    let (n, d, heads) = (problem.n(), problem.rank(), problem.heads());
    let factors = Factors::from_vector(x, heads, n, d).unwrap();
    let a = problem.target().dense();
    let joint: Vec<Array2<f64>> = (0..heads)
        .map(|head| {
            let z = factors.logits(head);
            let mut joint = Array2::zeros((n, n));
            for i in 0..n {
                let seen = problem.seen(head, i);
                let sum: f64 = seen.clone().map(|j| z[[i, j]].exp()).sum();
                let weight = factors.weights()[head] / sum;
                seen.for_each(|j| joint[[i, j]] = weight * z[[i, j]].exp());
            }
            joint
        })
        .collect();
    let mixed = joint.iter().fold(Array2::zeros((n, n)), |sum, joint| sum + joint);
    let log_ratio = |a: f64, p: f64| if a > 0.0 { a * (a / p).ln() / n as f64 } else { 0.0 };
    let kl_nats = a.iter().zip(&mixed).map(|(&a, &p)| log_ratio(a, p)).sum();
    let mut gradient = vec![0.0; x.len()];
    for (head, joint) in joint.iter().enumerate() {
        let weight = factors.weights()[head];
        let shares = Array2::from_shape_fn((n, n), |at| {
            if a[at] > 0.0 { a[at] * joint[at] / mixed[at] } else { 0.0 }
        });
        let mass = shares.sum_axis(Axis(1)).insert_axis(Axis(1));
        let g = (joint / weight * &mass - &shares) / (n as f64 * (d as f64).sqrt());
        let (q, k) = factors.head(head);
        let parts = g.dot(&k).into_iter().chain(g.t().dot(&q));
        let side = 2 * n * d;
        gradient[head * side..(head + 1) * side].iter_mut().zip(parts).for_each(|(to, g)| *to = g);
        if heads > 1 {
            gradient[heads * side + head] = weight - shares.sum() / n as f64;
        }
    }
    (kl_nats, gradient)
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Checks value and gradient on every extension in both precisions against the exact ones. Tolerances are relative to kl_nats
/// and to the largest entry of the gradient.
fn assert_close_on_every_extension(problem: &Problem, x: &[f64], case: &str) {
    let (kl_nats, expected) = naive(problem, x);
    let largest = expected.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
    for extension in Extension::available() {
        for (precision, tolerance) in [(Precision::F64, 1e-12), (Precision::F32, 1e-4)] {
            let mut objective = Objective::with_extension(problem, precision, extension);
            let mut gradient = vec![f64::NAN; x.len()];
            let found = objective.evaluate(x, None, &mut gradient).measured.kl_nats;
            let off = (found / kl_nats - 1.0).abs();
            assert!(off < tolerance, "{case}, {extension:?} {precision:?}: kl_nats off by {off:e}");
            let off = largest_difference(&gradient, &expected) / largest;
            assert!(
                off < tolerance,
                "{case}, {extension:?} {precision:?}: gradient off by {off:e}"
            );
        }
    }
}

/// Small enough for the Miri interpreter, with complete and incomplete groups of rows, panels and vectors.
#[test]
fn a_small_problem_agrees_with_dense_matrices() {
    let row = |i: usize| (i.saturating_sub(3)..=i).map(move |j| (j, 1.0 / (i + 1).min(4) as f64));
    let rows = (0..7).map(|i| row(i).collect()).collect();
    let target = Target::from_rows(rows, Visibility::Causal).unwrap();
    let problem = Problem::new(target, "local:4+global".parse().unwrap(), 5).unwrap();
    let x: Vec<f64> = (0..2 * 2 * 7 * 5 + 2).map(|i| (0.7 * i as f64).sin()).collect();
    assert_close_on_every_extension(&problem, &x, "seven rows");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn blocks_and_slots_of_every_size_agree_with_dense_matrices(
        layout in prop::sample::select(vec!["global", "local:30", "local:9+global"]),
        bidirectional in any::<bool>(),
        n in 90usize..900,
        rank in prop::sample::select(vec![1, 4, 8, 12, 17, 24, 33, 40, 64, 70]),
        seed in 0u64..1000,
    ) {
        let visibility =
            if bidirectional { Visibility::Bidirectional } else { Visibility::Causal };
        let problem = problem(layout, visibility, n, rank, seed);
        let x = vector(&problem, seed);
        assert_close_on_every_extension(&problem, &x, &format!("{layout}, n = {n}, d = {rank}"));
    }
}

/// Ranks of one to five vectors and more of 2, 4, 8 and 16 lanes, complete and incomplete; rows and columns end at varying
/// places of a group and of a panel.
#[test]
fn every_width_agrees_with_dense_matrices() {
    let ranks = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 20, 24, 25, 31, 32, 33, 40, 48, 49, 63, 64,
        65, 80, 96, 97, 112, 127, 128, 129, 130,
    ];
    for (seed, rank) in (0..).zip(ranks) {
        for layout in ["global", "local:11", "2xglobal", "local:40+global"] {
            for visibility in [Visibility::Causal, Visibility::Bidirectional] {
                let n = 31 + 29 * (seed as usize) % 80;
                let problem = problem(layout, visibility, n, rank, seed);
                let case = format!("{layout}, {visibility:?}, n = {n}, d = {rank}");
                assert_close_on_every_extension(&problem, &vector(&problem, seed), &case);
            }
        }
    }
}

#[test]
fn the_number_of_threads_does_not_show() {
    let problem = problem("local:40+global", Visibility::Causal, 1100, 9, 3);
    let x = vector(&problem, 3);
    let penalty = Penalty::new(&problem, 1.0, 0.7);
    for extension in Extension::available() {
        for precision in [Precision::F32, Precision::F64] {
            let evaluate = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let mut gradient = vec![0.0; x.len()];
                    let mut objective = Objective::with_extension(&problem, precision, extension);
                    let value = objective.evaluate(&x, Some(&penalty), &mut gradient).value;
                    (value, gradient, objective.updated_multipliers(&x, &penalty))
                })
            };
            let one = evaluate(1);
            for threads in 2..5 {
                assert!(one == evaluate(threads), "{extension:?} {precision:?}, {threads} threads");
            }
        }
    }
}

/// A penalty at x with multipliers of bounds that are active and of some that are not.
fn penalty_with_multipliers(problem: &Problem, x: &[f64]) -> Penalty {
    let mut objective = Objective::new(problem, Precision::F64);
    let mut penalty = Penalty::new(problem, 0.3, 2.0);
    penalty.multipliers = objective.updated_multipliers(x, &penalty);
    penalty.cap = 0.5;
    penalty.multipliers = objective.updated_multipliers(x, &penalty);
    assert!(penalty.total_multiplier() > 0.0, "no bound was active");
    penalty
}

#[test]
fn the_penalty_s_gradient_agrees_with_finite_differences() {
    for layout in ["global", "local:6+global"] {
        let problem = problem(layout, Visibility::Causal, 20, 3, 4);
        let x = vector(&problem, 4);
        let penalty = penalty_with_multipliers(&problem, &x);
        for extension in Extension::available() {
            let mut objective = Objective::with_extension(&problem, Precision::F64, extension);
            let (mut gradient, mut scratch) = (vec![0.0; x.len()], vec![0.0; x.len()]);
            objective.evaluate(&x, Some(&penalty), &mut gradient);
            for (i, found) in gradient.iter().enumerate() {
                let mut at = |offset: f64| {
                    let mut moved = x.clone();
                    moved[i] += offset;
                    objective.evaluate(&moved, Some(&penalty), &mut scratch).value
                };
                let off = ((at(1e-5) - at(-1e-5)) / 2e-5 - found).abs();
                assert!(off < 1e-7, "{layout}, {extension:?}: entry {i} differs by {off:e}");
            }
        }
    }
}

#[test]
fn the_penalty_is_the_same_on_every_extension() {
    for (layout, n) in [("global", 83), ("local:19+global", 71)] {
        let problem = problem(layout, Visibility::Causal, n, 6, 5);
        let x = vector(&problem, 5);
        let penalty = penalty_with_multipliers(&problem, &x);
        let evaluate = |precision, extension| {
            let mut objective = Objective::with_extension(&problem, precision, extension);
            let mut gradient = vec![f64::NAN; x.len()];
            let value = objective.evaluate(&x, Some(&penalty), &mut gradient).value;
            let multipliers = objective.updated_multipliers(&x, &penalty);
            let total = Penalty { multipliers, ..penalty.clone() }.total_multiplier();
            (value, total, gradient)
        };
        let (value, total, gradient) = evaluate(Precision::F64, Extension::widest());
        let largest = gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
        for extension in Extension::available() {
            for (precision, tolerance) in [(Precision::F64, 1e-12), (Precision::F32, 1e-4)] {
                let (found, found_total, found_gradient) = evaluate(precision, extension);
                let off = [
                    (found / value - 1.0).abs(),
                    (found_total / total - 1.0).abs(),
                    largest_difference(&found_gradient, &gradient) / largest,
                ];
                assert!(
                    off.iter().all(|off| *off < tolerance),
                    "{layout}, {extension:?} {precision:?}: value, multipliers, gradient off by {off:?}"
                );
            }
        }
    }
}

#[test]
fn extremes_are_over_visible_pairs_alone() {
    let target =
        Target::from_rows(vec![vec![(0, 1.0)], vec![(1, 1.0)]], Visibility::Causal).unwrap();
    let problem = Problem::new(target, "global".parse().unwrap(), 1).unwrap();
    // z = [[2, 200], [3, 300]]: the mask forbids the 200.
    let seen = Objective::new(&problem, Precision::F64).measure(&[2.0, 3.0, 1.0, 100.0]);
    assert_eq!((seen.max_abs_logit, seen.logit_spread), (300.0, 297.0));
}
