//! Sums over the rows of an evaluation.

/// Sums and extremes over the rows of a slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// Σᵢ Σⱼ aᵢⱼ log Pᵢⱼ.
    pub likelihood: f64,
    /// The penalty.
    pub penalty: f64,
    pub max_abs_logit: f64,
    pub logit_spread: f64,
    /// Σᵢ sₕᵢ per head: the target's mass of each head.
    pub usage: Vec<f64>,
}

impl Totals {
    pub fn new(heads: usize) -> Self {
        Self { usage: vec![0.0; heads], ..Self::default() }
    }

    pub fn add(&mut self, other: &Self) {
        self.likelihood += other.likelihood;
        self.penalty += other.penalty;
        self.max_abs_logit = self.max_abs_logit.max(other.max_abs_logit);
        self.logit_spread = self.logit_spread.max(other.logit_spread);
        self.usage.iter_mut().zip(&other.usage).for_each(|(to, from)| *to += from);
    }
}
