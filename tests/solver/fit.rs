//! The fit against what is known: definitions, the floor, low-rank targets, an independent solver.

use std::path::Path;

use ndarray::{Array1, Array5, Axis};
use ndarray_npy::read_npy;
use rank_study::solver::{
    Factors, Floor, FrontierPoint, Problem, SearchOptions, Solution, frontier, needed_logit,
};
use rank_study::targets::{Family, Layout, Target, Visibility};

use crate::dense;

fn target(family: &str, n: usize, seed: u64, visibility: Visibility) -> Target {
    let family = match family {
        "dirichlet-band" => Family::DirichletBand { window: 12, alpha: 1.0 },
        "landmark" => Family::Landmark { m: 5 },
        "random-sparse" => Family::RandomSparse { k: 4 },
        "mixture" => Family::Mixture {
            lambda: 0.5,
            local: Box::new(Family::DirichletBand { window: 8, alpha: 1.0 }),
            global: Box::new(Family::Landmark { m: 4 }),
        },
        _ => Family::Prefix,
    };
    family.build(n, seed, visibility).unwrap()
}

fn problem(target: Target, layout: &str, rank: usize) -> Problem {
    Problem::new(target, layout.parse::<Layout>().unwrap(), rank).unwrap()
}

fn quick() -> SearchOptions {
    dense::search(3, 1, dense::effort())
}

fn solution(point: &FrontierPoint) -> &Solution {
    &point.best.as_ref().expect("the heads see all of the target").solution
}

fn recomputed(problem: &Problem, solution: &Solution) -> (f64, f64) {
    dense::reached(problem.target(), problem.layout(), &solution.factors)
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
        let caps: Vec<f64> = points.iter().map(|point| point.cap).collect();
        assert_eq!(caps, [1.0, 2.0, 4.0, 8.0], "{name}");
        for pair in points.windows(2) {
            let (low, high) = (solution(&pair[0]).kl_nats, solution(&pair[1]).kl_nats);
            assert!(high <= low, "{name}: kl rose from {low} to {high} at cap {}", pair[1].cap);
        }
        for point in &points {
            let found = solution(point);
            let (kl_nats, max_abs_logit) = recomputed(&problem, found);
            assert!(max_abs_logit <= point.cap, "{name}: {max_abs_logit} over cap {}", point.cap);
            let off = (kl_nats - found.kl_nats).abs();
            assert!(off < 1e-10, "{name}: {kl_nats}, {}", found.kl_nats);
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
        let off = (found - expected).abs();
        assert!(off < 1e-12 + 1e-9 * expected, "L {cap}: {found} against {expected}");
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
        assert_eq!(of("local:40+global", cap), one, "the window is as long as the sequence");
        let split = of("local:8+global", cap);
        assert!(split <= one + 1e-9, "cap {cap}: a further head cost {split} over {one}");
        assert!(split > 0.0, "cap {cap}");
        let unseen = problem(target("landmark", 32, 6, Visibility::Causal), "local:4", 2);
        assert_eq!(Floor::new(&unseen).kl_nats(cap), f64::INFINITY);
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

/// The reference is what it says, by its own factors, and the solver reaches it.
#[test]
fn the_certified_reference_of_an_independent_solver_is_reached_at_every_cap() {
    for (name, layout, rank) in
        [("dense-local-n96", "global", 8), ("mixture-n96", "local:24+global", 4)]
    {
        let file = |ending: &str| format!("tests/reference/{name}{ending}");
        let target = Target::read(Path::new(&file(".npy")), Visibility::Causal).unwrap();
        let problem = problem(target, layout, rank);
        // Caps, queries and keys, heads, tokens, channels.
        let factors: Array5<f64> = read_npy(file("-factors.npy")).unwrap();
        let rows: Vec<csv::StringRecord> =
            csv::Reader::from_path(file(".csv")).unwrap().records().map(Result::unwrap).collect();
        let caps: Vec<f64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
        assert!(!caps.is_empty(), "{name} has no rows");
        let points = frontier(&problem, &caps, SearchOptions::default(), &()).unwrap();
        let mut lowest = f64::INFINITY;
        for (at, (row, &cap)) in rows.iter().zip(&caps).enumerate() {
            let expected: f64 = row[1].parse().unwrap();
            let weights: Array1<f64> =
                row[7].split(' ').map(|w| w.parse::<f64>().unwrap()).collect();
            let [q, k] = [0, 1]
                .map(|which| factors.index_axis(Axis(0), at).index_axis(Axis(0), which).to_owned());
            let stored = Factors::new(q, k, weights).unwrap();
            let (kl_nats, largest) = dense::reached(problem.target(), problem.layout(), &stored);
            assert!(largest <= cap * (1.0 + 1e-12), "{name}, cap {cap}: reaches {largest}");
            let off = (kl_nats - expected).abs();
            assert!(off < 1e-9, "{name}, cap {cap}: {kl_nats}, not {expected}");
            assert!(expected < lowest, "{name}: a cap of {cap} allows more and reaches no less");
            lowest = expected;
            let found = solution(&points[at]).kl_nats;
            assert!(found <= 1.02 * expected, "{name}, cap {cap}: {found} against {expected}");
        }
    }
}
