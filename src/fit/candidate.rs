//! Solutions of one problem side by side: which is the better.

use super::solution::Solution;

/// A solution, and the start that it came from.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Which start, counted from 0.
    pub start: usize,
    /// What it reached.
    pub solution: Solution,
}

impl Candidate {
    /// The better of two: the lower kl_nats, and of equals the first.
    pub(super) fn better(self, other: Self) -> Self {
        if other.solution.kl_nats < self.solution.kl_nats { other } else { self }
    }
}

/// The `count` candidates of least kl_nats, best first.
pub(super) fn best_of(candidates: &[Candidate], count: usize) -> Vec<Candidate> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sorted.sort_by(|a, b| a.solution.kl_nats.total_cmp(&b.solution.kl_nats));
    sorted.into_iter().take(count).cloned().collect()
}
