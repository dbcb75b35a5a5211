//! One cell of a study of concentration: every head of one checkpoint, and their rows.

use std::path::Path;

use toml::{Table, Value};

use super::StudyError;
use super::cell::{Measure, Needs, Within};
use super::definition::ConcentrationStudy;
use super::each_head::{HeadOfGroup, of_each_head};
use super::text_source::TextSource;
use super::trained_model::TrainedModel;
use crate::lm::Probed;
use crate::predict::{Concentration, PredictError, held_from};
use crate::row::{ConcentrationFound, ModelOf};
use crate::run::ModelSource;

/// The heads of one checkpoint.
pub(super) struct ConcentrationCell {
    model: TrainedModel,
    /// What is so many tokens back or more is far.
    window: usize,
    /// Passages of all groups.
    passages: usize,
}

impl ConcentrationCell {
    /// Every cell of a study, by run, seed and step. Other studies' runs are in `data`.
    ///
    /// # Errors
    /// A folder that holds no run, or a model from elsewhere, which has no window; a run that lacks a step or layer that is
    /// asked for.
    pub fn all(
        study: &ConcentrationStudy,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, Self)>, StudyError> {
        let mut cells = Vec::new();
        for (name, model) in TrainedModel::all(&study.models, text, data)? {
            let window = match model.source() {
                ModelSource::Run { definition, .. } => definition.window,
                ModelSource::Published { .. } | ModelSource::Exported { .. } => {
                    let why = "is a published model without a window; name training runs";
                    return Err(StudyError::Definition { path: name.into(), why: why.to_owned() });
                }
            };
            let passages = model.passages_of_a_group() * study.models.groups;
            cells.push((name, Self { model, window, passages }));
        }
        Ok(cells)
    }

    fn run(
        &self,
        model: &dyn Probed,
        within: &Within<'_>,
    ) -> Result<Option<Vec<ConcentrationFound>>, PredictError> {
        of_each_head(&self.model, model, within, |of_head| {
            let HeadOfGroup { probes, group, layer, head, began } = of_head;
            let seed = (group * model.layers() + layer) * model.heads() + head;
            let of = Concentration::of(probes, self.window, seed as u64)?;
            let seconds = began.elapsed().as_secs_f64();
            Ok(ConcentrationFound::of(&of, *group, probes.len(), seconds))
        })
    }
}

impl Measure for ConcentrationCell {
    type Kind = ConcentrationFound;

    fn settings(&self) -> Table {
        let mut table = self.model.settings();
        let layers = self.model.layers().into_iter().map(|layer| Value::from(layer as i64));
        table.insert("layers".to_owned(), layers.collect::<Vec<_>>().into());
        table
    }

    fn defaults() -> Table {
        TrainedModel::defaults()
    }

    /// Of each head the singular values of three matrices.
    fn cost_s(&self) -> f64 {
        let n = self.model.tokens() as f64;
        let rows = n - held_from(self.model.tokens(), self.window) as f64;
        let source = self.model.source();
        let heads: usize =
            self.model.layers().into_iter().map(|layer| source.head_kinds(layer).len()).sum();
        let decomposed = 3.0 * rows * rows * (n + rows) * SECONDS_PER_PRODUCT;
        (heads * self.passages) as f64 * (decomposed + rows * n * SECONDS_PER_ENTRY)
    }

    fn of(&self) -> ModelOf {
        self.model.of()
    }

    fn needs(&self) -> Option<Needs> {
        self.model.needs()
    }

    fn lacks(&self, _folder: &Path) -> bool {
        self.model.lacks()
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<ConcentrationFound>>, String> {
        let model = self.model.read().map_err(|e| e.to_string())?;
        self.run(&*model, within).map_err(|e| e.to_string())
    }
}

/// Seconds of one core that singular values take, by the products of a matrix with itself.
const SECONDS_PER_PRODUCT: f64 = 3e-10;
/// Seconds of one core that a row's order takes, by entry.
const SECONDS_PER_ENTRY: f64 = 2e-7;
