//! Concentration: on how few tokens, and in how few dimensions, trained heads attend.

pub mod claims;
pub mod figures;
mod row;
pub mod tables;

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use super::each_head::{HeadOfGroup, of_each_head};
use super::model_cell::{ModelCell, whole};
use super::model_key::ModelKey;
use super::trained_model::TrainedModel;
use super::trained_models::{self, ModelKeys, TrainedModels};
use crate::claims::Group;
use crate::experiment::{
    Analysed, Both, CellContext, DefinitionTable, Experiment, ModelReferences, RawDefinition,
    StudyError, TextSource, View, rows_of,
};
use crate::heads::held_from;
use crate::run::ModelSource;

pub use crate::heads::{ConcentrationMeasurement, FarConcentration};

/// Trained heads whose attention is looked at.
#[derive(Clone, Debug)]
pub struct ConcentrationStudy {
    /// Whose heads; numbers are means over the passages of a group.
    pub(crate) models: TrainedModels,
}

/// The table has no keys but those of trained models.
#[derive(Deserialize, JsonSchema)]
struct Keys {}

/// The heads of one checkpoint.
pub(crate) struct ConcentrationCell {
    model: TrainedModel,
    /// What is so many tokens back or more is far.
    window: usize,
}

impl Experiment for ConcentrationStudy {
    type Cell = ConcentrationCell;

    const TABLES: &'static [DefinitionTable] =
        &[DefinitionTable::one::<Both<ModelKeys, Keys>>("concentration")];
    const VIEWS: &'static [View] = &[View::new(
        "concentration",
        Group::TrainedHeads,
        "Number of tokens and dimensions that heads use.",
        |studies| {
            let rows = tables::Concentrations::of(&rows_of(studies)?)?;
            Ok(Analysed {
                tables: rows.tables(),
                figures: vec![figures::concentration(&rows)],
                verdicts: claims::concentration(&rows),
            })
        },
    )];

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        let (models, Keys {}) = trained_models::read(raw, "concentration")?;
        Ok(Self { models })
    }

    fn cells(
        &self,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, ConcentrationCell)>, StudyError> {
        let mut cells = Vec::new();
        for (name, model) in TrainedModel::all(&self.models, text, data)? {
            let window = match model.source() {
                ModelSource::Run { definition, .. } => definition.window,
                ModelSource::Published { .. } | ModelSource::Exported { .. } => {
                    let why = "is a published model without a window; name training runs";
                    return Err(StudyError::Definition { path: name.into(), why: why.to_owned() });
                }
            };
            cells.push((name, ConcentrationCell { model, window }));
        }
        Ok(cells)
    }

    fn models(&self) -> Option<&dyn ModelReferences> {
        Some(&self.models)
    }
}

impl ModelCell for ConcentrationCell {
    type Row = ConcentrationMeasurement;

    fn model(&self) -> &TrainedModel {
        &self.model
    }

    fn add_settings(&self, table: &mut Table) {
        table.insert("layers".to_owned(), whole(&self.model.layers()));
    }

    /// Of each head the singular values of three matrices.
    fn cost_s(&self) -> f64 {
        let n = self.model.tokens() as f64;
        let rows = n - held_from(self.model.tokens(), self.window) as f64;
        let source = self.model.source();
        let heads: usize =
            self.model.layers().into_iter().map(|layer| source.head_kinds(layer).len()).sum();
        let decomposed = 3.0 * rows * rows * (n + rows) * SECONDS_PER_PRODUCT;
        heads as f64 * self.model.passages() * (decomposed + rows * n * SECONDS_PER_ENTRY)
    }

    fn key(&self) -> ModelKey {
        ModelKey { window: Some(self.window), ..self.model.key() }
    }

    fn run(
        &self,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<ConcentrationMeasurement>>, StudyError> {
        let model = self.model.read()?;
        of_each_head(&self.model, &*model, context, |of_head| {
            let HeadOfGroup { probes, group, layer, head } = of_head;
            let seed = (group * model.layers() + layer) * model.heads() + head;
            ConcentrationMeasurement::measure(probes, *group, self.window, seed as u64)
        })
    }
}

/// Seconds of one core that singular values take, by the products of a matrix with itself.
const SECONDS_PER_PRODUCT: f64 = 3e-10;
/// Seconds of one core that a row's order takes, by entry.
const SECONDS_PER_ENTRY: f64 = 2e-7;
