//! kl_nats of a layout of low-rank heads, with its gradient and the logits' extremes, in one pass
//! over tiles of rows.
//!
//! A tile is a block of rows against the columns that any of them sees, so a window of w costs
//! O(n·w) and no n × n array is built.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};

use super::factors::{matrix, weights_of};
use super::penalty::{Multiplier, Penalty};
use super::problem::Problem;
use super::rowwise;

/// Rows of a tile: enough for the matrix products to run well, few enough that a tile stays in
/// the second-level cache at n in the hundreds.
const TILE_ROWS: usize = 48;

/// What one evaluation returns beside the gradient.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evaluation {
    /// kl_nats plus the penalty.
    pub value: f64,
    /// Mean over rows of KL(Aᵢ ‖ Pᵢ).
    pub kl_nats: f64,
    /// max |z| over the visible pairs of every head.
    pub max_abs_logit: f64,
    /// max over heads and rows of (max − min over visible pairs).
    pub logit_spread: f64,
}

/// The work space of one head's tile.
struct Tile {
    /// The first column of the tile.
    first: usize,
    logits: Array2<f64>,
    /// exp(z − the row's maximum), then the gradient with respect to the logits.
    work: Array2<f64>,
    /// For each row, its maximum and Σ exp(z − maximum).
    softmax: Vec<(f64, f64)>,
    /// For the row at hand, a·r at each of the target's entries: the target's mass that falls to
    /// this head.
    shares: Vec<f64>,
}

/// The objective of one problem with its work space, so that an evaluation allocates nothing large.
pub(super) struct Objective<'p> {
    problem: &'p Problem,
    /// Σ a log a / n: what kl_nats is before the fit has any likelihood.
    negative_entropy: f64,
    tiles: Vec<Tile>,
    pub evaluations: usize,
}

impl<'p> Objective<'p> {
    pub fn new(problem: &'p Problem) -> Self {
        crate::blas::single_threaded_blas();
        let (n, rows) = (problem.n(), TILE_ROWS.min(problem.n()));
        let tile = || Tile {
            first: 0,
            logits: Array2::zeros((rows, n)),
            work: Array2::zeros((rows, n)),
            softmax: vec![(0.0, 0.0); rows],
            shares: Vec::new(),
        };
        Self {
            problem,
            negative_entropy: problem.target().mean_log_likelihood_of_itself(),
            tiles: (0..problem.heads()).map(|_| tile()).collect(),
            evaluations: 0,
        }
    }

    pub fn problem(&self) -> &'p Problem {
        self.problem
    }

    /// Evaluates at x and writes the gradient of kl_nats plus the penalty to `gradient`.
    ///
    /// With one head, ∂kl/∂zᵢⱼ = (pᵢⱼ − aᵢⱼ)/n. With several, rₕᵢⱼ = πₕpₕᵢⱼ/Pᵢⱼ being head h's share
    /// of pair (i, j) and sₕᵢ = Σⱼ aᵢⱼrₕᵢⱼ, it is (sₕᵢpₕᵢⱼ − aᵢⱼrₕᵢⱼ)/n, and ∂kl/∂log πₕ =
    /// πₕ − Σᵢ sₕᵢ/n.
    pub fn evaluate(
        &mut self,
        x: &[f64],
        penalty: Option<&Penalty>,
        gradient: &mut [f64],
    ) -> Evaluation {
        self.evaluations += 1;
        let (n, d, heads) = (self.problem.n(), self.problem.rank(), self.problem.heads());
        let weights = weights_of(x, heads, n, d);
        let mut total = Evaluation {
            value: 0.0,
            kl_nats: self.negative_entropy,
            max_abs_logit: 0.0,
            logit_spread: 0.0,
        };
        let mut usage = vec![0.0; heads];
        gradient.fill(0.0);
        for first_row in (0..n).step_by(TILE_ROWS) {
            let rows = first_row..n.min(first_row + TILE_ROWS);
            for head in 0..heads {
                self.softmax_tile(x, head, rows.clone(), &mut total);
            }
            for row in rows.clone() {
                total.kl_nats -= self.share_row(&weights, row, row - first_row) / n as f64;
                for (head, usage) in usage.iter_mut().enumerate() {
                    let (value, mass) = self.row_gradient(head, row, row - first_row, penalty);
                    total.value += value;
                    *usage += mass / n as f64;
                }
            }
            for head in 0..heads {
                self.accumulate(x, head, rows.clone(), gradient);
            }
        }
        total.value += total.kl_nats;
        if heads > 1 {
            for (head, g) in gradient[2 * heads * n * d..].iter_mut().enumerate() {
                *g = weights[head] - usage[head];
            }
        }
        total
    }

    /// kl_nats and the logits' extremes at x.
    pub fn measure(&mut self, x: &[f64]) -> Evaluation {
        let mut gradient = vec![0.0; x.len()];
        self.evaluate(x, None, &mut gradient)
    }

    /// The logits of one head's tile, their extremes, exponentials and sums.
    fn softmax_tile(&mut self, x: &[f64], head: usize, rows: Range<usize>, total: &mut Evaluation) {
        let (n, d) = (self.problem.n(), self.problem.rank());
        let kind = self.problem.layout().heads()[head];
        let columns = self.tile_columns(head, &rows);
        let tile = &mut self.tiles[head];
        tile.first = columns.start;
        let (q, k) = head_of(x, head, n, d);
        general_mat_mul(
            1.0 / (d as f64).sqrt(),
            &q.slice(s![rows.clone(), ..]),
            &k.slice(s![columns.clone(), ..]).t(),
            0.0,
            &mut tile.logits.slice_mut(s![..rows.len(), ..columns.len()]),
        );
        for (local, row) in rows.enumerate() {
            let seen = self.problem.columns(kind, row);
            let seen = seen.start - tile.first..seen.end - tile.first;
            let z = &contiguous(&tile.logits, local)[seen.clone()];
            let (low, high) = rowwise::extremes(z);
            total.max_abs_logit = total.max_abs_logit.max(high.max(-low));
            total.logit_spread = total.logit_spread.max(high - low);
            let work = contiguous_mut(&mut tile.work, local);
            work[..seen.start].fill(0.0);
            work[seen.end..columns.len()].fill(0.0);
            tile.softmax[local] = (high, rowwise::exponentials(z, high, &mut work[seen]));
        }
    }

    /// Σⱼ aᵢⱼ log Pᵢⱼ of one row; leaves in each tile the shares a·r of the target's entries.
    fn share_row(&mut self, weights: &[f64], row: usize, local: usize) -> f64 {
        let (columns, probabilities) = self.problem.target().row(row);
        if let [tile] = self.tiles.as_mut_slice() {
            let (shift, sum) = tile.softmax[local];
            let z = tile.logits.row(local);
            tile.shares.clear();
            tile.shares.extend_from_slice(probabilities);
            let linear: f64 = columns
                .iter()
                .zip(probabilities)
                .map(|(&j, a)| a * z[j as usize - tile.first])
                .sum();
            return linear - shift - sum.ln();
        }
        let kinds = self.problem.layout().heads();
        let offsets: Vec<f64> = self
            .tiles
            .iter()
            .zip(weights)
            .map(|(tile, w)| w.ln() - tile.softmax[local].0 - tile.softmax[local].1.ln())
            .collect();
        self.tiles.iter_mut().for_each(|tile| tile.shares.clear());
        let mut likelihood = 0.0;
        for (&j, &a) in columns.iter().zip(probabilities) {
            let j = j as usize;
            let mut highest = f64::NEG_INFINITY;
            for ((tile, &kind), offset) in self.tiles.iter_mut().zip(kinds).zip(&offsets) {
                let joint = if self.problem.columns(kind, row).contains(&j) {
                    offset + tile.logits[[local, j - tile.first]]
                } else {
                    f64::NEG_INFINITY
                };
                tile.shares.push(joint);
                highest = highest.max(joint);
            }
            let last = |tile: &Tile| tile.shares[tile.shares.len() - 1];
            let sum: f64 = self.tiles.iter().map(|tile| (last(tile) - highest).exp()).sum();
            let log_p = highest + sum.ln();
            likelihood += a * log_p;
            for tile in &mut self.tiles {
                if let Some(share) = tile.shares.last_mut() {
                    *share = a * (*share - log_p).exp();
                }
            }
        }
        likelihood
    }

    /// Turns one row of a tile's exponentials into the gradient with respect to its logits; returns
    /// the row's penalty and the target mass that fell to this head.
    fn row_gradient(
        &mut self,
        head: usize,
        row: usize,
        local: usize,
        penalty: Option<&Penalty>,
    ) -> (f64, f64) {
        let n = self.problem.n() as f64;
        let seen = self.problem.columns(self.problem.layout().heads()[head], row);
        let tile = &mut self.tiles[head];
        let first = tile.first;
        let seen = seen.start - first..seen.end - first;
        let z = contiguous(&tile.logits, local);
        let gradient = contiguous_mut(&mut tile.work, local);
        let mass: f64 = tile.shares.iter().sum();
        let scale = mass / (n * tile.softmax[local].1);
        gradient[seen.clone()].iter_mut().for_each(|g| *g *= scale);
        let mut value = 0.0;
        if let Some(penalty) = penalty {
            let slope = penalty.slope / n;
            value = rowwise::hinge(&z[seen.clone()], penalty.cap, slope, &mut gradient[seen]);
            for &(j, multiplier) in &penalty.multipliers[head][row] {
                let j = j as usize - first;
                let (extra, slope) = penalty.correction(z[j], multiplier);
                value += extra / n;
                gradient[j] += slope / n;
            }
        }
        let (columns, _) = self.problem.target().row(row);
        for (&j, share) in columns.iter().zip(&tile.shares) {
            if *share > 0.0 {
                gradient[j as usize - first] -= share / n;
            }
        }
        (value, mass)
    }

    /// Adds one tile's part of the gradient: ∂/∂Q = G·K/√d, ∂/∂K = Gᵀ·Q/√d.
    fn accumulate(&mut self, x: &[f64], head: usize, rows: Range<usize>, gradient: &mut [f64]) {
        let (n, d) = (self.problem.n(), self.problem.rank());
        let columns = self.tile_columns(head, &rows);
        let (q, k) = head_of(x, head, n, d);
        let g = self.tiles[head].work.slice(s![..rows.len(), ..columns.len()]);
        let pair = &mut gradient[2 * head * n * d..2 * (head + 1) * n * d];
        let (gradient_q, gradient_k) = pair.split_at_mut(n * d);
        let scale = 1.0 / (d as f64).sqrt();
        general_mat_mul(
            scale,
            &g,
            &k.slice(s![columns.clone(), ..]),
            0.0,
            &mut matrix_mut(gradient_q, n, d).slice_mut(s![rows.clone(), ..]),
        );
        general_mat_mul(
            scale,
            &g.t(),
            &q.slice(s![rows, ..]),
            1.0,
            &mut matrix_mut(gradient_k, n, d).slice_mut(s![columns, ..]),
        );
    }

    /// The columns that any of these rows sees through a head.
    fn tile_columns(&self, head: usize, rows: &Range<usize>) -> Range<usize> {
        let kind = self.problem.layout().heads()[head];
        self.problem.columns(kind, rows.start).start..self.problem.columns(kind, rows.end - 1).end
    }

    /// For each head and row, the multipliers after one augmented-Lagrangian update at x:
    /// λ ← max(0, λ + ρ(|z| − cap)) for each bound; entries at zero are dropped.
    pub fn updated_multipliers(
        &mut self,
        x: &[f64],
        penalty: &Penalty,
    ) -> Vec<Vec<Vec<Multiplier>>> {
        let n = self.problem.n();
        let mut updated = vec![Vec::with_capacity(n); self.problem.heads()];
        let mut unused =
            Evaluation { value: 0.0, kl_nats: 0.0, max_abs_logit: 0.0, logit_spread: 0.0 };
        for first_row in (0..n).step_by(TILE_ROWS) {
            let rows = first_row..n.min(first_row + TILE_ROWS);
            for (head, updated) in updated.iter_mut().enumerate() {
                self.softmax_tile(x, head, rows.clone(), &mut unused);
                let kind = self.problem.layout().heads()[head];
                let tile = &self.tiles[head];
                for row in rows.clone() {
                    let seen = self.problem.columns(kind, row);
                    let z = contiguous(&tile.logits, row - first_row);
                    let old = &penalty.multipliers[head][row];
                    updated.push(penalty.update_row(z, tile.first, seen, old));
                }
            }
        }
        updated
    }
}

fn head_of(
    x: &[f64],
    head: usize,
    n: usize,
    d: usize,
) -> (ArrayView2<'_, f64>, ArrayView2<'_, f64>) {
    let pair = &x[2 * head * n * d..2 * (head + 1) * n * d];
    (matrix(&pair[..n * d], n, d), matrix(&pair[n * d..], n, d))
}

fn matrix_mut(x: &mut [f64], n: usize, d: usize) -> ArrayViewMut2<'_, f64> {
    ArrayViewMut2::from_shape((n, d), x).expect("a slice of n·rank values is an n × rank matrix")
}

fn contiguous(tile: &Array2<f64>, row: usize) -> &[f64] {
    let width = tile.ncols();
    &tile.as_slice().expect("tiles are stored row by row")[row * width..(row + 1) * width]
}

fn contiguous_mut(tile: &mut Array2<f64>, row: usize) -> &mut [f64] {
    let width = tile.ncols();
    &mut tile.as_slice_mut().expect("tiles are stored row by row")[row * width..(row + 1) * width]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Family, Parameters, Target, Visibility};
    use proptest::prelude::*;

    fn problem(layout: &str, visibility: Visibility, n: usize, rank: usize, seed: u64) -> Problem {
        let parameters = Parameters {
            window: Some(5),
            m: Some(3),
            local: Some("dirichlet-band".to_owned()),
            global: Some("landmark".to_owned()),
            ..Parameters::default()
        };
        let family = Family::from_parameters("mixture", &parameters).unwrap();
        let target = family.build(n, seed, visibility).unwrap();
        Problem::new(target, layout.parse().unwrap(), rank).unwrap()
    }

    fn vector(problem: &Problem, seed: u64) -> Vec<f64> {
        let mut x = super::super::start::random(problem, 8.0, seed).unwrap().to_vector();
        if problem.heads() > 1 {
            let length = x.len();
            x[length - 1] += 0.3;
        }
        x
    }

    /// kl_nats by dense matrices and the definition, with nothing of the tiled pass in it.
    fn naive_kl(problem: &Problem, x: &[f64]) -> f64 {
        let (n, d) = (problem.n(), problem.rank());
        let weights = weights_of(x, problem.heads(), n, d);
        let mut mixed = Array2::<f64>::zeros((n, n));
        for (head, &kind) in problem.layout().heads().iter().enumerate() {
            let (q, k) = head_of(x, head, n, d);
            let z = q.dot(&k.t()) / (d as f64).sqrt();
            for i in 0..n {
                let seen = problem.columns(kind, i);
                let sum: f64 = seen.clone().map(|j| z[[i, j]].exp()).sum();
                for j in seen {
                    mixed[[i, j]] += weights[head] * z[[i, j]].exp() / sum;
                }
            }
        }
        let row = |i: usize| {
            let (columns, a) = problem.target().row(i);
            let terms = columns.iter().zip(a);
            terms.map(|(&j, a)| a * (a / mixed[[i, j as usize]]).ln()).sum::<f64>()
        };
        (0..n).map(row).sum::<f64>() / n as f64
    }

    fn largest_gradient_error(problem: &Problem, x: &[f64], penalty: Option<&Penalty>) -> f64 {
        let mut objective = Objective::new(problem);
        let mut gradient = vec![0.0; x.len()];
        objective.evaluate(x, penalty, &mut gradient);
        let mut scratch = vec![0.0; x.len()];
        let mut worst = 0.0f64;
        for i in 0..x.len() {
            let mut at = |offset: f64| {
                let mut moved = x.to_vec();
                moved[i] += offset;
                objective.evaluate(&moved, penalty, &mut scratch).value
            };
            let h = 1e-5;
            let difference = (at(h) - at(-h)) / (2.0 * h);
            worst = worst.max((difference - gradient[i]).abs());
        }
        worst
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn value_and_gradient_agree_with_the_definition(
            layout in prop::sample::select(vec!["global", "2xglobal", "local:6+global", "local:3+2xglobal"]),
            bidirectional in any::<bool>(),
            n in 7usize..60,
            rank in 1usize..5,
            seed in 0u64..1000,
        ) {
            let visibility =
                if bidirectional { Visibility::Bidirectional } else { Visibility::Causal };
            let problem = problem(layout, visibility, n, rank, seed);
            let x = vector(&problem, seed);
            let kl_nats = Objective::new(&problem).measure(&x).kl_nats;
            let expected = naive_kl(&problem, &x);
            prop_assert!((kl_nats - expected).abs() < 1e-12 * expected.max(1.0), "{kl_nats} against {expected}");
            let worst = largest_gradient_error(&problem, &x, None);
            prop_assert!(worst < 1e-8, "largest difference {worst:e}");
        }
    }

    #[test]
    fn the_penalty_s_gradient_agrees_with_finite_differences() {
        for layout in ["global", "local:6+global"] {
            let problem = problem(layout, Visibility::Causal, 20, 3, 4);
            let x = vector(&problem, 4);
            let mut objective = Objective::new(&problem);
            let mut penalty = Penalty::new(&problem, 0.3, 2.0);
            // Twice, so that there are multipliers of bounds that are active and of some that are not.
            penalty.multipliers = objective.updated_multipliers(&x, &penalty);
            penalty.cap = 0.5;
            penalty.multipliers = objective.updated_multipliers(&x, &penalty);
            assert!(penalty.total_multiplier() > 0.0, "{layout}: no bound was active");
            let worst = largest_gradient_error(&problem, &x, Some(&penalty));
            assert!(worst < 1e-7, "{layout}: largest difference {worst:e}");
        }
    }

    #[test]
    fn a_shift_of_a_row_s_logits_changes_nothing() {
        let problem = problem("global", Visibility::Causal, 30, 4, 1);
        let mut x = vector(&problem, 1);
        // Keys with a constant in one dimension turn that dimension of a query into a row shift.
        let (n, d) = (30, 4);
        (0..n).for_each(|j| x[n * d + j * d] = 1.0);
        let before = Objective::new(&problem).measure(&x).kl_nats;
        (0..n).for_each(|i| x[i * d] += 3.0 + i as f64);
        let after = Objective::new(&problem).measure(&x).kl_nats;
        assert!((before - after).abs() < 1e-12, "{before} against {after}");
    }

    #[test]
    fn extremes_are_over_visible_pairs_alone() {
        let target =
            Target::from_rows(vec![vec![(0, 1.0)], vec![(1, 1.0)]], Visibility::Causal).unwrap();
        let problem = Problem::new(target, "global".parse().unwrap(), 1).unwrap();
        // z = [[2, 200], [3, 300]]: the 200 is hidden.
        let seen = Objective::new(&problem).measure(&[2.0, 3.0, 1.0, 100.0]);
        assert_eq!((seen.max_abs_logit, seen.logit_spread), (300.0, 297.0));
    }
}
