//! The errors ε that rows of trained heads are at.

/// Each once, from large to small.
pub(super) fn descending(epsilons: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = epsilons.collect();
    all.sort_by(|a, b| b.total_cmp(a));
    all.dedup();
    all
}

/// The ε that figures and verdicts tell of: 0.01 where it is among `all`, or else the middle one.
pub(super) fn told(all: &[f64]) -> f64 {
    all.iter().copied().find(|e| *e == 0.01).unwrap_or(all[all.len() / 2])
}
