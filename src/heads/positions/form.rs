//! Logits that know nothing of a pair but where its tokens stand.

use super::rows::SeenRow;

/// A family of logits behind a causal mask, linear in its parameters θ. Row shifts are free in each of them, since softmax does
/// not see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// c·j, by its rise over the whole passage, θ = c (n − 1): the ramp, of one parameter and rank one.
    Ramp,
    /// f(j), any function of the position: rank one.
    Position,
    /// g(i − j), any function of the lag, of any rank.
    Lag,
    /// f(j) + g(i − j).
    PositionAndLag,
}

impl Form {
    /// The slope c, nats a token, of the θ of a ramp.
    pub(in super::super) fn slope(theta: &[f64], tokens: usize) -> f64 {
        theta[0] * unit(tokens)
    }

    /// How many numbers θ has for passages of `tokens`.
    pub(in super::super) fn parameters(self, tokens: usize) -> usize {
        match self {
            Self::Ramp => 1,
            Self::Position | Self::Lag => tokens,
            Self::PositionAndLag => 2 * tokens,
        }
    }

    /// The logits of θ in the columns that a row sees.
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

    /// The transpose: adds Σ_j weight_j ∂z_j/∂θ of a row to `into`.
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

    /// Adds each parameter's own entry of Σ_j scale · mass_j (x_j − mean)(x_j − mean)ᵀ, x_j = ∂z_j/∂θ and mean = Σ mass_j x_j,
    /// to `into`: a row's part of the diagonal of the form's covariances.
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
        // A parameter is in one column only, with 1.
        let variances: Vec<f64> = masses.iter().map(|p| scale * p * (1.0 - p)).collect();
        self.gather(&variances, tokens, row, into);
    }
}

fn add<'w>(into: &mut [f64], weights: impl Iterator<Item = &'w f64>) {
    for (sum, weight) in into.iter_mut().zip(weights) {
        *sum += weight;
    }
}

/// The rise of one column where the whole passage's is 1.
fn unit(tokens: usize) -> f64 {
    1.0 / (tokens.max(2) - 1) as f64
}
