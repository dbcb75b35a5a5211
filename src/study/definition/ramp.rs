//! A study of ramps: how much of trained heads' logits and attention a ramp over positions is.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::preset::Preset;
use super::trained_models::{self, TrainedModels};

/// Trained heads to be held against ramps over positions.
#[derive(Clone, Debug)]
pub struct RampStudy {
    /// Whose heads; one ramp is fitted to the passages of a group.
    pub(crate) models: TrainedModels,
    /// Rows of a passage that are held at most.
    pub(crate) rows: Option<usize>,
}

#[derive(Deserialize)]
struct Keys {
    rows: Option<usize>,
}

/// `path` is the definition's own: other studies are defined beside it.
pub(super) fn read(ramp: Option<&Table>, path: &Path, preset: Preset) -> Result<RampStudy, String> {
    let (models, keys): (_, Keys) = trained_models::read(ramp, "ramp", path, preset)?;
    if keys.rows == Some(0) {
        return Err("ramp.rows must be at least 1".to_owned());
    }
    Ok(RampStudy { models, rows: keys.rows })
}
