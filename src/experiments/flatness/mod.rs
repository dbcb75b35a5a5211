//! Flatness of the loss around trained weights, and how a linear classifier does on their hidden state.

mod row;
mod views;

use std::sync::atomic::Ordering;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use super::checkpoints::OfCheckpoint;
use super::trained_model::TrainedModel;
use super::trained_models::ModelKeys;
use crate::claims::Group;
use crate::experiment::{Both, CellContext, DefinitionTable, StudyError, View, rows_of};
pub use crate::lm::FlatnessMeasurement;
use crate::lm::LmError;
pub(crate) use views::CLAIMS;

/// Most tokens from which the classifier's windows are taken.
const TEXT: usize = 1 << 23;

/// The keys of a study of flatness.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct FlatnessKeys {
    /// Random vectors of ±1 that estimate the trace of the Hessian, at least 2.
    probes: usize,
    /// Most iterations for the largest eigenvalue of the Hessian.
    iterations: usize,
}

impl OfCheckpoint for FlatnessKeys {
    type Row = FlatnessMeasurement;

    const TABLES: &'static [DefinitionTable] =
        &[DefinitionTable::one::<Both<ModelKeys, Self>>("flatness")];
    const VIEWS: &'static [View] = &[View::new(
        "flatness",
        Group::Training,
        "Curvature of the loss at trained weights, against the largest logit.",
        |studies| views::analyse(&rows_of(studies)?),
    )];

    fn check(&self, models: &ModelKeys) -> Result<(), String> {
        if !models.layers.is_empty() {
            return Err("flatness.layers: all weights are measured; leave it out".to_owned());
        }
        match self.probes >= 2 && self.iterations >= 1 {
            true => Ok(()),
            false => Err("flatness.probes must be at least 2, iterations at least 1".to_owned()),
        }
    }

    fn settings(&self, _: &TrainedModel, table: &mut Table) {
        table.insert("probes".to_owned(), (self.probes as i64).into());
        table.insert("iterations".to_owned(), (self.iterations as i64).into());
    }

    fn measure(
        &self,
        model: &TrainedModel,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<FlatnessMeasurement>>, StudyError> {
        let probed = model.read()?;
        let passages = model.read_passages(&*probed, context, 0)?.concat();
        let text = model.read_text(&*probed, context, TEXT)?;
        let why = "flatness needs weights of rank-study train; name runs of it";
        let weights = probed.model().ok_or_else(|| LmError::Refused(why.to_owned()))?;
        let products = [self.probes, self.iterations];
        let goes_on = || {
            (context.advanced)(1.0 / products.iter().sum::<usize>() as f64);
            !context.stop.load(Ordering::Relaxed)
        };
        let found = FlatnessMeasurement::measure(weights, &passages, &text, products, &goes_on)?;
        Ok(found.map(|found| vec![found]))
    }
}
