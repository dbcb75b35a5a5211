//! Lower bound from the rank of log A: where A is positive, P = A needs logits log A plus row shifts.
//!
//! **Statement.** Let A > 0 on a fully allowed block I × J, with a_min its smallest entry, uᵢ the smallest entry of its row i,
//! and vᵢ the number of columns to which row i may attend. Let τ² be the sum of the squared singular values of diag(√u)·log
//! A[I, J] past the (d + 1)-th. A head of rank d with |z| ≤ L and kl_nats ≤ ε has
//!
//! > Σ_{i∈I} KL(Aᵢ ‖ Pᵢ) ≥ c(T)·τ², c(T) = (e^{−T} − 1 + T)/T²,
//! > T = min( 2L + max_{I,J} log(vᵢaᵢⱼ) , 1 + nε/a_min ).
//!
//! The second form of T does not depend on L: if it gives c(T)τ² > nε, then **no logits of any size** reach ε at this rank,
//! that is E*(∞) > ε.
//!
//! **Proof.** Let t = log(p/a). As Σⱼ a e^t ≤ 1 over the support, KL = −Σ a t ≥ Σ a φ(t) with φ(t) = e^t − 1 − t ≥ 0, so it
//! suffices to sum over J. φ(t)/t² increases, so φ(t) ≥ c(T)t² for t ≥ −T. Both forms of T satisfy this: p ≥ e^{−2L}/vᵢ; and
//! a·φ(t) ≤ nε with φ(t) ≥ −t − 1 gives −t ≤ 1 + nε/a. Finally, on the block t = Z − log A minus a shift for each row, and Z
//! with the shifts has rank ≤ d + 1, also with rows multiplied by √uᵢ: Σ a t² ≥ Σ uᵢt² ≥ τ² (Eckart and Young). ∎
//!
//! It is useful at small ε only, since c(T) behaves as 1/T and u is the smallest weight of a row.

use super::blocks::{Block, divisions, squared_tails};
use crate::solver::problem::{LARGEST_CAP, Problem};

/// Bisection steps for L.
const HALVINGS: usize = 40;

/// The log-rank bounds of one problem with one head.
#[derive(Debug)]
pub(super) struct LogRank {
    n: usize,
    divisions: Vec<Vec<LogBlock>>,
}

#[derive(Debug)]
struct LogBlock {
    /// max log(vᵢaᵢⱼ).
    largest: f64,
    /// a_min.
    least: f64,
    /// τ².
    squared_tail: f64,
}

impl LogRank {
    /// Decomposes log A on the positive blocks of `problem`, which must have one head.
    pub fn new(problem: &Problem) -> Self {
        let divisions = divisions(problem, problem.rank() + 2, |weighted, rows| weighted == rows)
            .into_iter()
            .map(|blocks| blocks.iter().filter_map(|block| LogBlock::of(problem, block)).collect())
            .collect();
        Self { n: problem.n(), divisions }
    }

    /// A bound L, at most [`LARGEST_CAP`], such that no factors with max |logit| ≤ L reach `kl_nats`; 0 if nothing is proven.
    pub fn max_abs_logit(&self, kl_nats: f64) -> f64 {
        let excludes = |cap: f64| {
            self.divisions.iter().any(|blocks| {
                let forced: f64 =
                    blocks.iter().map(|block| block.forced(cap, self.n, kl_nats)).sum();
                forced > kl_nats * self.n as f64
            })
        };
        if excludes(LARGEST_CAP) {
            return LARGEST_CAP;
        }
        let (mut low, mut high) = (0.0, LARGEST_CAP);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if excludes(middle) { low = middle } else { high = middle }
        }
        low
    }
}

impl LogBlock {
    fn of(problem: &Problem, block: &Block) -> Option<Self> {
        let a = block.dense(problem, |a| a);
        let kind = problem.layout().heads()[0];
        let mut scaled = a.mapv(f64::ln);
        let (mut largest, mut least) = (f64::NEG_INFINITY, f64::INFINITY);
        for (row, (a, mut logs)) in
            block.rows.clone().zip(a.rows().into_iter().zip(scaled.rows_mut()))
        {
            let lowest = a.iter().copied().fold(f64::INFINITY, f64::min);
            let highest = a.iter().copied().fold(0.0, f64::max);
            let visible = problem.columns(kind, row).len() as f64;
            largest = largest.max((visible * highest).ln());
            least = least.min(lowest);
            logs *= lowest.sqrt();
        }
        let squared_tail = *squared_tails(&scaled)?.get(problem.rank() + 1)?;
        Some(Self { largest, least, squared_tail })
    }

    /// c(T)·τ².
    fn forced(&self, cap: f64, n: usize, kl_nats: f64) -> f64 {
        let by_cap = (2.0 * cap + self.largest).max(0.0);
        let by_error = 1.0 + n as f64 * kl_nats / self.least;
        convexity(by_cap.min(by_error)) * self.squared_tail
    }
}

/// c(T) = (e^{−T} − 1 + T)/T².
fn convexity(t: f64) -> f64 {
    // Below 1e-3 the quotient loses digits by cancellation; the series 1/2 − T/6 + … lies above its first two terms.
    if t < 1e-3 { 0.5 - t / 6.0 } else { ((-t).exp_m1() + t) / (t * t) }
}
