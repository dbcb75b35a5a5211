//! A study of trained heads: runs × checkpoints × ε, each head held against what its attention needed.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::preset::Preset;
use super::search;
use super::trained_models::{self, TrainedModels};
use crate::fit::SearchOptions;

/// Trained heads to be held against what their attention needed.
#[derive(Clone, Debug)]
pub struct PredictStudy {
    /// Whose heads; a head's queries and keys are fitted to the passages of a group at once.
    pub(crate) models: TrainedModels,
    /// The errors ε, in nats.
    pub(crate) epsilons: Vec<f64>,
    /// Larger ranks at which each head is fitted, beside its own.
    pub(crate) ranks: Vec<usize>,
    /// Rows of a passage that are fitted at most.
    pub(crate) rows: Option<usize>,
    /// Only heads whose max |logit| is above this are fitted, in nats; the others are screened.
    pub(crate) above: Option<f64>,
    /// Whether the factors found are kept, as certificates.
    pub(crate) factors: bool,
    /// How the fits search.
    pub(crate) search: SearchOptions,
}

#[derive(Deserialize)]
struct Predict {
    epsilon: Vec<f64>,
    #[serde(default)]
    ranks: Vec<usize>,
    rows: Option<usize>,
    above: Option<f64>,
    #[serde(default)]
    factors: bool,
}

/// `path` is the definition's own: other studies are defined beside it.
pub(super) fn read(
    predict: Option<&Table>,
    search: &Table,
    path: &Path,
    preset: Preset,
) -> Result<PredictStudy, String> {
    let (models, keys): (_, Predict) = trained_models::read(predict, "predict", path, preset)?;
    let positive = |e: &&f64| !(e.is_finite() && **e > 0.0);
    if keys.epsilon.is_empty() || keys.epsilon.iter().any(|e| positive(&e)) {
        return Err(format!(
            "predict.epsilon is {:?}; it needs finite errors above 0, in nats",
            keys.epsilon
        ));
    }
    if keys.rows == Some(0) {
        return Err("predict.rows must be at least 1".to_owned());
    }
    if keys.above.is_some_and(|above| above.is_nan() || above < 0.0) {
        return Err(format!(
            "predict.above is {:?}; it must be at least 0, or inf to fit no head",
            keys.above.unwrap_or_default()
        ));
    }
    if keys.ranks.contains(&0) || !keys.ranks.is_sorted_by(|a, b| a < b) {
        return Err(format!("predict.ranks is {:?}; it needs ascending ranks", keys.ranks));
    }
    Ok(PredictStudy {
        models,
        epsilons: keys.epsilon,
        ranks: keys.ranks,
        rows: keys.rows,
        above: keys.above,
        factors: keys.factors,
        search: search::of_heads(search)?,
    })
}
