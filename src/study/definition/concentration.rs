//! A study of concentration: on how few tokens, and in how few dimensions, trained heads attend.

use std::path::Path;

use serde::Deserialize;
use toml::Table;

use super::preset::Preset;
use super::trained_models::{self, TrainedModels};

/// Trained heads whose attention is looked at.
#[derive(Clone, Debug)]
pub struct ConcentrationStudy {
    /// Whose heads; numbers are means over the passages of a group.
    pub(crate) models: TrainedModels,
}

/// The table has no keys but those of trained models.
#[derive(Deserialize)]
struct Keys {}

/// `path` is the definition's own: other studies are defined beside it.
pub(super) fn read(
    concentration: Option<&Table>,
    path: &Path,
    preset: Preset,
) -> Result<ConcentrationStudy, String> {
    let (models, Keys {}) = trained_models::read(concentration, "concentration", path, preset)?;
    Ok(ConcentrationStudy { models })
}
