//! Constraint grid: logits that trained heads need, by the inputs and the rank that are allowed.

pub mod claims;
pub mod figures;
mod row;
pub mod tables;

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use self::tables::lattice::Lattices;
use super::model_cell::{ModelCell, dtype_of, whole};
use super::model_key::ModelKey;
use super::trained_model::TrainedModel;
use super::trained_models::{
    self, MOST_ROWS, ModelKeys, TrainedModels, check_ranks, check_some_errors,
};
use crate::claims::Group;
use crate::claims::Verdict;
use crate::experiment::{
    Analysed, Both, CellContext, DefinitionTable, Experiment, MeasuredStudy, ModelReferences,
    RawDefinition, SearchKeys, StudyError, TextSource, View, ViewError, rows_of, search_of_heads,
    search_settings,
};
use crate::heads::{Corners, InputSet, ModelLattice};
use crate::solver::SearchOptions;

pub use row::LatticeMeasurement;

/// A study of the logits that trained heads' attention needs, by the inputs and the rank of queries and keys.
#[derive(Clone, Debug)]
pub struct LatticeStudy {
    /// The models; a head's queries and keys are fitted to all passages of a group at once.
    pub(crate) models: TrainedModels,
    /// The errors ε, in nats.
    pub(crate) epsilons: Vec<f64>,
    /// The sets of inputs that queries and keys may use.
    pub(crate) inputs: Vec<InputSet>,
    /// The ranks that they may have, besides the head's own and any rank.
    pub(crate) ranks: Vec<usize>,
    /// The number of heads per model that are measured, those with the largest logits.
    pub(crate) largest: Option<usize>,
    /// The maximum number of fitted rows per passage.
    pub(crate) rows: Option<usize>,
    /// The search options of the fits.
    pub(crate) search: SearchOptions,
}

#[derive(Deserialize, JsonSchema)]
struct Lattice {
    /// Errors ε in nats.
    epsilon: Vec<f64>,
    /// Inputs that queries and keys may read: `own`, `bias`, `line`, `pair`, `pairs4`, `positions`, `free`; default all.
    inputs: Option<Vec<String>>,
    /// Ranks beside each head's own.
    #[serde(default)]
    ranks: Vec<usize>,
    /// Heads per model, those with the largest logits; default all.
    largest: Option<usize>,
    /// Queries per passage that are fitted; default all.
    rows: Option<usize>,
}

/// The heads of one model at one step.
pub(crate) struct LatticeCell {
    model: TrainedModel,
    study: Arc<LatticeStudy>,
}

impl Experiment for LatticeStudy {
    type Cell = LatticeCell;

    const TABLES: &'static [DefinitionTable] = &[
        DefinitionTable::one::<Both<ModelKeys, Lattice>>("lattice"),
        DefinitionTable::one::<SearchKeys>("search"),
    ];
    const VIEWS: &'static [View] = &[
        View::new("lattice", Group::TrainedHeads, "Needed logits by inputs and rank.", |studies| {
            analysed(studies, claims::positions)
        }),
        View::new(
            "head-dimension",
            Group::TrainedHeads,
            "Rank penalty by head dimension.",
            |studies| analysed(studies, claims::rank),
        ),
    ];

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        let (models, keys): (_, Lattice) = trained_models::read(raw, "lattice")?;
        check_some_errors("lattice", &keys.epsilon)?;
        if [keys.rows, keys.largest].contains(&Some(0)) {
            return Err("lattice.rows and largest must be at least 1".to_owned());
        }
        check_ranks("lattice", &keys.ranks)?;
        let inputs: Vec<InputSet> = match keys.inputs {
            None => InputSet::ALL.to_vec(),
            Some(names) => {
                let sets: Result<Vec<InputSet>, String> =
                    names.iter().map(|name| name.parse()).collect();
                sets.map_err(|why| format!("lattice.inputs: {why}"))?
            }
        };
        // All other sets of inputs are compared with these two.
        for needed in [InputSet::Own, InputSet::Free] {
            if !inputs.contains(&needed) {
                return Err(format!("lattice.inputs lacks {needed}; name it among them"));
            }
        }
        Ok(Self {
            models,
            epsilons: keys.epsilon,
            inputs,
            ranks: keys.ranks,
            largest: keys.largest,
            rows: keys.rows,
            search: search_of_heads(&raw.table_or_empty("search")?)?,
        })
    }

    fn cells(
        &self,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, LatticeCell)>, StudyError> {
        let shared = Arc::new(self.clone());
        let models = TrainedModel::all(&self.models, text, data)?;
        let cell = |(name, model)| (name, LatticeCell { model, study: shared.clone() });
        Ok(models.into_iter().map(cell).collect())
    }

    fn dtype(&self) -> String {
        dtype_of(self.search.precision)
    }

    fn models(&self) -> Option<&dyn ModelReferences> {
        Some(&self.models)
    }
}

fn analysed(
    studies: &[MeasuredStudy],
    claim: fn(&Lattices) -> Verdict,
) -> Result<Analysed, ViewError> {
    let rows = Lattices::of(&rows_of(studies)?)?;
    let figures = figures::lattice(&rows).into_iter().collect();
    Ok(Analysed { tables: rows.tables(), figures, verdicts: vec![claim(&rows)] })
}

impl ModelCell for LatticeCell {
    type Row = LatticeMeasurement;

    fn model(&self) -> &TrainedModel {
        &self.model
    }

    fn add_settings(&self, table: &mut Table) {
        let LatticeStudy { epsilons, inputs, ranks, largest, rows, search, .. } = &*self.study;
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        set("layers", whole(&self.model.layers()));
        set("epsilon", epsilons.clone().into());
        set("inputs", inputs.iter().map(|set| set.name()).collect::<Vec<_>>().into());
        set("ranks", whole(ranks));
        for (key, value) in [("largest", largest), ("rows", rows)] {
            if let Some(value) = value {
                set(key, (*value as i64).into());
            }
        }
        set("search", search_settings(search).into());
    }

    fn add_defaults(table: &mut Table) {
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        set("ranks", Value::Array(Vec::new()));
        set("search", search_settings(&SearchOptions::default()).into());
    }

    fn cost_s(&self) -> f64 {
        let study = &*self.study;
        let source = self.model.source();
        let (d, width) = (source.head_dimension(), source.channels());
        let n = self.model.tokens() as f64;
        let rows = n.min(study.rows.unwrap_or(MOST_ROWS) as f64);
        let heads: usize =
            self.model.layers().iter().map(|&layer| source.head_kinds(layer).len()).sum();
        let heads = study.largest.map_or(heads, |largest| largest.min(heads));
        let pairs = rows * n / 2.0 * heads as f64 * self.model.passages();
        // One fit per rank, and one over the full width of the inputs for any rank.
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

    fn key(&self) -> ModelKey {
        self.model.key()
    }

    fn run(
        &self,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<LatticeMeasurement>>, StudyError> {
        let model = self.model.read()?;
        let model = &*model;
        let study = &*self.study;
        let groups = self.model.read_passages(model, context)?;
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
        let ended = lattice.run(model, &groups, context.stop, |found| {
            rows.extend(LatticeMeasurement::all(&found, self.model.passages_of_a_group()));
            (context.advanced)(share);
            Ok(())
        })?;
        Ok(ended.then_some(rows))
    }
}

/// Seconds of one core per fit, allowed pair and channel.
const SECONDS_PER_PAIR: f64 = 2.2e-6;
/// The cost of a pair besides its channels, in channels.
const OVERHEAD: f64 = 16.0;
