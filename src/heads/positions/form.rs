//! Families of logits that depend only on the positions of query and key.

use super::rows::SeenRow;

/// A family of logits behind a causal mask, linear in its parameters θ. Row shifts are free in each family, since softmax
/// cancels them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// c·j, the ramp, of one parameter and rank one. θ = c (n − 1) is its rise over the whole passage.
    Ramp,
    /// f(j), any function of the position: rank one.
    Position,
    /// g(i − j), any function of the relative distance, of any rank.
    Lag,
    /// f(j) + g(i − j).
    PositionAndLag,
}

impl Form {
    /// The slope c per token of a ramp's θ.
    pub(in super::super) fn slope(theta: &[f64], tokens: usize) -> f64 {
        theta[0] * unit(tokens)
    }

    /// The number of entries of θ for passages of `tokens`.
    pub(in super::super) fn parameters(self, tokens: usize) -> usize {
        match self {
            Self::Ramp => 1,
            Self::Position | Self::Lag => tokens,
            Self::PositionAndLag => 2 * tokens,
        }
    }

    /// Writes the logits of θ in the columns of a row to `into`.
    pub(super) fn logits(self, theta: &[f64], tokens: usize, row: &SeenRow<'_>, into: &mut [f64]) {
        let seen = row.columns.clone();
        match self {
            Self::Ramp => {
                let slope = theta[0] * unit(tokens);
                for (z, column) in into.iter_mut().zip(seen) {
                    *z = slope * column as f64;
                }
            }
            Self::Position => into.copy_from_slice(&theta[seen]),
            Self::Lag => {
                let lags = &theta[row.lags()];
                for (z, g) in into.iter_mut().zip(lags.iter().rev()) {
                    *z = *g;
                }
            }
            Self::PositionAndLag => {
                let (position, lag) = theta.split_at(tokens);
                let lags = &lag[row.lags()];
                for ((z, f), g) in into.iter_mut().zip(&position[seen]).zip(lags.iter().rev()) {
                    *z = f + g;
                }
            }
        }
    }

    /// The transpose of [`Self::logits`]: adds Σ_j weight_j ∂z_j/∂θ of a row to `into`.
    pub(super) fn gather(
        self,
        weights: &[f64],
        tokens: usize,
        row: &SeenRow<'_>,
        into: &mut [f64],
    ) {
        let seen = row.columns.clone();
        match self {
            Self::Ramp => {
                let along = seen.zip(weights).map(|(column, w)| column as f64 * w);
                into[0] += unit(tokens) * along.sum::<f64>();
            }
            Self::Position => add(&mut into[seen], weights.iter()),
            Self::Lag => add(&mut into[row.lags()], weights.iter().rev()),
            Self::PositionAndLag => {
                let (position, lag) = into.split_at_mut(tokens);
                add(&mut position[seen], weights.iter());
                add(&mut lag[row.lags()], weights.iter().rev());
            }
        }
    }

    /// Adds the diagonal of Σ_j scale · mass_j (x_j − mean)(x_j − mean)ᵀ to `into`, with x_j = ∂z_j/∂θ and mean = Σ mass_j x_j.
    /// This is a row's share of the diagonal of [`Covariance`](super::covariance::Covariance).
    pub(super) fn gather_variances(
        self,
        masses: &[f64],
        scale: f64,
        tokens: usize,
        row: &SeenRow<'_>,
        into: &mut [f64],
    ) {
        if self == Self::Ramp {
            let pairs = || row.columns.clone().zip(masses).map(|(column, p)| (column as f64, p));
            let mean: f64 = pairs().map(|(column, p)| p * column).sum();
            let variance: f64 = pairs().map(|(column, p)| p * (column - mean).powi(2)).sum();
            into[0] += scale * unit(tokens).powi(2) * variance;
            return;
        }
        // Each parameter applies to one column of the row only, with coefficient 1.
        let variances: Vec<f64> = masses.iter().map(|p| scale * p * (1.0 - p)).collect();
        self.gather(&variances, tokens, row, into);
    }
}

fn add<'w>(into: &mut [f64], weights: impl Iterator<Item = &'w f64>) {
    for (sum, weight) in into.iter_mut().zip(weights) {
        *sum += weight;
    }
}

/// The rise from one column to the next if the rise over the whole passage is 1.
fn unit(tokens: usize) -> f64 {
    1.0 / (tokens.max(2) - 1) as f64
}
