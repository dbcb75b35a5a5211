//! Normalisation of the rows of queries or keys.

/// The normalisation of a row before it is a query or a key: (row − mean)/√(variance + ε) ∘ gain, or if not centred
/// row/√(mean square + ε) ∘ gain (Zhang and Sennrich 2019, arXiv 1910.07467).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalisation {
    /// ε.
    pub epsilon: f64,
    /// Whether the mean is subtracted.
    pub centred: bool,
}

/// A normalised row, and 1/√(variance + ε).
pub(super) struct Normal {
    pub unit: Vec<f64>,
    scale: f64,
    centred: bool,
}

impl Normalisation {
    pub(super) fn of(self, row: &[f64]) -> Normal {
        let d = row.len() as f64;
        let mean = if self.centred { row.iter().sum::<f64>() / d } else { 0.0 };
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / d;
        let scale = 1.0 / (variance + self.epsilon).sqrt();
        let unit = row.iter().map(|v| (v - mean) * scale).collect();
        Normal { unit, scale, centred: self.centred }
    }
}

impl Normal {
    /// Replaces the gradient of gain ∘ unit by that of the row before normalisation, and adds the gradient of the gain to
    /// `of_gain`.
    pub fn pull_back(&self, gain: &[f64], gradient: &mut [f64], of_gain: &mut [f64]) {
        let d = gradient.len() as f64;
        for ((of_gain, g), u) in of_gain.iter_mut().zip(&*gradient).zip(&self.unit) {
            *of_gain += g * u;
        }
        gradient.iter_mut().zip(gain).for_each(|(g, gain)| *g *= gain);
        let mean = if self.centred { gradient.iter().sum::<f64>() / d } else { 0.0 };
        let along = gradient.iter().zip(&self.unit).map(|(g, u)| g * u).sum::<f64>() / d;
        for (g, u) in gradient.iter_mut().zip(&self.unit) {
            *g = (*g - mean - u * along) * self.scale;
        }
    }
}
