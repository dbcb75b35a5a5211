//! One cell of a study of training runs, and its row.

use std::path::Path;

use toml::Table;

use super::references::{check_known_run, runs_of};
use super::row::{SYNTHETIC, TrainingKey, TrainingMeasurement};
use super::run_files::check_run;
use super::study::{Baseline, RunKeys, StudyRun, TrainKeys, TrainStudy, baseline, runs};
use crate::experiment::{
    CellContext, DefinitionTable, Experiment, Measure, RawDefinition, StudyError, TextHashes,
    TextSource, View, model_settings,
};
use crate::lm::{Alone, Corpus, Outcome, StepRow, TrainDefinition};
use crate::record::{InvariantChecker, Row, to_microseconds};
use crate::run::files::{CHECKPOINT, kept_checkpoint};
use crate::run::manifest::{MANIFEST, Manifest};
use crate::run::series::{CURVE, RunSeries};
use crate::run::train::set_aside_another;
use crate::run::{Begin, Training, kept_files, run_manifest, train};
use crate::table::distinct;

/// One training run of a study.
#[derive(Clone, Debug)]
pub(crate) struct TrainCell {
    run: String,
    definition: TrainDefinition,
    text: Option<TextSource>,
}

impl TrainCell {
    /// Makes the cell of a run at one of its seeds.
    pub fn of(run: &StudyRun, seed: u64, text: Option<&TextSource>) -> Self {
        Self {
            run: run.name.clone(),
            definition: TrainDefinition { seed, ..run.definition.clone() },
            text: text.cloned(),
        }
    }

    /// Whether `folder` holds the weights of exactly this run, with its definition and text, after `step`. The last
    /// weights count only if the run has ended; intermediate checkpoints are final.
    pub fn has_weights_in(&self, folder: &Path, step: usize) -> bool {
        let is_last = step == self.definition.steps;
        let weights = match is_last {
            true => CHECKPOINT.to_owned(),
            false => kept_checkpoint(step),
        };
        let is_of_text =
            |text: &TextSource| TextHashes::of_run(folder).as_ref() == Some(text.hashes());
        folder.join(weights).exists()
            && self.text.as_ref().is_none_or(is_of_text)
            && Manifest::read(&folder.join(MANIFEST)).is_ok_and(|manifest| {
                run_manifest::is_run_of(&manifest, &self.definition)
                    && (!is_last || run_manifest::result(&manifest).is_some())
            })
    }
}

impl Experiment for TrainStudy {
    type Cell = TrainCell;

    const TABLES: &'static [DefinitionTable] = &[
        DefinitionTable::one::<TrainKeys>("train"),
        DefinitionTable::list::<RunKeys>("run"),
        DefinitionTable::one::<Baseline>("baseline"),
    ];
    const VIEWS: &'static [View] = super::views::VIEWS;

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        Ok(Self {
            runs: runs(raw)?,
            baseline: raw.table("baseline")?.map(baseline).transpose()?,
            path: raw.path.clone(),
            preset: raw.preset,
        })
    }

    fn cells(
        &self,
        text: Option<&TextSource>,
        _: &Path,
    ) -> Result<Vec<(String, TrainCell)>, StudyError> {
        let mut cells = Vec::new();
        for run in &self.runs {
            for &seed in &run.seeds {
                cells.push((cell_key(&run.name, seed), TrainCell::of(run, seed, text)));
            }
        }
        Ok(cells)
    }

    fn dtype(&self) -> String {
        distinct(self.runs.iter().map(|run| run.definition.dtype.name())).join(", ")
    }

    fn can_read_text(&self) -> bool {
        true
    }

    fn depends_on_text(&self) -> bool {
        true
    }

    fn check_references(&self) -> Result<(), StudyError> {
        let Some(Baseline { of, runs }) = &self.baseline else { return Ok(()) };
        let wrong = |why| StudyError::Definition { path: self.path.clone(), why };
        let all = runs_of(of, &self.path, self.preset)
            .map_err(|why| wrong(format!("baseline.of {of:?}: {why}")))?;
        let known: Vec<&str> = all.iter().map(|run| run.name.as_str()).collect();
        runs.iter()
            .try_for_each(|run| check_known_run(run, &known))
            .map_err(|why| wrong(format!("baseline.runs has {why}")))
    }

    fn check_files(
        rows: &[Row<TrainingMeasurement>],
        folder: &Path,
        check: &mut InvariantChecker,
    ) -> Option<String> {
        let unhashed = rows.iter().filter(|row| !check_run(row, folder, check)).count();
        (unhashed > 0).then(|| {
            format!(
                "the manifests of {unhashed} runs have no hash of curve.csv and eval.csv, so changes \
                 there cannot be detected"
            )
        })
    }
}

impl Measure for TrainCell {
    type Row = TrainingMeasurement;

    fn settings(&self) -> Table {
        let mut table = model_settings(&self.definition);
        if let Some(text) = &self.text {
            table.extend(text.hashes().settings());
        }
        table
    }

    fn defaults() -> Table {
        model_settings(&TrainDefinition::default())
    }

    fn key(&self) -> TrainingKey {
        let text = self.text.as_ref().map(|text| text.name.as_str());
        TrainingKey::of(&self.run, &self.definition, text)
    }

    /// Trains, or resumes from the state in the folder. Returns `None` if it was stopped before its first evaluation. A
    /// run with other settings is moved aside. The tokens of a long text are cached. Also writes the run's curve.
    fn measure(
        &self,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<TrainingMeasurement>>, StudyError> {
        let (corpus, source) = match (&self.text, context.texts) {
            (Some(text), Some(texts)) => {
                let corpus = Corpus::from_texts(&self.definition, texts, context.tokens)?;
                (corpus, text.path.as_str())
            }
            _ => (Corpus::synthetic(&self.definition)?, SYNTHETIC),
        };
        let share = 1.0 / self.definition.steps as f64;
        let training = Training {
            definition: &self.definition,
            corpus: &corpus,
            source,
            device: context.device,
            workers: &Alone,
        };
        if let Some(aside) = set_aside_another(&training, context.folder)? {
            (context.warned)(&format!(
                "warning: {} held a run with other settings, now in {}",
                context.folder.display(),
                aside.display()
            ));
        }
        let on_step = |_: &StepRow| (context.advanced)(share);
        let result = train(&training, context.folder, Begin::Continue, context.stop, &on_step)?;
        // A run that was stopped before its first evaluation has no results.
        if result.outcome == Outcome::Stopped && result.valid_loss_nats.is_none() {
            return Ok(None);
        }
        let series = RunSeries::read(context.folder)?;
        series.write_curve(context.folder)?;
        kept_files::note_there(context.folder, CURVE)?;
        Ok(Some(vec![TrainingMeasurement {
            parameters: result.parameters,
            train_loss_nats: result.train_loss_nats,
            valid_loss_nats: result.valid_loss_nats,
            upstream_loss_nats: result.upstream_loss_nats,
            max_abs_logit: result.max_abs_logit,
            outcome: result.outcome.name().to_owned(),
            wall_time_s: to_microseconds(result.wall_time_s),
            course: series.course(),
            corpus_entropy_nats: corpus.entropy_nats,
        }]))
    }
}

/// The key of a cell: a run at a seed.
pub(crate) fn cell_key(run: &str, seed: u64) -> String {
    format!("{run}/s{seed}")
}
