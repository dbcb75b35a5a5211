//! One cell of a study of ramps: every head of one checkpoint, and their rows.

use std::path::Path;
use std::sync::Arc;

use toml::{Table, Value};

use super::StudyError;
use super::cell::{Measure, Needs, Within};
use super::definition::RampStudy;
use super::each_head::{HeadOfGroup, of_each_head};
use super::text_source::TextSource;
use super::trained_model::{TrainedModel, visible_pairs};
use crate::lm::Probed;
use crate::pattern::HeadKind;
use crate::predict::{PredictError, Ramp};
use crate::row::{RampFound, RampOf};
use crate::run::ModelSource;

/// The heads of one checkpoint.
pub(super) struct RampCell {
    model: TrainedModel,
    study: Arc<RampStudy>,
}

impl RampCell {
    /// Every cell of a study, by run, seed and step. Other studies' runs are in `data`.
    ///
    /// # Errors
    /// A folder that holds no run, or lacks a step or layer that is asked for.
    pub fn all(
        study: &RampStudy,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, Self)>, StudyError> {
        let shared = Arc::new(study.clone());
        let models = TrainedModel::all(&study.models, text, data)?.into_iter();
        Ok(models.map(|(key, model)| (key, Self { model, study: shared.clone() })).collect())
    }

    fn run(
        &self,
        model: &dyn Probed,
        within: &Within<'_>,
    ) -> Result<Option<Vec<RampFound>>, PredictError> {
        let rows = self.study.rows.unwrap_or(MOST_ROWS);
        of_each_head(&self.model, model, within, |HeadOfGroup { probes, group, began, .. }| {
            let ramp = Ramp::of(probes, Some(rows))?;
            Ok(RampFound::of(&ramp, *group, probes.len(), began.elapsed().as_secs_f64()))
        })
    }
}

impl Measure for RampCell {
    type Kind = RampFound;

    fn settings(&self) -> Table {
        let mut table = self.model.settings();
        let whole = |all: &[usize]| -> Value {
            all.iter().map(|&one| Value::from(one as i64)).collect::<Vec<_>>().into()
        };
        table.insert("layers".to_owned(), whole(&self.model.layers()));
        if let Some(rows) = self.study.rows {
            table.insert("rows".to_owned(), (rows as i64).into());
        }
        table
    }

    fn defaults() -> Table {
        TrainedModel::defaults()
    }

    /// Each visible pair is looked at some hundreds of times.
    fn cost_s(&self) -> f64 {
        let source = self.model.source();
        let n = self.model.tokens() as f64;
        let rows = n.min(self.study.rows.unwrap_or(MOST_ROWS) as f64);
        let seen = |kind: HeadKind| visible_pairs(kind, rows, n);
        let layers = self.model.layers();
        let kinds = layers.iter().flat_map(|&layer| source.head_kinds(layer));
        let passages = self.model.passages_of_a_group() * self.study.models.groups;
        SECONDS_OF_A_MODEL + passages as f64 * kinds.map(seen).sum::<f64>() * SECONDS_PER_PAIR
    }

    fn of(&self) -> RampOf {
        let [positions, slopes] = match self.model.source() {
            ModelSource::Run { definition, .. } => {
                [Some(definition.positions.name()), Some(definition.slopes.name())]
            }
            ModelSource::Published { .. } | ModelSource::Exported { .. } => [None, None],
        };
        RampOf {
            model: self.model.of(),
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

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<RampFound>>, String> {
        let model = self.model.read().map_err(|e| e.to_string())?;
        self.run(&*model, within).map_err(|e| e.to_string())
    }
}

/// Rows of a passage that are held where the definition names no other number.
const MOST_ROWS: usize = 1024;
/// Seconds of one core that a head takes by visible pair.
const SECONDS_PER_PAIR: f64 = 1.5e-6;
/// Seconds that it takes to read a model and its text.
const SECONDS_OF_A_MODEL: f64 = 0.15;
