//! One cell of a study of lattices: the heads of one model at one step, and their rows.

use std::path::Path;
use std::sync::Arc;

use toml::{Table, Value};

use super::StudyError;
use super::cell::{Measure, Needs, Within};
use super::definition::LatticeStudy;
use super::settings;
use super::text_source::TextSource;
use super::trained_model::TrainedModel;
use crate::fit::SearchOptions;
use crate::lm::Probed;
use crate::predict::{Corners, InputSet, ModelLattice, PredictError};
use crate::row::{LatticeFound, ModelOf};
use crate::run::ModelSource;

/// The heads of one model at one step.
pub(super) struct LatticeCell {
    model: TrainedModel,
    study: Arc<LatticeStudy>,
}

impl LatticeCell {
    /// Every cell of a study, by run, seed and step. Other studies' runs are in `data`.
    ///
    /// # Errors
    /// A folder that holds no run, or lacks a step or layer that is asked for.
    pub fn all(
        study: &LatticeStudy,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, Self)>, StudyError> {
        let shared = Arc::new(study.clone());
        let models = TrainedModel::all(&study.models, text, data)?;
        let cell = |(name, model)| (name, Self { model, study: shared.clone() });
        Ok(models.into_iter().map(cell).collect())
    }

    fn run(
        &self,
        model: &dyn Probed,
        within: &Within<'_>,
    ) -> Result<Option<Vec<LatticeFound>>, PredictError> {
        let study = &*self.study;
        let groups = self.model.passages(model, within)?;
        let layers = self.model.layers();
        let lattice = ModelLattice {
            corners: Corners {
                epsilons: &study.epsilons,
                inputs: &study.inputs,
                ranks: &study.ranks,
                search: study.search,
            },
            layers: &layers,
            largest: study.largest,
            rows: study.rows.unwrap_or(MOST_ROWS),
        };
        let share = 1.0 / (groups.len() * lattice.heads_of(model.heads())) as f64;
        let mut rows = Vec::new();
        let ended = lattice.run(model, &groups, within.stop, |found| {
            rows.extend(LatticeFound::all(&found, self.model.passages_of_a_group()));
            (within.advanced)(share);
            Ok(())
        })?;
        Ok(ended.then_some(rows))
    }
}

impl Measure for LatticeCell {
    type Kind = LatticeFound;

    fn settings(&self) -> Table {
        let LatticeStudy { epsilons, inputs, ranks, largest, rows, search, .. } = &*self.study;
        let mut table = self.model.settings();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        let whole = |all: &[usize]| -> Value {
            all.iter().map(|&one| Value::from(one as i64)).collect::<Vec<_>>().into()
        };
        set("layers", whole(&self.model.layers()));
        set("epsilon", epsilons.clone().into());
        set("inputs", inputs.iter().map(|set| set.name()).collect::<Vec<_>>().into());
        set("ranks", whole(ranks));
        for (key, value) in [("largest", largest), ("rows", rows)] {
            if let Some(value) = value {
                set(key, (*value as i64).into());
            }
        }
        set("search", settings::search(search).into());
        table
    }

    fn defaults() -> Table {
        let mut table = TrainedModel::defaults();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        set("ranks", Value::Array(Vec::new()));
        set("search", settings::search(&SearchOptions::default()).into());
        table
    }

    fn cost_s(&self) -> f64 {
        let study = &*self.study;
        let source = self.model.source();
        let (d, width) = match source {
            ModelSource::Run { definition, .. } => {
                (definition.d_model / definition.heads, definition.d_model)
            }
            ModelSource::Published { model } => (model.head_dimension(), model.channels()),
            ModelSource::Exported { heads } => (heads.head_dimension(), heads.channels()),
        };
        let n = self.model.tokens() as f64;
        let rows = n.min(study.rows.unwrap_or(MOST_ROWS) as f64);
        let heads: usize =
            self.model.layers().iter().map(|&layer| source.head_kinds(layer).len()).sum();
        let heads = study.largest.map_or(heads, |largest| largest.min(heads));
        let pairs = rows * n / 2.0
            * (heads * self.model.passages_of_a_group() * study.models.groups) as f64;
        // A fit of a rank, and one of the inputs' whole width where the rank is any.
        let of_ranks: f64 =
            study.ranks.iter().chain([&d]).map(|&rank| rank as f64 + OVERHEAD).sum();
        let of_inputs = |inputs: &InputSet| match inputs {
            InputSet::Free => of_ranks,
            InputSet::Positions => of_ranks + width as f64 + n + OVERHEAD,
            _ => of_ranks + width as f64 + OVERHEAD,
        };
        let channels: f64 = study.inputs.iter().map(of_inputs).sum();
        pairs * study.epsilons.len() as f64 * channels * SECONDS_PER_PAIR
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

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<LatticeFound>>, String> {
        let model = self.model.read().map_err(|e| e.to_string())?;
        self.run(&*model, within).map_err(|e| e.to_string())
    }
}

/// Rows of a passage that are fitted where the definition names no other number: all of a context of this length.
const MOST_ROWS: usize = 1024;
/// Seconds of one core that the fit of a corner takes, by visible pair and channel.
const SECONDS_PER_PAIR: f64 = 2.2e-6;
/// What a pair costs beside its channels, in channels.
const OVERHEAD: f64 = 16.0;
