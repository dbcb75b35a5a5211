//! Compares trained heads with ramps over positions: how much of their logits and attention a ramp explains.

pub mod figures;
pub(crate) mod keys;
mod row;
pub mod tables;

use std::sync::atomic::Ordering;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use super::checkpoints::OfCheckpoint;
use super::trained_model::TrainedModel;
use super::trained_models::{MOST_ROWS, ModelKeys};
use crate::claims::Group;
use crate::experiment::{Analysed, Both, CellContext, DefinitionTable, StudyError, View, rows_of};
pub use crate::heads::RampMeasurement;
use crate::lm::HeadProbe;

/// The keys of a study that compares trained heads with ramps over positions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct RampKeys {
    /// Queries per passage that are measured; default all.
    rows: Option<usize>,
}

impl OfCheckpoint for RampKeys {
    type Row = RampMeasurement;

    const TABLES: &'static [DefinitionTable] =
        &[DefinitionTable::one::<Both<ModelKeys, Self>>("ramp")];
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

    fn check(&self, _: &ModelKeys) -> Result<(), String> {
        match self.rows {
            Some(0) => Err("ramp.rows must be at least 1".to_owned()),
            _ => Ok(()),
        }
    }

    fn settings(&self, model: &TrainedModel, table: &mut Table) {
        let layers: Vec<i64> = model.layers().iter().map(|&layer| layer as i64).collect();
        table.insert("layers".to_owned(), layers.into());
        if let Some(rows) = self.rows {
            table.insert("rows".to_owned(), (rows as i64).into());
        }
    }

    fn measure(
        &self,
        model: &TrainedModel,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<RampMeasurement>>, StudyError> {
        let probed = model.read()?;
        let rows = Some(self.rows.unwrap_or(MOST_ROWS));
        let groups = model.read_passages(&*probed, context, 0)?;
        let layers = model.layers();
        let share = 1.0 / (groups.len() * layers.len() * probed.heads()) as f64;
        let mut found = Vec::new();
        for (group, passages) in groups.iter().enumerate() {
            let ended = probed.each_layer(passages, &layers, |of_layer| {
                for head in 0..probed.heads() {
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
