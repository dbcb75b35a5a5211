//! One training run with its files: `steps.csv`, `heads.parquet`, `eval.csv`, `manifest.toml`, and
//! the last checkpoint.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use polars::prelude::{Column, IntoColumn, NamedFrom, Series};

use super::manifest::Manifest;
use super::schema::{Columns, EVALUATION_COLUMNS, STEP_COLUMNS};
use super::store::write_parquet;
use super::{StudyError, TrainError};
use crate::lm::{
    Corpus, EvalRecord, HeadRecord, LmError, Outcome, Recorder, Split, StepRecord, TrainDefinition,
    TrainSummary, Trainer, Vocabulary,
};
use crate::target::HeadKind;

/// How many of the last steps the final training loss is the mean of.
const LAST_STEPS: usize = 100;
/// The last checkpoint, in a run's folder: weights, optimiser moments, and where the run stands.
const CHECKPOINT: &str = "checkpoint/training.safetensors";

/// The recorder that keeps a run's files. `steps.csv` and `eval.csv` grow line by line;
/// `heads.parquet` is rewritten whole at each evaluation.
struct RunFiles<'a> {
    folder: PathBuf,
    steps: csv::Writer<File>,
    evals: csv::Writer<File>,
    heads: Vec<HeadRecord>,
    last_losses: VecDeque<f64>,
    on_step: &'a (dyn Fn(&StepRecord) + Sync),
}

impl<'a> RunFiles<'a> {
    /// Starts the files of a run in `folder`, which is made where it is missing; files of an earlier
    /// run there are replaced.
    ///
    /// # Errors
    /// A folder or file that cannot be written.
    fn create(
        folder: &Path,
        on_step: &'a (dyn Fn(&StepRecord) + Sync),
    ) -> Result<Self, StudyError> {
        std::fs::create_dir_all(folder).map_err(|e| StudyError::write(folder, e))?;
        let writer = |name: &str, columns: &Columns| {
            let path = folder.join(name);
            let start = || -> io::Result<csv::Writer<File>> {
                let mut writer = csv::Writer::from_writer(File::create(&path)?);
                writer.write_record(columns.iter().map(|(name, _)| name))?;
                writer.flush()?;
                Ok(writer)
            };
            start().map_err(|e| StudyError::write(&path, e))
        };
        Ok(Self {
            folder: folder.to_owned(),
            steps: writer("steps.csv", STEP_COLUMNS)?,
            evals: writer("eval.csv", EVALUATION_COLUMNS)?,
            heads: Vec::new(),
            last_losses: VecDeque::with_capacity(LAST_STEPS),
            on_step,
        })
    }

    /// The mean loss of the last 100 steps; none before the first.
    fn train_loss_nats(&self) -> Option<f64> {
        let count = self.last_losses.len();
        (count > 0).then(|| self.last_losses.iter().sum::<f64>() / count as f64)
    }

    /// Writes `heads.parquet` from all that was recorded.
    ///
    /// # Errors
    /// A file that cannot be written.
    fn write_heads(&self) -> Result<(), StudyError> {
        let heads = &self.heads;
        let whole = |name: &str, of: fn(&HeadRecord) -> i64| {
            Series::new(name.into(), heads.iter().map(of).collect::<Vec<i64>>()).into_column()
        };
        let number = |name: &str, of: fn(&HeadRecord) -> f64| {
            Series::new(name.into(), heads.iter().map(of).collect::<Vec<f64>>()).into_column()
        };
        let kinds: Vec<&str> = heads
            .iter()
            .map(|h| if h.kind == HeadKind::Global { "global" } else { "local" })
            .collect();
        let windows: Vec<Option<i64>> = heads
            .iter()
            .map(|h| match h.kind {
                HeadKind::Global => None,
                HeadKind::Local { window } => Some(window as i64),
            })
            .collect();
        let columns: Vec<Column> = vec![
            whole("step", |h| h.step as i64),
            whole("layer", |h| h.layer as i64),
            whole("head", |h| h.head as i64),
            Series::new("kind".into(), kinds).into_column(),
            Series::new("window".into(), windows).into_column(),
            number("max_logit", |h| h.max_logit),
            number("min_logit", |h| h.min_logit),
            number("max_abs_logit", |h| h.max_abs_logit),
            number("entropy_nats", |h| h.entropy_nats),
        ];
        write_parquet(&self.folder.join("heads.parquet"), heads.len(), columns)
    }
}

impl Recorder for RunFiles<'_> {
    fn step(&mut self, record: &StepRecord) -> io::Result<()> {
        self.steps.write_record([
            record.step.to_string(),
            record.tokens.to_string(),
            record.loss_nats.to_string(),
            record.learning_rate.to_string(),
            record.grad_norm.to_string(),
            format!("{:.6}", record.wall_time_s),
        ])?;
        self.steps.flush()?;
        if self.last_losses.len() == LAST_STEPS {
            self.last_losses.pop_front();
        }
        self.last_losses.push_back(record.loss_nats);
        (self.on_step)(record);
        Ok(())
    }

    fn head(&mut self, record: &HeadRecord) -> io::Result<()> {
        self.heads.push(*record);
        Ok(())
    }

    fn eval(&mut self, record: &EvalRecord) -> io::Result<()> {
        self.evals.write_record([
            record.step.to_string(),
            record.split.name().to_owned(),
            record.tokens.to_string(),
            record.loss_nats.to_string(),
            record.perplexity.to_string(),
        ])?;
        self.evals.flush()?;
        self.write_heads().map_err(io::Error::other)
    }

    fn checkpoint(&mut self, trainer: &Trainer) -> Result<(), LmError> {
        trainer.save(&self.folder.join(CHECKPOINT))
    }
}

/// What a run reached, beside its files.
#[derive(Clone, Debug)]
pub struct TrainResult {
    /// What the trainer says.
    pub summary: TrainSummary,
    /// The mean loss of the last 100 steps, nats a token.
    pub train_loss_nats: Option<f64>,
}

impl TrainResult {
    /// The outcome as it is written in a row.
    pub fn outcome(&self) -> &'static str {
        match self.summary.outcome {
            Outcome::Completed => "completed",
            Outcome::Diverged { .. } => "diverged",
            Outcome::Stopped => "stopped",
        }
    }
}

/// Trains one model and keeps its files in `folder`: steps, heads and evaluations as they come, the
/// manifest at the start and at the end, the last checkpoint.
///
/// `source` names the corpus in the manifest: a text's path, or `synthetic`.
///
/// # Errors
/// A file that cannot be written, or an error of the tensor library. Divergence is an outcome.
pub fn train(
    definition: &TrainDefinition,
    corpus: &Corpus,
    source: &str,
    folder: &Path,
    stop: &AtomicBool,
    on_step: &(dyn Fn(&StepRecord) + Sync),
) -> Result<TrainResult, TrainError> {
    let mut files = RunFiles::create(folder, on_step)?;
    let mut trainer = Trainer::new(definition, corpus)?;
    let manifest_path = folder.join("manifest.toml");
    let mut manifest = Manifest::begin(rayon::current_num_threads(), "float32");
    manifest.more = particulars(definition, corpus, source)?;
    manifest.more.insert("parameters".to_owned(), (trainer.model().parameters() as i64).into());
    manifest.more.insert("outcome".to_owned(), "running".into());
    manifest.write(&manifest_path)?;
    let summary = trainer.run(&mut files, stop)?;
    files.write_heads()?;
    trainer.save(&folder.join(CHECKPOINT))?;
    let result = TrainResult { summary, train_loss_nats: files.train_loss_nats() };
    manifest.end(summary.wall_time_s);
    manifest.more.insert("outcome".to_owned(), result.outcome().into());
    manifest.write(&manifest_path)?;
    Ok(result)
}

fn particulars(
    definition: &TrainDefinition,
    corpus: &Corpus,
    source: &str,
) -> Result<toml::Table, TrainError> {
    let mut about = toml::Table::new();
    about.insert("source".to_owned(), source.into());
    about.insert("sha256".to_owned(), corpus.sha256.clone().into());
    about.insert("vocabulary_size".to_owned(), (corpus.vocabulary.size() as i64).into());
    if let Vocabulary::Characters(characters) = &corpus.vocabulary {
        about.insert("characters".to_owned(), characters.iter().collect::<String>().into());
    }
    for split in [Split::Train, Split::Valid] {
        let key = format!("{}_tokens", split.name());
        about.insert(key, (corpus.split(split).len() as i64).into());
    }
    if let Some(entropy) = corpus.entropy_nats {
        about.insert("entropy_nats".to_owned(), entropy.into());
    }
    let mut more = toml::Table::new();
    more.insert("device".to_owned(), "cpu".into());
    more.insert("definition".to_owned(), definition.to_table()?.into());
    more.insert("corpus".to_owned(), about.into());
    Ok(more)
}
