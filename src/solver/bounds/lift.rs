//! Lower bound from a polynomial lift: low-rank logits within a bound make √P nearly low-rank, and √A may not be.
//!
//! **Statement.** Let one head of rank d have |z| ≤ L on its allowed pairs, and let I × J be a fully allowed block of the
//! target. Then for every degree k, with r = C(d + k, k), τ_r² the sum of the squared singular values of √A[I, J] (square roots
//! of entries) past the r-th, and ρ = ρ_k(L, |J|) of [`row_error`],
//!
//! > √(Σ_{i∈I} KL(Aᵢ ‖ Pᵢ)) ≥ max( τ_r − ρ√|I| , (τ_r − ρ‖√A[I, J]‖_F)/(1 + ρ) ).
//!
//! **Proof.** For a row i let h be its largest logit in J and Sᵢ = Σⱼ e^{zᵢⱼ} over all its allowed columns, so that √pᵢⱼ =
//! Sᵢ^{−½} e^{h/2} e^{x}, x = (zᵢⱼ − h)/2 ∈ [−L, 0]. Replace e^x by a polynomial q of degree k and call the result M. (i) M has
//! rank ≤ r: its row i is a polynomial of degree k in ⟨qᵢ, kⱼ⟩, whose coefficients may differ from row to row, hence linear in
//! the C(d + k, k) monomials of kⱼ. (ii) Σ_{j∈J} (Mᵢⱼ − √pᵢⱼ)² ≤ ρ² Σ_{j∈J} pᵢⱼ ≤ ρ², by the definition of ρ. So ‖M − √P‖_F ≤
//! ρ‖√P‖_F on the block, and ‖√P‖_F is at most √|I| and at most ‖√A‖_F + ‖√A − √P‖_F. (iii) KL(a ‖ p) ≥ Σ(√a − √p)², since −2
//! log √(p/a) ≥ 2(1 − √(p/a)); the sum over J only is smaller still. (iv) τ_r ≤ ‖√A − M‖_F (Eckart and Young). The triangle
//! inequality completes the proof. ∎
//!
//! Blocks without common rows add up: n·kl_nats is at least the sum of their squared bounds.
//!
//! Polynomial approximations of attention's exponential are from Alman and Song 2023 (*Fast attention requires bounded
//! entries*), who approximate each entry of exp(Z) for fast algorithms. The plain form of the argument uses Pinsker's
//! ‖a − p‖₁² ≤ 2 KL on A itself and one polynomial for all entries of e^z. Compared with it, √P halves the exponent. The
//! coefficients of each row adapt to its largest logit, so only the row's range counts. The error of small entries is relative
//! to the row, not to the entry.

use std::collections::HashMap;

use super::blocks::{Block, divisions, squared_tails};
use super::exponential::row_error;
use crate::solver::problem::{LARGEST_CAP, Problem};

/// The largest degree that is tried; at rank 1 there would be hundreds.
const LARGEST_DEGREE: usize = 40;
/// Below this error a higher degree cannot improve the bound.
const NEGLIGIBLE_ERROR: f64 = 1e-3;
/// The bound is evaluated at the logit bounds LARGEST_CAP/STEP^i.
const STEP: f64 = 1.02;
const CAPS: i32 = 400;

/// The lift's bounds of one problem with one head.
#[derive(Debug)]
pub(super) struct Lift {
    n: usize,
    divisions: Vec<Vec<Spectrum>>,
    /// ρ by logit bound, degree and columns; it is the same in every division and for every requested error.
    errors: HashMap<(i32, usize, usize), f64>,
}

/// The quantities of one block that the argument needs.
#[derive(Debug)]
struct Spectrum {
    rows: usize,
    /// Rounded up to a power of two: more columns only increase ρ, and few sizes have to be computed.
    columns: usize,
    /// ‖√A[I, J]‖_F.
    norm: f64,
    /// (k, τ_r) with r = C(d + k, k), by ascending degree, as long as τ_r > 0.
    tails: Vec<(usize, f64)>,
}

impl Lift {
    /// Decomposes √A on the blocks of `problem`, which must have one head.
    pub fn new(problem: &Problem) -> Self {
        let least = problem.rank() + 2;
        let divisions = divisions(problem, least)
            .into_iter()
            .map(|blocks| blocks.iter().filter_map(|block| Spectrum::of(problem, block)).collect())
            .collect();
        Self { n: problem.n(), divisions, errors: HashMap::new() }
    }

    /// A bound L ≥ `from`, at most [`LARGEST_CAP`], such that no factors with max |logit| ≤ L reach `kl_nats`. Returns `None`
    /// if the argument proves none above `from`.
    pub fn max_abs_logit(&mut self, kl_nats: f64, from: f64) -> Option<f64> {
        let lowest = ((LARGEST_CAP / from.max(1e-9)).ln() / STEP.ln()).floor();
        // Counted downwards: place 0 is LARGEST_CAP.
        let mut excluded = (lowest as i32).min(CAPS);
        if excluded < 0 || !self.excludes(excluded, kl_nats) {
            return None;
        }
        let mut open = -1;
        while excluded - open > 1 {
            let middle = open + (excluded - open) / 2;
            if self.excludes(middle, kl_nats) { excluded = middle } else { open = middle }
        }
        Some(cap(excluded))
    }

    /// Whether some division forces an error above `kl_nats` at the logit bound of index `place`.
    fn excludes(&mut self, place: i32, kl_nats: f64) -> bool {
        let budget = kl_nats * self.n as f64;
        let Self { divisions, errors, .. } = self;
        divisions.iter().any(|blocks| {
            let mut forced = 0.0;
            blocks.iter().any(|block| {
                forced += block.forced(place, errors).powi(2);
                forced > budget
            })
        })
    }
}

fn cap(place: i32) -> f64 {
    LARGEST_CAP * STEP.powi(-place)
}

impl Spectrum {
    fn of(problem: &Problem, block: &Block) -> Option<Self> {
        let root = block.roots(problem);
        let tails = squared_tails(&root)?;
        let by_degree = (1..=LARGEST_DEGREE)
            .map_while(|degree| {
                let rank = monomials(problem.rank(), degree).filter(|&r| r < tails.len())?;
                Some((degree, tails[rank].sqrt())).filter(|(_, tail)| *tail > 0.0)
            })
            .collect();
        Some(Self {
            rows: block.rows.len(),
            columns: block.columns.len().next_power_of_two(),
            norm: root.iter().map(|x| x * x).sum::<f64>().sqrt(),
            tails: by_degree,
        })
    }

    /// A lower bound on √(Σ_{i∈I} KLᵢ).
    fn forced(&self, place: i32, errors: &mut HashMap<(i32, usize, usize), f64>) -> f64 {
        let mut forced = 0.0f64;
        for &(degree, tail) in &self.tails {
            if tail <= forced {
                break;
            }
            let error = *errors
                .entry((place, degree, self.columns))
                .or_insert_with(|| row_error(degree, cap(place), self.columns));
            let by_rows = tail - error * (self.rows as f64).sqrt();
            let by_weight = (tail - error * self.norm) / (1.0 + error);
            forced = forced.max(by_rows).max(by_weight);
            if error < NEGLIGIBLE_ERROR {
                break;
            }
        }
        forced
    }
}

/// C(d + k, k), the number of monomials of degree ≤ k in d variables; `None` if it overflows.
fn monomials(d: usize, k: usize) -> Option<usize> {
    (1..=k).try_fold(1usize, |product, i| Some(product.checked_mul(d + i)? / i))
}
