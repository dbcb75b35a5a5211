//! What theory knows exactly, held against the definitions and the solver.

use ndarray::{Array1, Array2, Axis};
use ndarray_linalg::{Eigh, SVD, UPLO};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rank_study::solver::{
    Factors, Floor, Problem, SearchOptions, SolverBudget, frontier, norm_product,
};
use rank_study::targets::{Family, Layout, Target, Visibility};

use crate::dense;

fn quick() -> SearchOptions {
    dense::search(4, 2, dense::effort())
}

fn band(n: usize, window: usize, visibility: Visibility) -> Target {
    Family::DirichletBand { window, alpha: 1.0 }.build(n, 1, visibility).unwrap()
}

fn global(target: Target, rank: usize) -> Problem {
    Problem::new(target, Layout::global(), rank).unwrap()
}

/// |M| = √(MᵀM) to the power ½, and the orthogonal part of the polar decomposition M = W·|M|.
fn polar(m: &Array2<f64>) -> (Array2<f64>, Array2<f64>) {
    let (squares, v) = m.t().dot(m).eigh(UPLO::Lower).unwrap();
    let fourth_root =
        v.dot(&Array2::from_diag(&squares.mapv(|s| s.max(0.0).powf(0.25)))).dot(&v.t());
    let (u, _, vt) = m.svd(true, true).unwrap();
    (fourth_root, u.unwrap().dot(&vt.unwrap()))
}

/// The margin that the logits of an explicit embedding of the sign matrix M reach at norm_product 1,
/// and the bound that holds for every embedding.
///
/// Embedding: keys are the rows of |M|^½, queries those of W|M|^½, so that QKᵀ = M. Bound: for unit
/// vectors, Σ Wᵢⱼ⟨uᵢ, vⱼ⟩ ≤ n‖W‖ (Forster 2001), and a margin γ makes the left side at least γ Σ|Wᵢⱼ|
/// where W has the signs of M.
fn margin_and_bound(m: &Array2<f64>) -> (f64, f64) {
    let n = m.nrows();
    let (root, w) = polar(m);
    let whole = |x: Array2<f64>| x.insert_axis(Axis(0));
    let factors = Factors::new(whole(w.dot(&root)), whole(root), Array1::ones(1)).unwrap();
    let logits = factors.logits(0);
    let margin = (&logits * m).iter().copied().fold(f64::INFINITY, f64::min);
    assert!((&w * m).iter().all(|&x| x > 0.0), "W does not have the signs of M");
    let (_, sigma, _) = w.svd(false, false).unwrap();
    let total: f64 = w.iter().map(|x| x.abs()).sum();
    (margin / norm_product(&factors), n as f64 * sigma[0] / total)
}

#[test]
fn the_identity_has_the_margin_of_forster_schmitt_and_simon() {
    // Forster, Schmitt and Simon 2001, Estimating the optimal margins of embeddings in Euclidean half
    // spaces, abstract: the optimal margin for embedding n singletons is n/(3n − 4).
    for n in [4, 5, 16, 64] {
        let m = Array2::from_shape_fn((n, n), |(i, j)| if i == j { 1.0 } else { -1.0 });
        let (margin, bound) = margin_and_bound(&m);
        let expected = n as f64 / (3 * n - 4) as f64;
        assert!((margin - expected).abs() < 1e-12, "n {n}: {margin}, not {expected}");
        assert!((bound - expected).abs() < 1e-12, "n {n}: at most {bound}, not {expected}");
    }
}

#[test]
fn half_intervals_have_the_margin_of_forster_schmitt_and_simon() {
    // The same abstract: π/(2 ln n) + Θ(1/ln² n) for half intervals over 1, …, n. Their sign matrix,
    // +1 for j ≤ i, is a circulant with a change of sign at the wrap, with singular values
    // 1/sin(π(2k + 1)/(2n)); embedding and bound above meet at n over their sum.
    let mut before = 0.0;
    for n in [8usize, 32, 128, 256] {
        let m = Array2::from_shape_fn((n, n), |(i, j)| if j <= i { 1.0 } else { -1.0 });
        let (margin, bound) = margin_and_bound(&m);
        let sum: f64 = (0..n)
            .map(|k| 1.0 / (std::f64::consts::PI * (2 * k + 1) as f64 / (2 * n) as f64).sin())
            .sum();
        let expected = n as f64 / sum;
        assert!((margin - expected).abs() < 1e-10, "n {n}: {margin}, not {expected}");
        assert!((bound - expected).abs() < 1e-10, "n {n}: at most {bound}, not {expected}");
        let log = (n as f64).ln();
        let leading = margin * 2.0 * log / std::f64::consts::PI;
        let second = (margin - std::f64::consts::PI / (2.0 * log)) * log * log;
        // n/Σ = π/(2(ln n + c)) with c = 0.577… + ln(8/π): the second term tends to −cπ/2 = −2.37.
        assert!((-2.4..-1.0).contains(&second), "n {n}: second term {second}/ln² n");
        assert!(leading > before && leading < 1.0, "n {n}: {leading} of π/(2 ln n)");
        before = leading;
    }
}

#[test]
fn rank_n_reaches_the_full_rank_floor_without_a_mask() {
    // Bhojanapalli et al. 2020, Low-rank bottleneck in multi-head attention models, theorem 1: with
    // d ≥ n any attention matrix can be represented.
    let problem = global(band(20, 6, Visibility::Bidirectional), 20);
    let floor = Floor::new(&problem);
    // To the end: where descent is slow, a fit that stops at quick()'s decrease is a hundredth above.
    let fine =
        SolverBudget { iterations: 20_000, relative_decrease: 1e-8, ..SolverBudget::default() };
    let thorough = SearchOptions { fine, ..quick() };
    for point in frontier(&problem, &[0.5, 1.5, 3.0], thorough, &()).unwrap() {
        let (found, least) = (point.best.unwrap().solution.kl_nats, floor.kl_nats(point.cap));
        assert!(found >= least && found <= 1.01 * least, "cap {}: {found}, {least}", point.cap);
    }
}

#[test]
fn without_a_mask_order_does_not_matter() {
    let n = 32;
    let plain = global(band(n, 8, Visibility::Bidirectional), 4);
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(3));
    // Row and column i of the plain target are row and column order[i] of the other.
    let mut rows = vec![Vec::new(); n];
    for i in 0..n {
        let (columns, a) = plain.target().row(i);
        rows[order[i]] = columns.iter().zip(a).map(|(&j, &a)| (order[j as usize], a)).collect();
    }
    let shuffled = global(Target::from_rows(rows, Visibility::Bidirectional).unwrap(), 4);
    let caps = [2.0, 4.0, 8.0];
    let fits = |problem: &Problem| frontier(problem, &caps, SearchOptions::default(), &()).unwrap();
    for (one, other) in fits(&plain).into_iter().zip(fits(&shuffled)) {
        let [one, other] = [one, other].map(|point| point.best.unwrap().solution.kl_nats);
        assert!((0.95..1.05).contains(&(one / other)), "{one} against {other}");
    }
    let floors = [&plain, &shuffled].map(|problem| Floor::new(problem).kl_nats(2.0));
    assert!((floors[0] - floors[1]).abs() < 1e-13, "{floors:?}");
}
