//! Compares trained heads with ramps over positions: how much of their logits and attention a ramp explains.

pub mod figures;
pub(crate) mod keys;
mod row;
pub mod tables;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use super::trained_model::TrainedModel;
use super::trained_models::{self, MOST_ROWS, ModelKeys, TrainedModels};
use crate::claims::Group;
use crate::experiment::{
    Analysed, Both, CellContext, DefinitionTable, Experiment, Measure, ModelReferences, Needs,
    RawDefinition, StudyError, TextSource, View, rows_of,
};
pub use crate::heads::RampMeasurement;
use crate::lm::HeadProbe;
use crate::run::ModelSource;

pub use row::RampKey;

/// Trained heads to compare with ramps over positions.
#[derive(Clone, Debug)]
pub struct RampStudy {
    /// The models; one ramp is fitted per head to the passages of a group.
    pub(crate) models: TrainedModels,
    /// The maximum number of measured rows per passage.
    pub(crate) rows: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct Keys {
    /// Queries per passage that are measured; default all.
    rows: Option<usize>,
}

/// The heads of one checkpoint.
pub(crate) struct RampCell {
    model: TrainedModel,
    study: Arc<RampStudy>,
}

impl Experiment for RampStudy {
    type Cell = RampCell;

    const TABLES: &'static [DefinitionTable] =
        &[DefinitionTable::one::<Both<ModelKeys, Keys>>("ramp")];
    const VIEWS: &'static [View] = &[
        View::new(
            "ramp",
            Group::TrainedHeads,
            "Logits of trained heads against a linear ramp of the distance.",
            |studies| {
                let rows = tables::Ramps::of(&rows_of(studies)?)?;
                Ok(Analysed {
                    tables: vec![rows.table()],
                    figures: figures::ramp(&rows),
                    ..Analysed::default()
                })
            },
        ),
        View::new(
            "keys",
            Group::TrainedHeads,
            "How much of a head's logits one score per key explains.",
            |studies| {
                let rows = tables::Ramps::of(&rows_of(studies)?)?;
                Ok(Analysed {
                    tables: vec![keys::table(&rows)],
                    figures: keys::figures(&rows),
                    verdicts: keys::verdicts(&rows),
                })
            },
        ),
    ];

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        let (models, keys): (_, Keys) = trained_models::read(raw, "ramp")?;
        if keys.rows == Some(0) {
            return Err("ramp.rows must be at least 1".to_owned());
        }
        Ok(Self { models, rows: keys.rows })
    }

    fn cells(
        &self,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, RampCell)>, StudyError> {
        let shared = Arc::new(self.clone());
        let models = TrainedModel::all(&self.models, text, data)?.into_iter();
        Ok(models.map(|(key, model)| (key, RampCell { model, study: shared.clone() })).collect())
    }

    fn models(&self) -> Option<&dyn ModelReferences> {
        Some(&self.models)
    }
}

impl Measure for RampCell {
    type Row = RampMeasurement;

    fn settings(&self) -> Table {
        let mut table = self.model.settings();
        let layers: Vec<i64> = self.model.layers().iter().map(|&layer| layer as i64).collect();
        table.insert("layers".to_owned(), layers.into());
        if let Some(rows) = self.study.rows {
            table.insert("rows".to_owned(), (rows as i64).into());
        }
        table
    }

    fn defaults() -> Table {
        TrainedModel::defaults()
    }

    fn key(&self) -> RampKey {
        let [positions, slopes] = match &self.model.source {
            ModelSource::Run { definition, .. } => {
                [Some(definition.positions.name()), Some(definition.slopes.name())]
            }
            ModelSource::Published { .. } | ModelSource::Exported { .. } => [None, None],
        };
        RampKey {
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

    fn measure(
        &self,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<RampMeasurement>>, StudyError> {
        let model = self.model.read()?;
        let rows = Some(self.study.rows.unwrap_or(MOST_ROWS));
        let groups = self.model.read_passages(&*model, context, 0)?;
        let layers = self.model.layers();
        let share = 1.0 / (groups.len() * layers.len() * model.heads()) as f64;
        let mut found = Vec::new();
        for (group, passages) in groups.iter().enumerate() {
            let ended = model.each_layer(passages, &layers, |of_layer| {
                for head in 0..model.heads() {
                    if context.stop.load(Ordering::Relaxed) {
                        return Ok(false);
                    }
                    let probes: Vec<&HeadProbe> = of_layer.iter().map(|of| &of[head]).collect();
                    found.push(RampMeasurement::measure(&probes, group, rows)?);
                    (context.advanced)(share);
                }
                Ok::<_, StudyError>(true)
            })?;
            if !ended {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }
}
