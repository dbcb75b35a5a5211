//! The files that a training run writes while it runs.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use super::csv_log::CsvLog;
use super::error::RunError;
use super::events::{Events, Scalars};
use super::heads_log::{HEADS, HEADS_LOG, restore_log, write_heads};
use crate::lm::{
    EvaluationRow, HeadLogRow, LmError, Outcome, Recorder, Split, StepRow, TrainDefinition,
    TrainSummary, Trainer,
};
use crate::system::{FileError, disk, remove_if_there};

/// Number of last steps over which the final training loss is averaged.
const LAST_STEPS: usize = 100;
/// The event file has the heads' logits of about this many steps of a run; `heads.parquet` has all.
const EVENT_STEPS: usize = 1000;

/// Folder of the checkpoints, relative to the run's folder.
const CHECKPOINTS: &str = "checkpoint";
/// The last checkpoint, relative to the run's folder: weights, optimiser moments and the position in the run.
pub(crate) const CHECKPOINT: &str = "checkpoint/training.safetensors";
/// The BPE vocabulary, if the run has one.
pub(crate) const TOKENIZER: &str = "tokenizer.json";
pub(crate) const STEPS: &str = "steps.csv";
pub(crate) const EVALUATIONS: &str = "eval.csv";
const EVENTS: &str = "events.out.tfevents.rank-study";

/// The recorder that writes a run's files. `steps.csv`, `eval.csv` and `heads.log` only grow. Everything up to a
/// step is on the disk before that step's checkpoint. So a killed run continues from its checkpoint, with later rows
/// removed. The event file repeats these logs and is then written from them again.
pub(crate) struct RunFiles<'a> {
    folder: PathBuf,
    steps: CsvLog<StepRow>,
    evals: CsvLog<EvaluationRow>,
    heads: CsvLog<HeadLogRow>,
    events: Events,
    event_every: usize,
    last: Last,
    on_step: &'a (dyn Fn(&StepRow) + Sync),
}

/// The last of what was logged.
#[derive(Default)]
struct Last {
    losses: VecDeque<f64>,
    valid_loss: Option<f64>,
    upstream_loss: Option<f64>,
    /// The last step with recorded heads, and the largest |logit| over its heads.
    logit: (usize, Option<f64>),
}

impl Last {
    fn remember_loss(&mut self, loss: f64) {
        if self.losses.len() == LAST_STEPS {
            self.losses.pop_front();
        }
        self.losses.push_back(loss);
    }

    fn remember_evaluation(&mut self, row: &EvaluationRow) {
        let of_split = match row.split {
            Split::UpstreamValid => &mut self.upstream_loss,
            _ => &mut self.valid_loss,
        };
        *of_split = Some(row.loss_nats);
    }

    fn remember_head(&mut self, head: &HeadLogRow) {
        if self.logit.0 != head.step {
            self.logit = (head.step, None);
        }
        let largest = self.logit.1.map_or(head.max_abs_logit, |most| most.max(head.max_abs_logit));
        self.logit.1 = Some(largest);
    }
}

impl<'a> RunFiles<'a> {
    /// Continues the files of a run in `folder` at step `at`. Or creates them, and the folder if it is missing; files of an
    /// earlier run are then replaced.
    ///
    /// # Errors
    /// The folder or a file cannot be written. A file to continue is missing, or lacks rows up to that step.
    pub fn open(
        folder: &Path,
        definition: &TrainDefinition,
        at: Option<usize>,
        on_step: &'a (dyn Fn(&StepRow) + Sync),
    ) -> Result<Self, RunError> {
        if at.is_none() {
            make_empty(folder)?;
        }
        let event_every = definition.steps.div_ceil(EVENT_STEPS);
        let (mut rows, mut logged, mut scalars) = (0, Last::default(), Vec::new());
        let path = folder.join(STEPS);
        let steps = CsvLog::open(&path, at, |row: StepRow| {
            rows += 1;
            logged.remember_loss(row.loss_nats);
            scalars.push((row.step, of_step(&row)));
        })?;
        if let Some(last) = at.filter(|&last| last != rows) {
            let why = format!("has {rows} whole rows, but the checkpoint is at step {last}");
            return Err(RunError::log(&path, why));
        }
        let heads = CsvLog::open(&folder.join(HEADS_LOG), at, |head: HeadLogRow| {
            logged.remember_head(&head);
            if head.step.is_multiple_of(event_every) {
                scalars.push((head.step, of_head(&head)));
            }
        })?;
        let evals = CsvLog::open(&folder.join(EVALUATIONS), at, |row: EvaluationRow| {
            logged.remember_evaluation(&row);
            scalars.push((row.step, of_evaluation(&row)));
        })?;
        // In the order in which they were first written.
        scalars.sort_by_key(|(step, _)| *step);
        let path = folder.join(EVENTS);
        let files = Self {
            steps,
            evals,
            heads,
            events: Events::create(&path, &scalars).map_err(|e| FileError::write(&path, e))?,
            event_every,
            last: logged,
            folder: folder.to_owned(),
            on_step,
        };
        if at.is_none() {
            // Synced too, because a checkpoint needs these files.
            disk::sync_folder(folder).map_err(|e| FileError::write(folder, e))?;
        }
        Ok(files)
    }

    /// Completes the summary of a run: its training loss, and what the trainer does not know if it took no step now.
    pub fn complete(&self, summary: &mut TrainSummary) {
        let Last { losses, valid_loss, upstream_loss, logit: (_, logit) } = &self.last;
        let mean = || losses.iter().sum::<f64>() / losses.len() as f64;
        summary.train_loss_nats = (!losses.is_empty()).then(mean);
        if !matches!(summary.outcome, Outcome::Diverged { .. }) {
            summary.valid_loss_nats = summary.valid_loss_nats.or(*valid_loss);
            summary.upstream_loss_nats = summary.upstream_loss_nats.or(*upstream_loss);
        }
        summary.max_abs_logit = summary.max_abs_logit.or(*logit);
    }

    /// Syncs all files to the disk, then writes a checkpoint.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn save(&mut self, trainer: &Trainer) -> Result<(), LmError> {
        self.steps.sync()?;
        self.evals.sync()?;
        self.heads.sync()?;
        self.events.sync()?;
        trainer.save(&self.folder.join(CHECKPOINT))
    }

    /// Writes `heads.parquet` from all rows that were [saved](Self::save).
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn write_heads(&self) -> Result<(), FileError> {
        write_heads(&self.folder.join(HEADS_LOG), &self.folder.join(HEADS))
    }
}

impl Recorder for RunFiles<'_> {
    fn step(&mut self, row: &StepRow) -> io::Result<()> {
        self.steps.push(row)?;
        self.steps.flush()?;
        self.last.remember_loss(row.loss_nats);
        self.events.push(row.step, &of_step(row))?;
        (self.on_step)(row);
        Ok(())
    }

    fn head(&mut self, row: &HeadLogRow) -> io::Result<()> {
        self.last.remember_head(row);
        if row.step.is_multiple_of(self.event_every) {
            self.events.push(row.step, &of_head(row))?;
        }
        self.heads.push(row)
    }

    fn eval(&mut self, row: &EvaluationRow) -> io::Result<()> {
        self.evals.push(row)?;
        self.evals.flush()?;
        self.last.remember_evaluation(row);
        self.events.push(row.step, &of_evaluation(row))?;
        self.events.flush()
    }

    fn checkpoint(&mut self, trainer: &Trainer) -> Result<(), LmError> {
        self.save(trainer)
    }

    fn keep(&mut self, trainer: &Trainer) -> Result<(), LmError> {
        trainer.model().save(&self.folder.join(kept_checkpoint(trainer.steps())))
    }
}

fn of_step(row: &StepRow) -> Scalars {
    let StepRow { loss_nats, learning_rate, grad_norm, .. } = *row;
    [("loss/train", loss_nats), ("learning_rate", learning_rate), ("grad_norm", grad_norm)]
        .map(|(tag, value)| (tag.to_owned(), value))
        .to_vec()
}

fn of_head(row: &HeadLogRow) -> Scalars {
    vec![(format!("max_abs_logit/layer {} head {}", row.layer, row.head), row.max_abs_logit)]
}

fn of_evaluation(row: &EvaluationRow) -> Scalars {
    vec![(format!("loss/{}", row.split.name()), row.loss_nats)]
}

/// Makes the folder of a run that begins, and removes the checkpoints and heads of an earlier run there: the checkpoints
/// first, so that none is mistaken for one of the new run.
///
/// # Errors
/// The folder or a file cannot be written.
fn make_empty(folder: &Path) -> Result<(), FileError> {
    disk::make_folders(folder).map_err(|e| FileError::write(folder, e))?;
    remove_if_there(&folder.join(CHECKPOINT))?;
    for step in kept_steps(folder) {
        remove_if_there(&folder.join(kept_checkpoint(step)))?;
    }
    // Synced before the new run writes anything: a power failure must not restore old checkpoints beside the new
    // run.
    let checkpoints = folder.join(CHECKPOINTS);
    if checkpoints.exists() {
        disk::sync_folder(&checkpoints).map_err(|e| FileError::write(&checkpoints, e))?;
    }
    remove_if_there(&folder.join(HEADS))
}

/// Path of the kept weights of a step, relative to the run's folder.
pub(crate) fn kept_checkpoint(step: usize) -> String {
    format!("checkpoint/step-{step:06}.safetensors")
}

/// Steps whose weights are kept in a run's folder, in any order.
pub(crate) fn kept_steps(folder: &Path) -> Vec<usize> {
    let Ok(entries) = std::fs::read_dir(folder.join(CHECKPOINTS)) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let step = |name: String| {
        name.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse::<usize>().ok()
    };
    names.filter_map(step).collect()
}

/// Removes the log of heads, once `heads.parquet` has been written from it and synced.
///
/// # Errors
/// The file exists and cannot be removed.
pub(crate) fn remove_heads_log(folder: &Path) -> Result<(), FileError> {
    remove_if_there(&folder.join(HEADS_LOG))
}

/// Restores the log of heads of a run that has ended, so that the run can continue.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn restore_heads_log(folder: &Path) -> Result<(), FileError> {
    let log = folder.join(HEADS_LOG);
    if log.exists() {
        return Ok(());
    }
    restore_log(&folder.join(HEADS), &log)
}
