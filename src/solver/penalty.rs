//! The logit bound as an augmented Lagrangian.

use super::problem::Problem;

/// A column whose upper or lower bound was active, with its signed multiplier: positive for z ≤ cap, negative for z ≥ −cap.
pub type Multiplier = (u32, f64);
/// The nonzero multipliers per head and row, columns ascending.
pub type Multipliers = Vec<Vec<Vec<Multiplier>>>;

/// The initial slope of the penalty, in nats per squared logit. The violation of the first stage is about (probability mass
/// that the target has there) / slope.
pub(super) const FIRST_SLOPE: f64 = 0.4;
/// Factor of the slope if the violation decreased by less than half.
const SLOPE_GROWTH: f64 = 4.0;

/// The bound |z| ≤ cap as an augmented Lagrangian: with multiplier λ ≥ 0 and slope ρ, (max(0, λ + ρ(|z| − cap))² − λ²)/(2ρ) for
/// each allowed pair and each bound, divided by n.
#[derive(Clone, Debug, PartialEq)]
pub struct Penalty {
    /// The bound on |z|.
    pub cap: f64,
    /// The slope ρ, in nats per squared logit.
    pub slope: f64,
    /// The multipliers of the active bounds.
    pub multipliers: Multipliers,
}

impl Penalty {
    /// A new penalty without multipliers.
    pub(super) fn new(problem: &Problem, cap: f64, slope: f64) -> Self {
        Self { cap, slope, multipliers: vec![vec![Vec::new(); problem.rows()]; problem.heads()] }
    }

    /// Raises the slope if a stage has not halved the violation, which was `before` and is now `violation`.
    pub(super) fn raise_slope(&mut self, violation: f64, before: f64) {
        if violation > 0.5 * before {
            self.slope *= SLOPE_GROWTH;
        }
    }

    /// Σ|λ|/n: at a minimum this is minus the derivative of kl_nats with respect to the bound.
    pub(super) fn total_multiplier(&self) -> f64 {
        let rows = self.multipliers.first().map_or(1, Vec::len) as f64;
        let all = self.multipliers.iter().flatten().flatten();
        // The sum starts at 0.0, because an empty `sum()` is −0, whose reciprocal is −∞.
        all.map(|(_, m)| m.abs()).fold(0.0, |sum, m| sum + m) / rows
    }

    /// The value and the slope that a multiplier adds to the hinge of a pair.
    pub(super) fn correction(&self, z: f64, multiplier: f64) -> (f64, f64) {
        let (sign, lambda) = (multiplier.signum(), multiplier.abs());
        let plain = self.slope * (sign * z - self.cap).max(0.0);
        let shifted = (lambda + self.slope * (sign * z - self.cap)).max(0.0);
        let value = (shifted * shifted - lambda * lambda - plain * plain) / (2.0 * self.slope);
        (value, sign * (shifted - plain))
    }

    /// Whether the penalty has curvature at a pair: whether its logit exceeds the bound shifted by the pair's multiplier.
    pub(super) fn acts(&self, z: f64, multiplier: f64) -> bool {
        self.shifted(z, multiplier).1 > 0.0
    }

    /// The sign of the active or nearer bound of a pair, and λ + ρ(|z| − cap) there.
    fn shifted(&self, z: f64, multiplier: f64) -> (f64, f64) {
        let sign = if multiplier != 0.0 { multiplier.signum() } else { z.signum() };
        (sign, multiplier.abs() + self.slope * (sign * z - self.cap))
    }

    /// One row's multipliers after an update at its allowed logits `z`, which start at column `first`.
    pub(super) fn update_row(
        &self,
        z: impl Iterator<Item = f64>,
        first: usize,
        old: &[Multiplier],
    ) -> Vec<Multiplier> {
        let mut old = old.iter().copied().peekable();
        let mut updated = Vec::new();
        for (z, j) in z.zip(first..) {
            let before = old.next_if(|&(column, _)| column as usize == j).map_or(0.0, |(_, m)| m);
            let (sign, lambda) = self.shifted(z, before);
            if lambda > 0.0 {
                updated.push((j as u32, sign * lambda));
            }
        }
        updated
    }
}
