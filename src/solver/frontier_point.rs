//! One point of the frontier E*(L).

use super::solution::Candidate;

/// The best factors found within one logit bound.
#[derive(Clone, Debug)]
pub struct FrontierPoint {
    /// The bound on |z|.
    pub cap: f64,
    /// The best factors within the bound; `None` if the heads cannot attend to all of the target.
    pub best: Option<Candidate>,
}

impl FrontierPoint {
    /// The best kl_nats; ∞ without factors.
    pub(super) fn kl_nats(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.solution.kl_nats)
    }

    /// Keeps the candidate if it is better than the best so far.
    pub(super) fn offer(&mut self, candidate: Option<Candidate>) {
        self.best = match (self.best.take(), candidate) {
            (Some(old), Some(new)) => Some(old.better(new)),
            (old, new) => old.or(new),
        };
    }
}
