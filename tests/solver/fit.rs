//! The fit against what is known: definitions, the floor, low-rank targets, an independent solver.

use std::path::Path;

use ndarray::{Array2, Axis};
use rank_study::solver::{
    Floor, FrontierPoint, Outcome, Problem, SearchOptions, Solution, SolverBudget, frontier,
    needed_logit,
};
use rank_study::targets::{Family, Layout, Parameters, Target, Visibility};

fn target(family: &str, n: usize, seed: u64, visibility: Visibility) -> Target {
    let parameters = match family {
        "dirichlet-band" => Parameters { window: Some(12), ..Parameters::default() },
        "landmark" => Parameters { m: Some(5), ..Parameters::default() },
        "random-sparse" => Parameters { k: Some(4), ..Parameters::default() },
        "mixture" => Parameters {
            window: Some(8),
            m: Some(4),
            local: Some("dirichlet-band".to_owned()),
            global: Some("landmark".to_owned()),
            ..Parameters::default()
        },
        _ => Parameters::default(),
    };
    Family::from_parameters(family, &parameters).unwrap().build(n, seed, visibility).unwrap()
}

fn problem(target: Target, layout: &str, rank: usize) -> Problem {
    Problem::new(target, layout.parse::<Layout>().unwrap(), rank).unwrap()
}

fn quick() -> SearchOptions {
    let effort =
        SolverBudget { iterations: 3000, relative_decrease: 1e-5, ..SolverBudget::default() };
    SearchOptions {
        starts: 3,
        polished: 1,
        rough: effort,
        fine: effort,
        ..SearchOptions::default()
    }
}

fn solution(point: &FrontierPoint) -> &Solution {
    &point.best.as_ref().expect("the heads see all of the target").solution
}

/// (kl_nats, max_abs_logit) from the factors by dense matrices and the definitions alone.
fn recomputed(problem: &Problem, solution: &Solution) -> (f64, f64) {
    let (n, factors) = (problem.n(), &solution.factors);
    let visibility = problem.target().visibility();
    let mut mixed = Array2::<f64>::zeros((n, n));
    let mut greatest = 0.0f64;
    for (head, &kind) in problem.layout().heads().iter().enumerate() {
        let q = factors.queries().index_axis(Axis(0), head);
        let k = factors.keys().index_axis(Axis(0), head);
        let z = q.dot(&k.t()) / (factors.rank() as f64).sqrt();
        for i in 0..n {
            let seen = kind.columns(i, n, visibility);
            let shift = seen.clone().map(|j| z[[i, j]]).fold(f64::MIN, f64::max);
            let sum: f64 = seen.clone().map(|j| (z[[i, j]] - shift).exp()).sum();
            for j in seen {
                mixed[[i, j]] += factors.weights()[head] * (z[[i, j]] - shift).exp() / sum;
                greatest = greatest.max(z[[i, j]].abs());
            }
        }
    }
    let row = |i: usize| {
        let (columns, a) = problem.target().row(i);
        columns.iter().zip(a).map(|(&j, a)| a * (a / mixed[[i, j as usize]]).ln()).sum::<f64>()
    };
    ((0..n).map(row).sum::<f64>() / n as f64, greatest)
}

#[test]
fn a_frontier_is_certified_monotone_and_above_its_floor() {
    for (family, layout, visibility) in [
        ("dirichlet-band", "global", Visibility::Causal),
        ("random-sparse", "global", Visibility::Bidirectional),
        ("mixture", "local:8+global", Visibility::Causal),
        ("mixture", "2xglobal", Visibility::Causal),
    ] {
        let problem = problem(target(family, 40, 1, visibility), layout, 4);
        let floor = Floor::new(&problem);
        let points = frontier(&problem, &[8.0, 1.0, 2.0, 4.0], quick(), &()).unwrap();
        let name = format!("{family} {layout} {visibility}");
        assert_eq!(
            points.iter().map(|p| p.cap).collect::<Vec<_>>(),
            [1.0, 2.0, 4.0, 8.0],
            "{name}"
        );
        for pair in points.windows(2) {
            let (low, high) = (solution(&pair[0]).kl_nats, solution(&pair[1]).kl_nats);
            assert!(high <= low, "{name}: kl rose from {low} to {high} at cap {}", pair[1].cap);
        }
        for point in &points {
            let found = solution(point);
            let (kl_nats, max_abs_logit) = recomputed(&problem, found);
            assert!(max_abs_logit <= point.cap, "{name}: {max_abs_logit} over cap {}", point.cap);
            assert!(
                (kl_nats - found.kl_nats).abs() < 1e-10,
                "{name}: {kl_nats}, {}",
                found.kl_nats
            );
            let least = floor.kl_nats(point.cap);
            assert!(found.kl_nats >= least, "{name}: {} under the floor {least}", found.kl_nats);
        }
    }
}

#[test]
fn landmark_targets_reach_the_floor_at_rank_m_plus_one() {
    let problem = problem(target("landmark", 64, 2, Visibility::Causal), "global", 6);
    let floor = Floor::new(&problem);
    for point in frontier(&problem, &[1.0, 2.0, 3.0], quick(), &()).unwrap() {
        let (found, least) = (solution(&point).kl_nats, floor.kl_nats(point.cap));
        assert!(found <= 1.01 * least, "cap {}: {found} against the floor {least}", point.cap);
    }
    let needed = needed_logit(&problem, 0.1, quick(), &()).unwrap();
    let (found, least) =
        (needed.best.unwrap().solution.max_abs_logit, floor.max_abs_logit(0.1).unwrap());
    assert!(found <= 1.01 * least, "needed {found} against the floor {least}");
}

#[test]
fn a_needed_logit_reaches_its_tolerance_and_smaller_caps_do_not() {
    let problem = problem(target("dirichlet-band", 48, 5, Visibility::Causal), "global", 4);
    let tolerance = 0.2;
    let needed = needed_logit(&problem, tolerance, quick(), &()).unwrap();
    let found = needed.best.expect("a finite logit reaches this error").solution;
    let (kl_nats, max_abs_logit) = recomputed(&problem, &found);
    assert!(kl_nats <= tolerance, "{kl_nats}");
    assert!(max_abs_logit <= found.max_abs_logit + 1e-12);
    let least = Floor::new(&problem).max_abs_logit(tolerance).unwrap();
    assert!(found.max_abs_logit > least, "{} under the floor {least}", found.max_abs_logit);
    let smaller = frontier(&problem, &[0.93 * found.max_abs_logit], quick(), &()).unwrap();
    let missed = solution(&smaller[0]).kl_nats;
    assert!(missed > tolerance, "a cap 7 % smaller reaches {missed} too");
}

#[test]
fn what_cannot_be_reached_is_an_outcome() {
    let band = target("dirichlet-band", 64, 6, Visibility::Causal);
    let needed = needed_logit(&problem(band, "global", 1), 0.01, quick(), &()).unwrap();
    assert_eq!(needed.outcome, Outcome::Infeasible);
    assert!(needed.best.unwrap().solution.kl_nats > 0.01);

    let unseen = problem(target("landmark", 32, 6, Visibility::Causal), "local:4", 2);
    assert_eq!(needed_logit(&unseen, 0.1, quick(), &()).unwrap().outcome, Outcome::Infeasible);
    let points = frontier(&unseen, &[4.0], quick(), &()).unwrap();
    assert!(points[0].best.is_none());
    assert_eq!(Floor::new(&unseen).kl_nats(4.0), f64::INFINITY);
}

#[test]
fn running_out_of_iterations_is_an_outcome() {
    let band = target("dirichlet-band", 40, 7, Visibility::Causal);
    let effort = SolverBudget { iterations: 20, ..SolverBudget::default() };
    let options = SearchOptions { rough: effort, fine: effort, ..quick() };
    let points = frontier(&problem(band, "global", 3), &[4.0], options, &()).unwrap();
    assert_eq!(solution(&points[0]).outcome, Outcome::StepLimit);
    assert!(solution(&points[0]).kl_nats.is_finite());
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let problem = problem(target("mixture", 36, 8, Visibility::Causal), "local:8+global", 3);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let points = frontier(&problem, &[2.0, 4.0], quick(), &()).unwrap();
            let needed = needed_logit(&problem, 0.1, quick(), &()).unwrap();
            let kl: Vec<u64> = points.iter().map(|p| solution(p).kl_nats.to_bits()).collect();
            (kl, needed.best.unwrap().solution.max_abs_logit.to_bits())
        })
    };
    assert_eq!(with(1), with(2));
}

#[test]
fn the_floor_of_one_head_is_the_closed_form_that_a_convex_solver_finds() {
    let path = Path::new("tests/reference/dense-local-n96.npy");
    let problem = problem(Target::read(path, Visibility::Causal).unwrap(), "global", 1);
    let floor = Floor::new(&problem);
    let mut rows = csv::Reader::from_path("tests/reference/dense-local-n96-floors.csv").unwrap();
    let mut checked = 0;
    for row in rows.records() {
        let row = row.unwrap();
        let number = |i: usize| row[i].parse::<f64>().unwrap();
        let (cap, expected) = (number(0), number(1));
        let found = floor.kl_nats(cap);
        assert!(
            (found - expected).abs() < 1e-12 + 1e-9 * expected,
            "L {cap}: {found} against {expected}"
        );
        let inverse = floor.max_abs_logit(expected).unwrap();
        assert!((inverse - cap).abs() < 1e-6 * cap, "L⁰(E⁰({cap})) is {inverse}");
        checked += 1;
    }
    assert!(checked >= 5, "only {checked} floors in the reference");
}

#[test]
fn floors_of_layouts_follow_from_what_their_heads_see() {
    let of = |layout: &str, cap: f64| {
        Floor::new(&problem(target("mixture", 40, 9, Visibility::Causal), layout, 1)).kl_nats(cap)
    };
    for cap in [0.5, 1.0, 2.0] {
        let one = of("global", cap);
        assert_eq!(of("2xglobal", cap), one, "two heads that see the same are one");
        assert_eq!(
            of("local:40+global", cap),
            one,
            "a window as long as the sequence hides nothing"
        );
        let split = of("local:8+global", cap);
        assert!(split <= one + 1e-9, "cap {cap}: a further head cost {split} over {one}");
        assert!(split > 0.0, "cap {cap}");
    }
}

#[test]
fn a_uniform_target_needs_no_logits() {
    let problem = problem(target("prefix", 20, 0, Visibility::Causal), "global", 2);
    let floor = Floor::new(&problem);
    assert_eq!(floor.max_abs_logit(0.01), Some(0.0));
    assert!(floor.kl_nats(0.1) < 1e-15);
    let needed = needed_logit(&problem, 0.01, quick(), &()).unwrap();
    assert!(needed.best.unwrap().solution.max_abs_logit < 0.1);
}

#[test]
fn the_reference_of_an_independent_solver_is_reached_at_every_cap() {
    for (name, layout, rank) in
        [("dense-local-n96", "global", 8), ("mixture-n96", "local:24+global", 4)]
    {
        let path = format!("tests/reference/{name}.npy");
        let target = Target::read(Path::new(&path), Visibility::Causal).unwrap();
        let problem = problem(target, layout, rank);
        let mut rows = csv::Reader::from_path(format!("tests/reference/{name}.csv")).unwrap();
        let reference: Vec<(f64, f64)> = rows
            .records()
            .map(|row| row.map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap())).unwrap())
            .collect();
        let caps: Vec<f64> = reference.iter().map(|(cap, _)| *cap).collect();
        let points = frontier(&problem, &caps, SearchOptions::default(), &()).unwrap();
        for (point, (cap, expected)) in points.iter().zip(&reference) {
            let found = solution(point).kl_nats;
            assert!(found <= 1.02 * expected, "{name}, cap {cap}: {found} against {expected}");
        }
    }
}
