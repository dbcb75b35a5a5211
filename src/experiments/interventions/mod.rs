//! Interventions: how much the loss of trained models rises if the attention of their heads is replaced.

pub mod claims;
pub mod figures;
mod row;
pub mod tables;

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use self::tables::Surgeries;
use super::model_key::ModelKey;
use super::trained_model::TrainedModel;
use super::trained_models::{self, ModelKeys, TrainedModels, check_errors, dtype_of};
use crate::claims::Group;
use crate::experiment::{
    Analysed, Both, CellContext, DefinitionTable, Experiment, Measure, ModelReferences, Needs,
    RawDefinition, SearchKeys, StudyError, TextSource, View, rows_of, search_of_heads,
    search_settings,
};
use crate::heads::{Edit, Surgery};
use crate::run::ModelSource;
use crate::solver::SearchOptions;
use crate::system::nearest::nearest;

pub use crate::heads::InterventionMeasurement;

/// A study that replaces the attention of trained models.
#[derive(Clone, Debug)]
pub struct InterventionStudy {
    /// The models, and the passages on which the loss is measured.
    pub(crate) models: TrainedModels,
    /// Edits that make attention a function of positions, in the order in which they are applied.
    pub(crate) functions: Vec<Edit>,
    /// What the definition says of the others.
    keys: Keys,
    /// The search options of the fits.
    pub(crate) search: SearchOptions,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Keys {
    /// Functions of the position that replace attention: `uniform`, `ramp`, `position`, `lag`, `position+lag`.
    #[serde(default)]
    functions: Vec<String>,
    /// Errors ε in nats of fitted attention.
    #[serde(default)]
    epsilon: Vec<f64>,
    /// Whether fits have any rank, not that of the heads.
    #[serde(default)]
    any_rank: bool,
    /// Groups of passages that are fitted.
    #[serde(default = "two")]
    fit_groups: usize,
    /// Groups of passages that replacements are learned on.
    #[serde(default = "two")]
    learned_on: usize,
    /// Number of largest entries per query that are kept.
    #[serde(default)]
    largest: Vec<usize>,
    /// Numbers of last tokens that are kept.
    #[serde(default)]
    windows: Vec<usize>,
    /// Bits to which the matrices of blocks are rounded: all of them, then W_q and W_k alone.
    #[serde(default)]
    rounded: Vec<usize>,
    /// Whether the scores of keys under the mean query move from QKᵀ to a bias.
    #[serde(default)]
    key_scores: bool,
}

fn two() -> usize {
    2
}

const FUNCTIONS: [Edit; 5] =
    [Edit::Uniform, Edit::Ramp, Edit::Position, Edit::Lag, Edit::PositionAndLag];

/// Looks up each of the names in `surgery.functions`; an error gives the nearest known name.
fn read_functions(names: &[String]) -> Result<Vec<Edit>, String> {
    let one = |name: &String| {
        FUNCTIONS.into_iter().find(|edit| edit.name() == name).ok_or_else(|| {
            let near = nearest(name, &FUNCTIONS.map(Edit::name));
            format!("surgery.functions has {name:?}; did you mean {near:?}?")
        })
    };
    names.iter().map(one).collect()
}

impl InterventionStudy {
    /// Every edit, in order, with fits of rank `rank`.
    pub(crate) fn edits(&self, rank: usize) -> Vec<Edit> {
        let mut edits = self.functions.clone();
        edits.extend(self.keys.largest.iter().map(|&count| Edit::Largest { count }));
        edits.extend(self.keys.windows.iter().map(|&window| Edit::Last { window }));
        edits.extend(self.keys.key_scores.then_some(Edit::KeyScores));
        edits.extend(self.keys.rounded.iter().map(|&bits| Edit::Rounded { bits }));
        edits.extend(self.keys.rounded.iter().map(|&bits| Edit::RoundedQueriesAndKeys { bits }));
        edits.extend(self.keys.epsilon.iter().map(|&epsilon| Edit::Fit { epsilon, rank }));
        edits
    }
}

/// A trained model at a step.
pub(crate) struct InterventionCell {
    model: TrainedModel,
    edits: Vec<Edit>,
    study: Arc<InterventionStudy>,
}

impl Experiment for InterventionStudy {
    type Cell = InterventionCell;

    const TABLES: &'static [DefinitionTable] = &[
        DefinitionTable::one::<Both<ModelKeys, Keys>>("surgery"),
        DefinitionTable::one::<SearchKeys>("search"),
    ];
    const VIEWS: &'static [View] = &[View::new(
        "surgery",
        Group::TrainedHeads,
        "Loss after attention is replaced in all heads.",
        |studies| {
            let rows = Surgeries::of(&rows_of(studies)?)?;
            let figures =
                [figures::loss_against_epsilon(&rows), figures::loss_against_bits(&rows)].concat();
            Ok(Analysed { tables: vec![rows.table()], figures, verdicts: claims::verdicts(&rows) })
        },
    )];

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        let (models, keys): (_, Keys) = trained_models::read(raw, "surgery")?;
        if !models.keys.layers.is_empty() {
            return Err("surgery.layers: this edit applies to all layers; leave it out".to_owned());
        }
        check_errors("surgery", &keys.epsilon, 0)?;
        for (key, sizes) in [
            ("largest", &keys.largest),
            ("windows", &keys.windows),
            ("fit_groups", &vec![keys.fit_groups]),
            ("learned_on", &vec![keys.learned_on]),
        ] {
            if sizes.contains(&0) {
                return Err(format!("surgery.{key} must be at least 1"));
            }
        }
        if let Some(bits) = keys.rounded.iter().find(|&bits| !(2..=8).contains(bits)) {
            return Err(format!("surgery.rounded has {bits}; give 2 to 8 bits"));
        }
        Ok(Self {
            models,
            functions: read_functions(&keys.functions)?,
            keys,
            search: search_of_heads(&raw.table_or_empty("search")?)?,
        })
    }

    fn cells(
        &self,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, InterventionCell)>, StudyError> {
        let shared = Arc::new(self.clone());
        let mut cells = Vec::new();
        for (name, model) in TrainedModel::all(&self.models, text, data)? {
            let wrong =
                |why: &str| StudyError::Definition { path: (&*name).into(), why: why.to_owned() };
            let d_head = match &model.source {
                ModelSource::Run { definition, .. } => definition.head_dimension(),
                ModelSource::Published { .. } if !self.keys.rounded.is_empty() => {
                    return Err(wrong("is no run trained here; leave surgery.rounded out"));
                }
                ModelSource::Published { model } => model.head_dimension(),
                ModelSource::Exported { .. } => {
                    return Err(wrong("is a file of heads, which have no loss; name models"));
                }
            };
            let tokens = self.models.keys.tokens.unwrap_or_else(|| model.source.context());
            let edits = self.edits(if self.keys.any_rank { tokens } else { d_head });
            cells.push((name, InterventionCell { model, edits, study: shared.clone() }));
        }
        Ok(cells)
    }

    fn dtype(&self) -> String {
        dtype_of(self.search.precision)
    }

    fn models(&self) -> Option<&dyn ModelReferences> {
        Some(&self.models)
    }
}

impl Measure for InterventionCell {
    type Row = InterventionMeasurement;

    fn settings(&self) -> Table {
        let mut table = self.model.settings();
        let InterventionStudy { keys: Keys { fit_groups, learned_on, .. }, search, .. } =
            &*self.study;
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        let edits = self.edits.iter().map(|edit| {
            let mut table = Table::new();
            table.insert("edit".to_owned(), edit.name().into());
            if let Some((epsilon, rank)) = edit.fit() {
                table.insert("epsilon".to_owned(), epsilon.into());
                table.insert("rank".to_owned(), (rank as i64).into());
            }
            if let Some(size) = edit.size() {
                table.insert("size".to_owned(), (size as i64).into());
            }
            Value::from(table)
        });
        set("edits", edits.collect::<Vec<_>>().into());
        set("fit_groups", (*fit_groups as i64).into());
        set("learned_on", (*learned_on as i64).into());
        set("search", search_settings(search).into());
        table
    }

    fn defaults() -> Table {
        TrainedModel::defaults()
    }

    fn key(&self) -> ModelKey {
        let of = self.model.key();
        match &self.model.source {
            ModelSource::Published { model } => {
                ModelKey { d_head: Some(model.head_dimension()), ..of }
            }
            _ => of,
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
    ) -> Result<Option<Vec<InterventionMeasurement>>, StudyError> {
        let model = self.model.read()?;
        let InterventionStudy { models, keys, search, .. } = &*self.study;
        let mut groups = self.model.read_passages(&*model, context, keys.learned_on)?;
        let learned_on = groups.split_off(models.keys.groups).concat();
        let surgery = Surgery {
            model: &*model,
            edits: &self.edits,
            fit_groups: keys.fit_groups,
            search: *search,
        };
        let times = |edit: &Edit| match edit {
            Edit::Fit { .. } => models.keys.groups.min(keys.fit_groups),
            _ => models.keys.groups,
        };
        // The unaltered model is measured too.
        let whole = models.keys.groups + self.edits.iter().map(times).sum::<usize>();
        let mut rows = Vec::new();
        let ended = surgery.run(&learned_on, &groups, context.stop, |found| {
            (context.advanced)(1.0 / whole as f64);
            rows.push(found);
            Ok(())
        })?;
        Ok(ended.then_some(rows))
    }
}
