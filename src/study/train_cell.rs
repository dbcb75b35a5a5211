//! One cell of a study of training runs, and the row that it gives.

use std::path::{Path, PathBuf};

use toml::Table;

use super::cell::{Measure, Needs, Within};
use super::definition::{StudyRun, TaughtBy, TrainStudy};
use super::settings;
use super::text_source::{TextHashes, TextSource};
use crate::lm::{Corpus, Outcome, StepRecord, TrainDefinition};
use crate::pattern::HeadKind;
use crate::row::{SYNTHETIC, TrainingFound, TrainingOf, to_microseconds};
use crate::run::files::CHECKPOINT;
use crate::run::manifest::{MANIFEST, Manifest};
use crate::run::run_manifest;
use crate::run::series::RunSeries;
use crate::run::train::set_aside_another;
use crate::run::{Begin, RunError, TrainedRun, Training, train};

/// One training run of a study.
#[derive(Clone, Debug)]
pub(super) struct TrainCell {
    run: String,
    definition: TrainDefinition,
    text: Option<TextSource>,
    teacher: Option<TaughtBy>,
}

impl TrainCell {
    /// Every cell of a study: its runs, each at its seeds.
    pub fn all(study: &TrainStudy, text: Option<&TextSource>) -> Vec<(String, Self)> {
        let mut cells = Vec::new();
        for StudyRun { name, definition, seeds, teacher } in &study.runs {
            for &seed in seeds {
                let definition = TrainDefinition { seed, ..definition.clone() };
                let cell = Self::new(name, &definition, text).taught_by(teacher.clone());
                cells.push((format!("{name}/s{seed}"), cell));
            }
        }
        cells
    }

    /// One run.
    pub fn new(run: &str, definition: &TrainDefinition, text: Option<&TextSource>) -> Self {
        Self {
            run: run.to_owned(),
            definition: definition.clone(),
            text: text.cloned(),
            teacher: None,
        }
    }

    /// The same with a teacher.
    pub fn taught_by(self, teacher: Option<TaughtBy>) -> Self {
        Self { teacher, ..self }
    }

    /// Whether this very run, of its text, ended in `folder`: what another study reads there is what it names.
    pub fn has_ended_in(&self, folder: &Path) -> bool {
        let of_text =
            |text: &TextSource| TextHashes::of_run(folder).as_ref() == Some(text.hashes());
        self.text.as_ref().is_none_or(of_text)
            && Manifest::read(&folder.join(MANIFEST)).is_ok_and(|manifest| {
                let teacher = self.teacher.as_ref().map(teacher_name);
                run_manifest::is_ended_run_of(&manifest, &self.definition, teacher.as_deref())
            })
    }

    /// The teacher's cell of its study, and its folder, given this cell's own, data/STUDY/RUN/sSEED.
    fn teachers_cell(&self, of: &TaughtBy, folder: &Path) -> (String, PathBuf) {
        let cell = format!("{}/s{}", of.run, self.definition.seed);
        let data = folder.ancestors().nth(3).unwrap_or(Path::new(""));
        let study = TextSource::name_of_study(data, &of.study, self.text.as_ref());
        let folder = data.join(study).join(&cell);
        (cell, folder)
    }

    /// Trains, or goes on with what an earlier call left there; none where it was stopped before its
    /// end. A run of other settings there is moved aside. The tokens of a long text are kept. Writes the run's curve too.
    fn run(&self, within: &Within<'_>) -> Result<Option<Vec<TrainingFound>>, RunError> {
        let (corpus, source) = match (&self.text, within.texts) {
            (Some(text), Some(texts)) => {
                let corpus = Corpus::from_texts(&self.definition, texts, within.tokens)?;
                (corpus, text.path.as_str())
            }
            _ => (Corpus::synthetic(&self.definition)?, SYNTHETIC),
        };
        let share = 1.0 / self.definition.steps as f64;
        let teacher = match &self.teacher {
            None => None,
            Some(of) => {
                let (_, folder) = self.teachers_cell(of, within.folder);
                let run = TrainedRun::read(&folder, None)?;
                Some((run.teacher(of.weight, &self.definition)?, teacher_name(of)))
            }
        };
        let training = Training {
            definition: &self.definition,
            corpus: &corpus,
            source,
            device: within.device,
            teacher: teacher.as_ref().map(|(teacher, name)| (teacher, name.as_str())),
        };
        if let Some(aside) = set_aside_another(&training, within.folder)? {
            (within.warned)(&format!(
                "warning: {} held a run of other settings; it is in {} now",
                within.folder.display(),
                aside.display()
            ));
        }
        let on_step = |_: &StepRecord| (within.advanced)(share);
        let result = train(&training, within.folder, Begin::Continue, within.stop, &on_step)?;
        if result.summary.outcome == Outcome::Stopped {
            return Ok(None);
        }
        let series = RunSeries::read(within.folder)?;
        series.write_curve(within.folder)?;
        Ok(Some(vec![TrainingFound {
            parameters: result.summary.parameters,
            train_loss_nats: result.train_loss_nats,
            valid_loss_nats: result.summary.valid_loss_nats,
            max_abs_logit: result.summary.max_abs_logit,
            outcome: result.outcome().to_owned(),
            wall_time_s: to_microseconds(result.summary.wall_time_s),
            course: series.course(),
            corpus_entropy_nats: corpus.entropy_nats,
            pattern_kl_nats: result.pattern_kl_nats,
        }]))
    }
}

impl Measure for TrainCell {
    type Kind = TrainingFound;

    fn settings(&self) -> Table {
        let mut table = settings::model(&self.definition);
        if let Some(text) = &self.text {
            table.extend(text.hashes().settings());
        }
        if let Some(TaughtBy { study, run, weight }) = &self.teacher {
            table.insert("teacher".to_owned(), format!("{study}/{run}").into());
            table.insert("teacher_weight".to_owned(), (*weight).into());
        }
        table
    }

    fn defaults() -> Table {
        settings::model(&TrainDefinition::default())
    }

    fn cost_s(&self) -> f64 {
        let d = &self.definition;
        let tokens = (d.steps * d.tokens_per_step()) as f64;
        let dense = 12.0 * (d.layers * d.d_model * d.d_model) as f64;
        let seen: usize = d
            .head_kinds()
            .iter()
            .flatten()
            .map(|kind| match kind {
                HeadKind::Global => d.context / 2,
                HeadKind::Local { window } => (*window).min(d.context),
            })
            .sum();
        let attention = 2.0 * (seen * d.d_model / d.heads) as f64;
        tokens * 6.0 * (dense + attention) / SUSTAINED_FLOPS
    }

    fn of(&self) -> TrainingOf {
        let text = self.text.as_ref().map(|text| text.name.as_str());
        TrainingOf::of(&self.run, &self.definition, text)
    }

    fn needs(&self, folder: &Path) -> Option<Needs> {
        let teacher = self.teacher.as_ref()?;
        let (cell, trained) = self.teachers_cell(teacher, folder);
        let missing = !trained.join(CHECKPOINT).exists();
        missing.then(|| Needs { study: teacher.study.clone(), cell })
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<TrainingFound>>, String> {
        self.run(within).map_err(|e| e.to_string())
    }
}

/// A teacher as a run's manifest names it.
fn teacher_name(of: &TaughtBy) -> String {
    format!("{}/{}, weight {}", of.study, of.run, of.weight)
}

/// What one core sustained in training, for the estimate of time left alone.
const SUSTAINED_FLOPS: f64 = 3e10;
