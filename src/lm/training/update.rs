//! The AdamW update of one weight.

/// ε, added to the square root of the second moment.
const EPSILON: f32 = 1e-8;

/// Parameters of one weight's update.
pub(in crate::lm) struct Update {
    pub(in crate::lm) gradient_scale: f32,
    pub(in crate::lm) betas: [f32; 2],
    /// 1 − η λ.
    pub(in crate::lm) keep: f32,
    /// η / (1 − β₁ᵗ).
    pub(in crate::lm) rate: f32,
    /// 1 / (1 − β₂ᵗ).
    pub(in crate::lm) second_scale: f32,
}

impl Update {
    /// Updates a weight and its first and second moments.
    pub(super) fn apply(
        &self,
        weight: &mut [f32],
        gradient: &[f32],
        [first, second]: [&mut [f32]; 2],
    ) {
        let [beta_1, beta_2] = self.betas;
        let moments = first.iter_mut().zip(second);
        for ((x, g), (m, v)) in weight.iter_mut().zip(gradient).zip(moments) {
            let g = g * self.gradient_scale;
            *m = beta_1 * *m + (1.0 - beta_1) * g;
            *v = beta_2 * *v + (1.0 - beta_2) * g * g;
            *x = *x * self.keep - self.rate * *m / ((*v * self.second_scale).sqrt() + EPSILON);
        }
    }
}
