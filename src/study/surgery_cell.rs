//! One cell of a study of surgery: a trained model at a step, after every edit.

use std::path::Path;
use std::sync::Arc;

use toml::{Table, Value};

use super::StudyError;
use super::cell::{Measure, Needs, Within};
use super::definition::SurgeryStudy;
use super::settings;
use super::text_source::TextSource;
use super::trained_model::{TrainedModel, visible_pairs};
use crate::fit::SearchOptions;
use crate::pattern::HeadKind;
use crate::predict::{Edit, EditedHeads, PredictError, Surgery};
use crate::row::{ModelOf, SurgeryFound};
use crate::run::{ModelSource, TrainedRun};

/// A trained model at a step.
pub(super) struct SurgeryCell {
    model: TrainedModel,
    edits: Vec<(Edit, EditedHeads)>,
    study: Arc<SurgeryStudy>,
}

impl SurgeryCell {
    /// Every cell of a study, by run, seed and step. Other studies' runs are in `data`.
    ///
    /// # Errors
    /// A folder that holds no run, or a model from elsewhere.
    pub fn all(
        study: &SurgeryStudy,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, Self)>, StudyError> {
        let shared = Arc::new(study.clone());
        let mut cells = Vec::new();
        for (name, model) in TrainedModel::all(&study.models, text, data)? {
            let edits = match model.source() {
                ModelSource::Run { definition, .. } => {
                    let source = model.source();
                    let kinds: Vec<HeadKind> =
                        (0..source.layers()).flat_map(|layer| source.head_kinds(layer)).collect();
                    let d_head = definition.d_model / definition.heads;
                    study.edits(&kinds, d_head, definition.window)
                }
                ModelSource::Published { .. } | ModelSource::Exported { .. } => {
                    let why = NO_RUN.to_owned();
                    return Err(StudyError::Definition { path: name.into(), why });
                }
            };
            cells.push((name, Self { model, edits, study: shared.clone() }));
        }
        Ok(cells)
    }

    fn run(
        &self,
        run: &TrainedRun,
        within: &Within<'_>,
    ) -> Result<Option<Vec<SurgeryFound>>, PredictError> {
        let SurgeryStudy { models, learned_on, fit_groups, search, .. } = &*self.study;
        let mut groups = self.model.more_passages(run, within, *learned_on)?;
        let learned_on = groups.split_off(models.groups).concat();
        let surgery = Surgery {
            model: run.model(),
            edits: &self.edits,
            fit_groups: *fit_groups,
            search: *search,
        };
        let whole = self.cost_s();
        let mut rows = Vec::new();
        let ended = surgery.run(&learned_on, &groups, within.stop, |found| {
            (within.advanced)(self.cost_of(found.edit) / whole);
            rows.push(SurgeryFound::of(
                &found,
                self.model.passages_of_a_group(),
                self.model.tokens(),
            ));
            Ok(())
        })?;
        Ok(ended.then_some(rows))
    }

    /// What one edit of one group takes, in seconds of one core, roughly.
    fn cost_of(&self, edit: Edit) -> f64 {
        let source = self.model.source();
        let n = self.model.tokens() as f64;
        let seen = |kind: HeadKind| visible_pairs(kind, n, n);
        let kinds = (0..source.layers()).flat_map(|layer| source.head_kinds(layer));
        let pairs: f64 = kinds.map(seen).sum::<f64>() * self.model.passages_of_a_group() as f64;
        let squares = (source.layers() * source.head_kinds(0).len()) as f64 * n * n;
        let pass = squares * self.model.passages_of_a_group() as f64 * SECONDS_PER_ENTRY;
        let decomposed = match edit {
            Edit::Truncated { .. } | Edit::FarTruncated { .. } => squares * n * SECONDS_PER_CUBE,
            _ => 0.0,
        };
        pass + decomposed * self.model.passages_of_a_group() as f64
            + edit.fit().map_or(0.0, |(_, rank)| pairs * (rank as f64 + 16.0) * SECONDS_PER_PAIR)
    }
}

impl Measure for SurgeryCell {
    type Kind = SurgeryFound;

    fn settings(&self) -> Table {
        let SurgeryStudy { fit_groups, learned_on, search, .. } = &*self.study;
        let mut table = self.model.settings();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        let edits = self.edits.iter().map(|(edit, heads)| {
            let mut table = Table::new();
            table.insert("edit".to_owned(), edit.name().into());
            if let Some((epsilon, rank)) = edit.fit() {
                table.insert("epsilon".to_owned(), epsilon.into());
                table.insert("rank".to_owned(), (rank as i64).into());
            }
            if let Some(size) = edit.size() {
                table.insert("size".to_owned(), (size as i64).into());
            }
            // A list is hashed as it stands, so what it says by default is left out.
            if *heads != EditedHeads::All {
                table.insert("heads".to_owned(), heads.name().into());
            }
            if let Some(from) = edit.far_from() {
                table.insert("far_from".to_owned(), (from as i64).into());
            }
            Value::from(table)
        });
        set("edits", edits.collect::<Vec<_>>().into());
        set("fit_groups", (*fit_groups as i64).into());
        set("learned_on", (*learned_on as i64).into());
        set("search", settings::search(search).into());
        table
    }

    fn defaults() -> Table {
        let mut table = TrainedModel::defaults();
        table.insert("search".to_owned(), settings::search(&SearchOptions::default()).into());
        table
    }

    fn cost_s(&self) -> f64 {
        let groups = self.study.models.groups;
        let times = |edit: &Edit| match edit {
            Edit::Fit { .. } => groups.min(self.study.fit_groups),
            _ => groups,
        };
        let edits = [Edit::Own].into_iter().chain(self.edits.iter().map(|(edit, _)| *edit));
        edits.map(|edit| times(&edit) as f64 * self.cost_of(edit)).sum()
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

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<SurgeryFound>>, String> {
        let run = self.model.read_run().map_err(|e| e.to_string())?.ok_or(NO_RUN)?;
        self.run(&run, within).map_err(|e| e.to_string())
    }
}

const NO_RUN: &str = "is a published model, whose loss cannot be computed; name training runs";
/// Seconds of one core that a pass takes, by entry of attention.
const SECONDS_PER_ENTRY: f64 = 5e-8;
/// Seconds of one core that a decomposition takes, by n³.
const SECONDS_PER_CUBE: f64 = 5e-10;
/// Seconds of one core that a free fit takes, by visible pair and (rank + 16).
const SECONDS_PER_PAIR: f64 = 1e-6;
