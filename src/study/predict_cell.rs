//! One cell of a study of trained heads: the heads of one layer of one checkpoint, and their rows.

use std::path::Path;
use std::sync::Arc;

use toml::{Table, Value};

use super::StudyError;
use super::cell::{Measure, Needs, Within};
use super::definition::PredictStudy;
use super::settings;
use super::text_source::TextSource;
use super::trained_model::{TrainedModel, visible_pairs};
use crate::fit::SearchOptions;
use crate::lm::Probed;
use crate::pattern::HeadKind;
use crate::predict::{LayerFit, PredictError};
use crate::row::{HeadFound, HeadOf};
use crate::run::ModelSource;

/// The heads of one layer of one checkpoint.
pub(super) struct PredictCell {
    model: TrainedModel,
    layer: usize,
    study: Arc<PredictStudy>,
}

impl PredictCell {
    /// Every cell of a study, by run, seed, step and layer. Other studies' runs are in `data`.
    ///
    /// # Errors
    /// A folder that holds no run, or lacks a step or layer that is asked for.
    pub fn all(
        study: &PredictStudy,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, Self)>, StudyError> {
        let shared = Arc::new(study.clone());
        let mut cells = Vec::new();
        for (name, model) in TrainedModel::all(&study.models, text, data)? {
            for layer in model.layers() {
                let cell = Self { model: model.clone(), layer, study: shared.clone() };
                cells.push((format!("{name}/layer-{layer}"), cell));
            }
        }
        Ok(cells)
    }

    fn run(
        &self,
        model: &dyn Probed,
        within: &Within<'_>,
    ) -> Result<Option<Vec<HeadFound>>, PredictError> {
        let study = &*self.study;
        let groups = self.model.passages(model, within)?;
        let fit = LayerFit {
            layer: self.layer,
            epsilons: &study.epsilons,
            ranks: &study.ranks,
            rows: study.rows.unwrap_or(MOST_ROWS),
            above: study.above,
            search: study.search,
        };
        let share = 1.0 / (groups.len() * model.heads() * fit.fits_of_a_head()) as f64;
        let mut rows = Vec::new();
        let ended = fit.run(model, &groups, within.stop, |found| {
            if study.factors {
                found.keep_factors(within.folder)?;
            }
            rows.push(HeadFound::of(&found, self.model.passages_of_a_group()));
            // A head that is not fitted is at none of the larger ranks either.
            let fits = if found.fitted.is_some() { 1 } else { 1 + study.ranks.len() };
            (within.advanced)(share * fits as f64);
            Ok(())
        })?;
        Ok(ended.then_some(rows))
    }
}

impl Measure for PredictCell {
    type Kind = HeadFound;

    fn settings(&self) -> Table {
        let PredictStudy { epsilons, ranks, rows, above, search, .. } = &*self.study;
        let mut table = self.model.settings();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        let whole = |all: &[usize]| -> Value {
            all.iter().map(|&one| Value::from(one as i64)).collect::<Vec<_>>().into()
        };
        set("layer", (self.layer as i64).into());
        set("epsilon", epsilons.clone().into());
        set("ranks", whole(ranks));
        if let Some(rows) = rows {
            set("rows", (*rows as i64).into());
        }
        if let Some(above) = above {
            set("above", (*above).into());
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

    /// An evaluation costs about what its pairs do, and a head that sees all of them thousands of evaluations. How many
    /// are fitted where only some are nobody knows before: all of them at most.
    fn cost_s(&self) -> f64 {
        let study = &*self.study;
        let source = self.model.source();
        let d = match source {
            ModelSource::Run { definition, .. } => definition.d_model / definition.heads,
            ModelSource::Published { model } => model.head_dimension(),
            ModelSource::Exported { heads } => heads.head_dimension(),
        };
        let n = self.model.tokens() as f64;
        let rows = n.min(study.rows.unwrap_or(MOST_ROWS) as f64);
        let seen = |kind: HeadKind| visible_pairs(kind, rows, n);
        let pairs: f64 = source.head_kinds(self.layer).into_iter().map(seen).sum();
        let passages = (self.model.passages_of_a_group() * study.models.groups) as f64;
        let fits = passages * study.epsilons.len() as f64;
        let screened = passages * pairs * SECONDS_PER_SCREENED_PAIR;
        if study.above == Some(f64::INFINITY) {
            return screened;
        }
        let ranks = [d].into_iter().chain(study.ranks.iter().copied());
        let channels: f64 = ranks.map(|rank| rank as f64 + 16.0).sum();
        let is_sparing = study.search.starts == 0 && study.search.passes == 0;
        let fitted = if is_sparing { SECONDS_PER_SPARING_PAIR } else { SECONDS_PER_PAIR };
        screened + fits * pairs * channels * fitted
    }

    fn of(&self) -> HeadOf {
        HeadOf { model: self.model.of(), layer: self.layer }
    }

    fn needs(&self) -> Option<Needs> {
        self.model.needs()
    }

    fn lacks(&self, _folder: &Path) -> bool {
        self.model.lacks()
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<HeadFound>>, String> {
        let model = self.model.read().map_err(|e| e.to_string())?;
        self.run(&*model, within).map_err(|e| e.to_string())
    }
}

/// Rows of a passage that are fitted where the definition names no other number: all of a context of this length.
const MOST_ROWS: usize = 1024;
/// Seconds of one core that the fits of a head take, by visible pair and (rank + 16).
const SECONDS_PER_PAIR: f64 = 3e-6;
/// The same where they are sparing.
const SECONDS_PER_SPARING_PAIR: f64 = 3e-7;
/// Seconds of one core that screening takes, by visible pair.
const SECONDS_PER_SCREENED_PAIR: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lm::{PretrainedModel, Published};
    use crate::row::Rows;
    use crate::study::{Plan, Preset, StudyDefinition};

    /// Every head of a published model gets its rows, from its own tokenizer's tokens.
    #[test]
    fn published_models_are_held_against_what_they_needed_too() {
        for (published, visible) in [(Published::gpt2(), "gpt2"), (Published::bert(), "bert")] {
            let folder = tempfile::tempdir().unwrap();
            let model = folder.path().join("model");
            std::fs::create_dir(&model).unwrap();
            published.write_with_tokenizer(&model);
            let text = folder.path().join("text.txt");
            std::fs::write(&text, "the cat sat dog cat the sat ".repeat(40)).unwrap();
            let definition = format!(
                "study = \"published\"\nkind = \"predict\"\n[predict]\nfolders = [{:?}]\nepsilon = [0.1]\n\
                 passages = 2\ntokens = 6\nsplit = \"all\"\n",
                model.display().to_string()
            );
            let path = Path::new("published.toml");
            let definition = StudyDefinition::parse(path, definition, Preset::Paper).unwrap();
            let data = folder.path().join("data");
            let plan = Plan::new(&definition, &data, None, Some(&text), None).unwrap();
            let sweep = crate::study::Sweep {
                threads: 1,
                stop: &std::sync::atomic::AtomicBool::new(false),
                device: crate::lm::Device::Cpu,
                observer: &(),
            };
            let model = PretrainedModel::read(&model).unwrap();
            let summary = plan.run(&sweep).unwrap();
            assert!(summary.failed.is_empty(), "{:?}", summary.failed);
            let rows = Rows::<HeadFound>::read(&[data.join("published")]).unwrap().rows;
            assert_eq!(rows.len(), model.layers() * model.heads());
            assert!(rows.iter().all(|row| row.of.model.arm == visible && row.found.n == 6));
        }
    }
}
