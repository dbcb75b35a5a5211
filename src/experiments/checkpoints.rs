//! Kinds of study with one cell per checkpoint of a trained model.

use std::fmt::Debug;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Table;

use super::model_key::CheckpointKey;
use super::trained_model::TrainedModel;
use super::trained_models::{self, ModelKeys, TrainedModels};
use crate::experiment::{
    CellContext, DefinitionTable, Experiment, Measure, ModelReferences, Needs, RawDefinition,
    StudyError, TextSource, View,
};
use crate::record::Measurement;
use crate::run::ModelSource;

/// The keys of such a kind beside those of [`ModelKeys`]. Its table is called as the kind is.
pub(crate) trait OfCheckpoint:
    DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
    /// See [`Measure::Row`].
    type Row: Measurement<Key = CheckpointKey>;

    /// See [`Experiment::TABLES`].
    const TABLES: &'static [DefinitionTable];

    /// See [`Experiment::VIEWS`].
    const VIEWS: &'static [View];

    /// Checks the values of its keys, and those of [`ModelKeys`] that it restricts.
    fn check(&self, models: &ModelKeys) -> Result<(), String>;

    /// Adds its settings to those of the model.
    fn settings(&self, model: &TrainedModel, table: &mut Table);

    /// See [`Measure::measure`].
    fn measure(
        &self,
        model: &TrainedModel,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<Self::Row>>, StudyError>;
}

/// A study of such a kind.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointStudy<K> {
    models: TrainedModels,
    keys: K,
}

/// A trained model at a step.
pub(crate) struct CheckpointCell<K> {
    model: TrainedModel,
    keys: K,
}

impl<K: OfCheckpoint> Experiment for CheckpointStudy<K> {
    type Cell = CheckpointCell<K>;

    const TABLES: &'static [DefinitionTable] = K::TABLES;
    const VIEWS: &'static [View] = K::VIEWS;

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        let (models, keys): (TrainedModels, K) = trained_models::read(raw, K::Row::NAME)?;
        keys.check(&models.keys)?;
        Ok(Self { models, keys })
    }

    fn cells(
        &self,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, CheckpointCell<K>)>, StudyError> {
        let models = TrainedModel::all(&self.models, text, data)?.into_iter();
        let cell = |model| CheckpointCell { model, keys: self.keys.clone() };
        Ok(models.map(|(key, model)| (key, cell(model))).collect())
    }

    fn models(&self) -> Option<&dyn ModelReferences> {
        Some(&self.models)
    }
}

impl<K: OfCheckpoint> Measure for CheckpointCell<K> {
    type Row = K::Row;

    fn settings(&self) -> Table {
        let mut table = self.model.settings();
        self.keys.settings(&self.model, &mut table);
        table
    }

    fn defaults() -> Table {
        TrainedModel::defaults()
    }

    fn key(&self) -> CheckpointKey {
        let [positions, slopes] = match &self.model.source {
            ModelSource::Run { definition, .. } => {
                [Some(definition.positions.name()), Some(definition.slopes.name())]
            }
            ModelSource::Published { .. } | ModelSource::Exported { .. } => [None, None],
        };
        CheckpointKey {
            model: self.model.key(),
            positions: positions.map(str::to_owned),
            slopes: slopes.map(str::to_owned),
        }
    }

    fn needs(&self) -> Option<Needs> {
        self.model.needs()
    }

    fn lacks(&self, _folder: &Path) -> bool {
        self.model.lacks()
    }

    fn measure(&self, context: &CellContext<'_>) -> Result<Option<Vec<K::Row>>, StudyError> {
        self.keys.measure(&self.model, context)
    }
}
