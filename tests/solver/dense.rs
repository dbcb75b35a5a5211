//! The attention and KL of heads from dense matrices and the definitions alone, to check the solver's own measurements.

use ndarray::{Array2, Axis};
use rank_study::solver::{Factors, SearchOptions, SolverBudget};
use rank_study::targets::{HeadKind, Layout, Target, Visibility};

/// (kl_nats, max_abs_logit) of heads with these factors.
pub fn reached(target: &Target, layout: &Layout, factors: &Factors) -> (f64, f64) {
    let n = target.n();
    let mut p = Array2::<f64>::zeros((n, n));
    let mut largest = 0.0_f64;
    for (head, &kind) in layout.heads().iter().enumerate() {
        let [q, k] = [factors.queries(), factors.keys()].map(|all| all.index_axis(Axis(0), head));
        let z = q.dot(&k.t()) / (factors.rank() as f64).sqrt();
        for i in 0..n {
            let is_seen = |j: usize| {
                let is_masked = target.visibility() == Visibility::Causal && j > i;
                let is_near = match kind {
                    HeadKind::Global => true,
                    HeadKind::Local { window } => i.abs_diff(j) < window,
                };
                is_near && !is_masked
            };
            let seen: Vec<usize> = (0..n).filter(|&j| is_seen(j)).collect();
            let top = seen.iter().map(|&j| z[[i, j]]).fold(f64::MIN, f64::max);
            let sum: f64 = seen.iter().map(|&j| (z[[i, j]] - top).exp()).sum();
            for j in seen {
                p[[i, j]] += factors.weights()[head] * (z[[i, j]] - top).exp() / sum;
                largest = largest.max(z[[i, j]].abs());
            }
        }
    }
    let attention = target.dense();
    let terms = attention.iter().zip(&p).filter(|(a, _)| **a > 0.0);
    (terms.map(|(a, p)| a * (a / p).ln()).sum::<f64>() / n as f64, largest)
}

/// A search of a few seconds from `starts` starts, of which the best `polished` are polished.
pub fn search(starts: usize, polished: usize, effort: SolverBudget) -> SearchOptions {
    SearchOptions { starts, polished, rough: effort, fine: effort, ..SearchOptions::default() }
}

pub fn effort() -> SolverBudget {
    SolverBudget { iterations: 3000, relative_decrease: 1e-5, ..SolverBudget::default() }
}
