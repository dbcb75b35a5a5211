//! Needed against actual logits: the logits that the attention of trained heads needs, and those that they have.

/// Claims decided by this experiment.
pub mod claims {
    pub mod heads;
    pub mod published;
}
/// Figures of this experiment.
pub mod figures {
    pub mod heads;
    pub mod heads_of_model;
    pub mod prediction;
}
mod row;
/// Tables of this experiment.
pub mod tables {
    pub mod heads;
    pub mod published;
}

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use self::figures::{heads, prediction};
use self::tables::heads::TrainedHeads;
use self::tables::published::PublishedHeads;
use super::trained_model::TrainedModel;
use super::trained_models::{self, MOST_ROWS, ModelKeys, TrainedModels, check_errors, dtype_of};
use crate::claims::Group::{PublishedModels, TrainedHeads as InTraining};
use crate::experiment::{
    Analysed, Both, CellContext, DefinitionTable, Experiment, Measure, MeasuredStudy,
    ModelReferences, Needs, RawDefinition, SearchKeys, StudyError, TextSource, View, rows_of,
    search_of_heads, search_settings,
};
use crate::heads::LayerFit;
use crate::solver::SearchOptions;
use crate::table::TableError;

pub use crate::heads::HeadMeasurement;
pub use row::HeadKey;
pub(crate) use row::check_precision;

/// A study that compares the logits of trained heads with those that their attention needs.
#[derive(Clone, Debug)]
pub struct PredictStudy {
    /// The models; a head's queries and keys are fitted to all passages of a group at once.
    pub(crate) models: TrainedModels,
    /// What the definition says of the fits.
    keys: Predict,
    /// The search options of the fits.
    pub(crate) search: SearchOptions,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Predict {
    /// Errors ε in nats.
    epsilon: Vec<f64>,
    /// Queries per passage that are fitted; default all.
    rows: Option<usize>,
    /// Only heads with a larger max |logit| are fitted; the others are screened. Default: all are fitted.
    above: Option<f64>,
    /// Whether the factors found are saved.
    #[serde(default)]
    factors: bool,
}

/// The heads of one layer of one checkpoint.
pub(crate) struct PredictCell {
    model: TrainedModel,
    layer: usize,
    study: Arc<PredictStudy>,
}

impl Experiment for PredictStudy {
    type Cell = PredictCell;

    const TABLES: &'static [DefinitionTable] = &[
        DefinitionTable::one::<Both<ModelKeys, Predict>>("predict"),
        DefinitionTable::one::<SearchKeys>("search"),
    ];
    const VIEWS: &'static [View] = VIEWS;

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        let (models, keys): (_, Predict) = trained_models::read(raw, "predict")?;
        check_errors("predict", &keys.epsilon, 1)?;
        if keys.rows == Some(0) {
            return Err("predict.rows must be at least 1".to_owned());
        }
        if keys.above.is_some_and(|above| above.is_nan() || above < 0.0) {
            return Err(format!(
                "predict.above is {:?}; it must be at least 0, or inf to fit no head",
                keys.above.unwrap_or_default()
            ));
        }
        Ok(Self { models, keys, search: search_of_heads(&raw.table_or_empty("search")?)? })
    }

    fn cells(
        &self,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, PredictCell)>, StudyError> {
        let shared = Arc::new(self.clone());
        let mut cells = Vec::new();
        for (name, model) in TrainedModel::all(&self.models, text, data)? {
            for layer in model.layers() {
                let cell = PredictCell { model: model.clone(), layer, study: shared.clone() };
                cells.push((format!("{name}/layer-{layer}"), cell));
            }
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

impl Measure for PredictCell {
    type Row = HeadMeasurement;

    fn settings(&self) -> Table {
        let mut table = self.model.settings();
        let PredictStudy { keys: Predict { epsilon, rows, above, .. }, search, .. } = &*self.study;
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        set("layer", (self.layer as i64).into());
        set("epsilon", epsilon.clone().into());
        if let Some(rows) = rows {
            set("rows", (*rows as i64).into());
        }
        if let Some(above) = above {
            set("above", (*above).into());
        }
        set("search", search_settings(search).into());
        table
    }

    fn defaults() -> Table {
        TrainedModel::defaults()
    }

    fn key(&self) -> HeadKey {
        HeadKey { model: self.model.key(), layer: self.layer }
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
    ) -> Result<Option<Vec<HeadMeasurement>>, StudyError> {
        let model = self.model.read()?;
        let model = &*model;
        let study = &*self.study;
        let groups = self.model.read_passages(model, context, 0)?;
        let fit = LayerFit {
            layer: self.layer,
            epsilons: &study.keys.epsilon,
            rows: study.keys.rows.unwrap_or(MOST_ROWS),
            above: study.keys.above,
            search: study.search,
        };
        let share = 1.0 / (groups.len() * model.heads() * fit.epsilons.len()) as f64;
        let mut rows = Vec::new();
        let ended = fit.run(model, &groups, context.stop, |row, parts| {
            if let Some(parts) = parts.filter(|_| study.keys.factors) {
                parts.keep_factors(&row, context.folder)?;
            }
            rows.push(row);
            (context.advanced)(share);
            Ok(())
        })?;
        Ok(ended.then_some(rows))
    }
}

/// The view of the rows that the command `predict` measures without a study.
pub(crate) const PREDICTION: View = View::new(
    "prediction",
    InTraining,
    "Needed against actual logits, one point per head.",
    |studies| {
        let all = PublishedHeads::of(&rows_of(studies)?)?;
        let Some(rows) = &all.fitted else {
            return Ok(Analysed {
                tables: all.tables(),
                figures: Vec::new(),
                verdicts: Vec::new(),
            });
        };
        Ok(Analysed {
            tables: rows.tables(),
            figures: prediction::prediction(rows, &[]),
            verdicts: vec![claims::heads::ordering(rows)],
        })
    },
);

const VIEWS: &[View] = &[
    View::new(
        "decomposition",
        InTraining,
        "Factors of the logits of trained heads, by step.",
        |studies| {
            let rows = trained(studies)?;
            let mut figures = heads::decomposition(&rows);
            // Models with a single step have no courses.
            if figures.is_empty() {
                figures = prediction::prediction(&rows, &[]);
            }
            Ok(Analysed {
                tables: rows.tables(),
                figures,
                verdicts: claims::heads::verdicts(&rows),
            })
        },
    ),
    PREDICTION,
    View::new(
        "published",
        PublishedModels,
        "The heads of published models: which have large logits, and which of these need them.",
        |studies| {
            let rows = PublishedHeads::of(&rows_of(studies)?)?;
            let figures = match &rows.fitted {
                Some(fitted) => prediction::prediction(fitted, &rows.screened()),
                None => Vec::new(),
            };
            let verdicts = claims::published::verdicts(&rows);
            Ok(Analysed { tables: rows.tables(), figures, verdicts })
        },
    ),
];

fn trained(studies: &[MeasuredStudy]) -> Result<TrainedHeads, TableError> {
    TrainedHeads::of(&rows_of(studies)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lm::{PretrainedModel, Probed as _, Published};
    use crate::record::Rows;
    use crate::study::{Plan, Preset, StudyDefinition, Sweep};

    /// Every head of a published model gets its rows, computed on the tokens of its own tokenizer.
    #[test]
    fn published_models_are_held_against_what_they_needed_too() {
        for (published, visible) in [(Published::gpt2(), "gpt2"), (Published::bert(), "bert")] {
            let folder = tempfile::tempdir().unwrap();
            let [model, text, data] =
                ["model", "text.txt", "data"].map(|name| folder.path().join(name));
            std::fs::create_dir(&model).unwrap();
            published.write_with_tokenizer(&model);
            std::fs::write(&text, "the cat sat dog cat the sat ".repeat(40)).unwrap();
            let definition = format!(
                "study = \"published\"\nkind = \"predict\"\n[predict]\nfolders = [{:?}]\nepsilon = [0.1]\n\
                 passages = 2\ntokens = 6\nsplit = \"all\"\n",
                model.display().to_string()
            );
            let path = Path::new("published.toml");
            let definition = StudyDefinition::parse(path, definition, Preset::Paper).unwrap();
            let plan = Plan::new(&definition, &data, None, Some(&text), None).unwrap();
            let sweep = Sweep {
                threads: 1,
                stop: &std::sync::atomic::AtomicBool::new(false),
                device: crate::lm::Device::Cpu,
                observer: &(),
            };
            let failed = plan.run(&sweep).unwrap().failed;
            assert!(failed.is_empty(), "{failed:?}");
            let rows = Rows::<HeadMeasurement>::read(&[data.join("published")]).unwrap().rows;
            let model = PretrainedModel::read(&model).unwrap();
            assert_eq!(rows.len(), model.layers() * model.heads());
            assert!(rows.iter().all(|row| row.of.model.arm == visible && row.found.n == 6));
        }
    }
}
