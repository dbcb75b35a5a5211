//! No factors are ever below a lower bound, whatever they come from; and constructions are what they
//! say.

use std::collections::BTreeMap;

use ndarray::{Array1, Array3, s};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rank_study::solver::{
    BoundKind, Factors, FitError, Floor, LowerBounds, Problem, SolverBudget, constructions,
    fourier_features, frontier, lower_bound, moment_curve, random_codes,
};
use rank_study::targets::{Family, Layout, Target, Visibility};

use crate::dense;

const VISIBILITIES: [Visibility; 2] = [Visibility::Causal, Visibility::Bidirectional];

fn family(name: &str, n: usize, seed: u64, visibility: Visibility) -> Target {
    let band = Family::DirichletBand { window: 8, alpha: 1.0 };
    let family = match name {
        "dirichlet-band" => band,
        "permuted" => Family::Permuted { family: Box::new(band) },
        "uniform-band" => Family::UniformBand { window: 8 },
        "decay-band" => Family::DecayBand { window: 8, tau: 2.0 },
        "landmark" => Family::Landmark { m: 4 },
        "random-sparse" => Family::RandomSparse { k: 3 },
        "previous-token" => Family::PreviousToken { k: 1 },
        _ => Family::Prefix,
    };
    family.build(n, seed, visibility).unwrap()
}

fn problem(target: Target, layout: &str, rank: usize) -> Problem {
    Problem::new(target, layout.parse::<Layout>().unwrap(), rank).unwrap()
}

fn reached(problem: &Problem, factors: &Factors) -> (f64, f64) {
    dense::reached(problem.target(), problem.layout(), factors)
}

fn random(problem: &Problem, size: f64, rng: &mut ChaCha8Rng) -> Factors {
    let shape = (problem.heads(), problem.n(), problem.rank());
    let mut draw = || {
        let value: f64 = StandardNormal.sample(rng);
        value * size
    };
    let queries = Array3::from_shape_simple_fn(shape, &mut draw);
    let keys = Array3::from_shape_simple_fn(shape, &mut draw);
    let weights = Array1::from_elem(problem.heads(), 1.0 / problem.heads() as f64);
    Factors::new(queries, keys, weights).unwrap()
}

/// Counts by which bound was the best.
#[derive(Default, Debug)]
struct Counts {
    checked: usize,
    by: BTreeMap<&'static str, usize>,
}

impl Counts {
    /// At ε = what the factors reach, they are not below the bound.
    fn check(
        &mut self,
        name: &str,
        problem: &Problem,
        bounds: &mut LowerBounds,
        factors: &Factors,
    ) {
        let (kl, max_abs_logit) = reached(problem, factors);
        // Rounding of kl itself; nothing is asked of an exact fit.
        let Some(bound) = bounds.at(kl + 1e-12) else { return };
        let name = format!("{name}, kl {kl}, bound by {}", bound.by);
        assert!(
            bound.max_abs_logit <= max_abs_logit * (1.0 + 1e-9),
            "{name}: max_abs_logit {max_abs_logit} is below {}",
            bound.max_abs_logit
        );
        let floor = Floor::new(problem).max_abs_logit(kl + 1e-12).unwrap();
        assert!(bound.max_abs_logit >= floor, "{name}: under the floor {floor}");
        self.checked += 1;
        *self.by.entry(bound.by.name()).or_default() += 1;
    }

    fn of(&self, kind: BoundKind) -> usize {
        self.by.get(kind.name()).copied().unwrap_or(0)
    }
}

#[test]
fn no_fit_construction_or_random_factors_cross_the_bracket() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut counts = Counts::default();
    let options = dense::search(2, 1, SolverBudget { iterations: 600, ..SolverBudget::default() });
    for name in
        ["dirichlet-band", "random-sparse", "landmark", "previous-token", "permuted", "prefix"]
    {
        for visibility in VISIBILITIES {
            for (rank, layout) in
                [(1, "global"), (2, "global"), (3, "global"), (5, "global"), (2, "local:8")]
            {
                let n = 40 + 3 * rank;
                let masked_permutation = name == "permuted" && visibility == Visibility::Causal;
                if masked_permutation || (layout != "global" && name != "dirichlet-band") {
                    continue;
                }
                let problem = problem(family(name, n, rank as u64, visibility), layout, rank);
                let label = format!("{name}, {visibility}, {layout}, rank {rank}");
                let mut bounds = LowerBounds::new(&problem);
                let mut check = |way: &str, factors: &Factors| {
                    counts.check(&format!("{way} for {label}"), &problem, &mut bounds, factors);
                };
                for point in frontier(&problem, &[2.0, 6.0, 24.0], options, &()).unwrap() {
                    check("fit", &point.best.unwrap().solution.factors);
                }
                for cap in [1.0, 4.0, 16.0, 64.0] {
                    for (way, factors) in constructions(&problem, cap, 1).unwrap() {
                        check(way, &factors);
                    }
                }
                for size in [0.1, 0.5, 1.0, 2.0] {
                    check("random", &random(&problem, size, &mut rng));
                }
            }
        }
    }
    // At these sizes few fits come near enough; the test below has the cases that bite.
    assert!(counts.checked >= 400 && counts.of(BoundKind::Lift) >= 5, "{counts:?}");
}

/// softmax of `factors`' own logits and a little noise: a target whose √A is of full rank to rounding
/// and that the factors reach all the same, because their logits are large.
fn planted(factors: &Factors, visibility: Visibility, noise: f64, rng: &mut ChaCha8Rng) -> Problem {
    let (n, logits) = (factors.n(), factors.logits(0));
    let rows = (0..n)
        .map(|i| {
            let seen = visibility.columns(i, n);
            let mut draw = || -> f64 { StandardNormal.sample(rng) };
            let z: Vec<f64> = seen.map(|j| logits[[i, j]] + noise * draw()).collect();
            let top = z.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = z.iter().map(|z| (z - top).exp()).sum();
            z.into_iter().map(|z| (z - top).exp() / sum).enumerate().collect()
        })
        .collect();
    problem(Target::from_rows(rows, visibility).unwrap(), "global", factors.rank())
}

#[test]
fn bounds_stay_below_large_logits_that_were_planted() {
    let mut rng = ChaCha8Rng::seed_from_u64(13);
    let mut counts = Counts::default();
    let mut closest = 0.0f64;
    for rank in [1, 2, 3, 4] {
        for visibility in VISIBILITIES {
            for cap in [2.0, 5.0, 10.0, 20.0, 40.0, 80.0] {
                for noise in [0.01, 0.1, 0.4] {
                    // Unit vectors: rows whose greatest entries lie around their own key.
                    let any = problem(family("prefix", 72, 0, visibility), "global", rank);
                    let mut unit = random(&any, 1.0, &mut rng).keys().to_owned();
                    for mut key in unit.lanes_mut(ndarray::Axis(2)) {
                        let norm = key.dot(&key).sqrt();
                        key /= if rank > 1 { norm } else { 3.0 };
                    }
                    let queries = &unit * (cap * (rank as f64).sqrt());
                    let factors = Factors::new(queries, unit, Array1::ones(1)).unwrap();
                    let problem = planted(&factors, visibility, noise, &mut rng);
                    let label = format!("planted {cap}, rank {rank}, {visibility}, noise {noise}");
                    let mut bounds = LowerBounds::new(&problem);
                    counts.check(&label, &problem, &mut bounds, &factors);
                    let (kl, largest) = reached(&problem, &factors);
                    if let Some(bound) = bounds.at(kl).filter(|b| b.by != BoundKind::Floor) {
                        closest = closest.max(bound.max_abs_logit / largest);
                    }
                }
            }
        }
    }
    println!("{counts:?}, closest {closest}");
    assert!(counts.of(BoundKind::Lift) >= 20, "{counts:?}");
    assert!(closest > 0.3, "the bounds come within {closest} of what was planted only");
}

#[test]
fn layouts_of_several_heads_have_the_floor_alone() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let mut counts = Counts::default();
    for layout in ["2xglobal", "local:8+global"] {
        let problem = problem(family("random-sparse", 32, 0, Visibility::Causal), layout, 2);
        let mut bounds = LowerBounds::new(&problem);
        for size in [0.3, 1.0] {
            counts.check(layout, &problem, &mut bounds, &random(&problem, size, &mut rng));
        }
    }
    assert_eq!((counts.checked, counts.of(BoundKind::Floor)), (4, 4), "{counts:?}");
    let two = problem(family("prefix", 9, 0, Visibility::Causal), "2xglobal", 4);
    assert_eq!(constructions(&two, 1.0, 0).unwrap(), []);
}

#[test]
fn a_target_of_rank_one_in_its_logits_needs_no_more_than_its_floor_says() {
    // z = 2c^{j−i} − 1 times a cap, rank 2, tells the last token it sees from all others with a causal
    // mask at any n; the bound must allow it.
    let n = 48;
    let rows = (0..n).map(|i| vec![(i, 1.0)]).collect();
    let problem = problem(Target::from_rows(rows, Visibility::Causal).unwrap(), "global", 2);
    let mut q = Array3::ones((1, n, 2));
    let mut k = Array3::ones((1, n, 2));
    let (cap, root) = (8.0, 2.0f64.sqrt());
    for i in 0..n {
        q[[0, i, 0]] = 2.0 * cap * root * 0.5f64.powi(i as i32);
        q[[0, i, 1]] = -cap * root;
        k[[0, i, 0]] = 0.5f64.powi(-(i as i32));
    }
    let factors = Factors::new(q, k, Array1::ones(1)).unwrap();
    let (kl, max_abs_logit) = reached(&problem, &factors);
    assert!(max_abs_logit <= cap * (1.0 + 1e-12) && kl < 1e-2, "{kl} at {max_abs_logit}");
    let bound = lower_bound(&problem, kl).unwrap();
    assert!(bound.max_abs_logit <= cap, "{bound:?}");
}

#[test]
fn without_a_mask_low_rank_needs_logits_far_above_the_floor() {
    // The lift's own claim, at sizes where it says something: the previous token at rank 2.
    let problem = problem(family("previous-token", 128, 0, Visibility::Bidirectional), "global", 2);
    let bound = lower_bound(&problem, 0.1).unwrap();
    let floor = Floor::new(&problem).max_abs_logit(0.1).unwrap();
    assert_eq!(bound.by, BoundKind::Lift);
    assert!(bound.max_abs_logit > 5.0 * floor, "{} against {floor}", bound.max_abs_logit);
}

#[test]
fn constructions_stay_within_their_cap_and_beat_uniform_attention() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, n, rank) in [
        ("previous-token", 24, 5),
        ("uniform-band", 24, 9),
        ("decay-band", 32, 7),
        ("random-sparse", 24, 8),
        ("dirichlet-band", 24, 6),
    ] {
        for visibility in VISIBILITIES {
            let problem = problem(family(name, n, 2, visibility), "global", rank);
            let zeros = Array3::zeros((1, n, rank));
            let zero = Factors::new(zeros.clone(), zeros, Array1::ones(1)).unwrap();
            let (uniform, _) = reached(&problem, &zero);
            for cap in [0.5, 3.0, 20.0] {
                let built = constructions(&problem, cap, 7).unwrap();
                assert_eq!(built, constructions(&problem, cap, 7).unwrap(), "not the same twice");
                for (way, factors) in built {
                    let (kl, largest) = reached(&problem, &factors);
                    let case = format!("{way}, {name}, {visibility}, cap {cap}");
                    assert!(largest <= cap, "{case}: {largest}");
                    assert!(kl < uniform, "{case}: {kl} against uniform {uniform}");
                    *seen.entry(way).or_default() += 1;
                }
            }
        }
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    let prefix = problem(family("prefix", 9, 0, Visibility::Causal), "global", 4);
    assert!(matches!(constructions(&prefix, 0.0, 0), Err(FitError::Cap(_))));
}

#[test]
fn the_moment_curve_puts_every_row_of_weight_first_at_any_n() {
    for n in [9, 40, 150] {
        let target = family("random-sparse", n, 5, Visibility::Bidirectional);
        let problem = problem(target, "global", 7);
        let factors = moment_curve(&problem, 1.0).unwrap().unwrap();
        let z = factors.logits(0);
        for i in 0..n {
            let wanted = problem.target().row(i).0;
            let is_wanted = |j: usize| wanted.contains(&(j as u32));
            let least = wanted.iter().map(|&j| z[[i, j as usize]]).fold(f64::MAX, f64::min);
            let next =
                (0..n).filter(|&j| !is_wanted(j)).map(|j| z[[i, j]]).fold(f64::MIN, f64::max);
            assert!(least > next, "n {n}, row {i}: {least} against {next}");
        }
    }
    let sparse = family("random-sparse", 40, 5, Visibility::Bidirectional);
    assert_eq!(moment_curve(&problem(sparse, "global", 6), 1.0).unwrap(), None, "rank 2k");
}

#[test]
fn fourier_features_with_every_frequency_are_the_capped_log_target() {
    // A profile of n lags has (n − 1)/2 frequencies for odd n: rank n leaves nothing out.
    let n = 21;
    let causal = family("decay-band", n, 0, Visibility::Causal);
    let problem_of = |rank| problem(causal.clone(), "global", rank);
    let full = problem_of(n);
    let (cap, floor) = (4.0, Floor::new(&full).kl_nats(4.0));
    let (kl, _) = reached(&full, &fourier_features(&full, cap).unwrap().unwrap());
    assert!(kl < floor + 2e-3, "{kl} against the floor {floor}");
    let few = problem_of(5);
    let (worse, _) = reached(&few, &fourier_features(&few, cap).unwrap().unwrap());
    assert!(worse > kl + 1e-2, "2 frequencies {worse}, all {kl}");
    let dense = family("dirichlet-band", n, 0, Visibility::Causal);
    assert_eq!(fourier_features(&problem(dense, "global", 5), cap).unwrap(), None);
}

#[test]
fn random_codes_improve_with_dimension() {
    let target = family("random-sparse", 64, 0, Visibility::Bidirectional);
    let kl: Vec<f64> = [4, 16, 48]
        .into_iter()
        .map(|rank| {
            let problem = problem(target.clone(), "global", rank);
            reached(&problem, &random_codes(&problem, 6.0, 0).unwrap().unwrap()).0
        })
        .collect();
    assert!(kl.is_sorted_by(|a, b| *a > 1.2 * b), "{kl:?}");
    let one = problem(target.clone(), "global", 1);
    assert_eq!(random_codes(&one, 6.0, 0).unwrap(), None);
    let problem = problem(target, "global", 16);
    let of = |seed| random_codes(&problem, 6.0, seed).unwrap().unwrap();
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    let keys = of(1).keys().slice(s![0, .., ..15]).to_owned();
    let norms: Vec<f64> = keys.rows().into_iter().map(|k| k.dot(&k)).collect();
    let spread = norms.iter().fold(0.0f64, |m, x| m.max((x / norms[0] - 1.0).abs()));
    assert!(spread < 1e-12, "codes are not of one length: {spread}");
}
