//! Solutions of fits and their outcomes, the order of preference, and the points of a frontier.

use super::factors::Factors;

/// The outcome of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Outcome {
    /// The fit reached a stationary point within tolerance.
    Converged,
    /// The iterations ran out first; the best point is kept.
    StepLimit,
    /// The fit was stopped from outside before either; its current point is kept.
    Stopped,
    /// The objective became NaN or infinite; the last finite point is kept.
    Diverged,
    /// No factors are possible: the heads cannot attend to all of the target, or no tried logit bound reached the tolerance.
    #[default]
    Infeasible,
    /// A trained head was not fitted, because its logits are below the requested limit.
    Screened,
}

impl Outcome {
    /// The name in table rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Improvements by less than this share do not trigger fits at other logit bounds.
pub(super) const NEWS: f64 = 1e-3;

/// Factors within a logit bound with their error and logits: a certificate that can be checked.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The factors; max_abs_logit ≤ cap holds exactly.
    pub factors: Factors,
    /// Mean over rows of KL(Aᵢ ‖ Pᵢ), in nats.
    pub kl_nats: f64,
    /// max |z| over allowed pairs.
    pub max_abs_logit: f64,
    /// The largest (max − min) of the allowed logits of a row.
    pub logit_spread: f64,
    /// The outcome of the fit.
    pub outcome: Outcome,
    /// The largest entry of the augmented Lagrangian's gradient at the end.
    pub gradient_norm: f64,
    /// L-BFGS iterations spent on this fit.
    pub iterations: usize,
    /// Evaluations of objective and gradient spent on this fit.
    pub evaluations: usize,
}

impl Solution {
    /// Whether this solution is better than `other` by a thousandth: smaller logits if both reach the tolerance, otherwise a
    /// smaller error.
    pub(super) fn is_news_to(&self, other: &Self, tolerance: f64) -> bool {
        let (new, old) = (self, other);
        match [new, old].map(|s| s.kl_nats <= tolerance) {
            [true, true] => new.max_abs_logit < (1.0 - NEWS) * old.max_abs_logit,
            [new_reaches, false] => new_reaches || new.kl_nats < (1.0 - NEWS) * old.kl_nats,
            [false, true] => false,
        }
    }

    /// Orders solutions for L*(ε), the better one first: a solution that reaches ε comes before one that does not, then the
    /// smaller logits, or else the smaller error.
    pub(super) fn preferred(&self, other: &Self, tolerance: f64) -> std::cmp::Ordering {
        let rank = |s: &Self| {
            if s.kl_nats <= tolerance { (0, s.max_abs_logit) } else { (1, s.kl_nats) }
        };
        let ((a, x), (b, y)) = (rank(self), rank(other));
        a.cmp(&b).then(x.total_cmp(&y))
    }
}

/// A solution with the number of its start.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The number of the start, from 0.
    pub start: usize,
    /// The solution.
    pub solution: Solution,
}

impl Candidate {
    /// The better of two: the lower kl_nats; ties go to the first.
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
