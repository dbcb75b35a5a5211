//! Solutions of fits, and their order of preference.

use super::factors::Factors;
use super::outcome::Outcome;

/// An improvement by less than this share is no news to fits at other caps.
pub(super) const NEWS: f64 = 1e-3;

/// Factors within a cap, with what they reach: a certificate that anyone can check.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The factors; max_abs_logit ≤ cap holds exactly.
    pub factors: Factors,
    /// Mean over rows of KL(Aᵢ ‖ Pᵢ), nats.
    pub kl_nats: f64,
    /// max |z| over visible pairs.
    pub max_abs_logit: f64,
    /// max over rows of (max − min) of the visible logits.
    pub logit_spread: f64,
    /// How the fit ended.
    pub outcome: Outcome,
    /// The largest entry of the augmented Lagrangian's gradient where it ended.
    pub gradient_norm: f64,
    /// L-BFGS iterations spent on this fit.
    pub iterations: usize,
    /// Evaluations of objective and gradient spent on this fit.
    pub evaluations: usize,
}

impl Solution {
    /// Whether this one's logits, or where it does not reach ε its error, are a thousandth smaller.
    pub(super) fn is_news_to(&self, other: &Self, tolerance: f64) -> bool {
        let (new, old) = (self, other);
        match [new, old].map(|s| s.kl_nats <= tolerance) {
            [true, true] => new.max_abs_logit < (1.0 - NEWS) * old.max_abs_logit,
            [new_reaches, false] => new_reaches || new.kl_nats < (1.0 - NEWS) * old.kl_nats,
            [false, true] => false,
        }
    }

    /// Less when this one is the better answer to L*(ε): one that reaches ε before one that does
    /// not, then the smaller logits, or else the smaller error.
    pub(super) fn preferred(&self, other: &Self, tolerance: f64) -> std::cmp::Ordering {
        let rank = |s: &Self| {
            if s.kl_nats <= tolerance { (0, s.max_abs_logit) } else { (1, s.kl_nats) }
        };
        let ((a, x), (b, y)) = (rank(self), rank(other));
        a.cmp(&b).then(x.total_cmp(&y))
    }
}

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
