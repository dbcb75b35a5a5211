//! The training loop, and the interface that receives its rows.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::records::{EvaluationRow, HeadLogRow, Outcome, StepRow, TrainSummary};
use super::trainer::Trainer;
use crate::lm::{LmError, Split};

impl Trainer<'_> {
    /// Runs steps until the definition's number of steps, a divergence, or `stop`. Calls `recorder` after every step and
    /// evaluation, at the steps of `keep_checkpoints`, and every `checkpoint_every` steps. The validation split is
    /// evaluated every `eval_every` steps and after the last one.
    /// A run that has ended already takes no step. Several workers all stop after the same step, whichever of them is
    /// asked to. Nothing is saved if the weights of the workers differ.
    ///
    /// # Errors
    /// A row that could not be written, or workers whose weights differ.
    pub fn run(
        &mut self,
        recorder: &mut dyn Recorder,
        stop: &AtomicBool,
    ) -> Result<TrainSummary, LmError> {
        let mut outcome = Outcome::Completed;
        let (mut valid_loss_nats, mut upstream_loss_nats) = (None, None);
        self.check_same_weights()?;
        while !self.diverged && self.steps() < self.definition.steps {
            if self.workers.any(stop.load(Ordering::Relaxed)) {
                outcome = Outcome::Stopped;
                break;
            }
            let step = self.step()?;
            recorder.step(&step)?;
            for head in self.head_rows() {
                recorder.head(&head)?;
            }
            if self.has_diverged(&step) {
                self.diverged = true;
                (valid_loss_nats, upstream_loss_nats) = (None, None);
                break;
            }
            let last = self.steps() == self.definition.steps;
            if last || self.steps().is_multiple_of(self.definition.eval_every) {
                let found = self.evaluate(Split::Valid)?;
                recorder.eval(&found)?;
                valid_loss_nats = Some(found.loss_nats);
                if self.corpus.has_upstream() {
                    let found = self.evaluate(Split::UpstreamValid)?;
                    recorder.eval(&found)?;
                    upstream_loss_nats = Some(found.loss_nats);
                }
            }
            let saves = self.steps().is_multiple_of(self.definition.checkpoint_every);
            let keeps = self.definition.keep_checkpoints.contains(&self.steps());
            if last || saves || keeps {
                self.check_same_weights()?;
            }
            if keeps {
                recorder.keep(self)?;
            }
            if saves {
                recorder.checkpoint(self)?;
            }
        }
        if self.diverged {
            outcome = Outcome::Diverged { step: self.steps() };
        }
        Ok(TrainSummary {
            outcome,
            steps: self.steps(),
            parameters: self.model().parameters(),
            train_loss_nats: None,
            valid_loss_nats,
            upstream_loss_nats,
            max_abs_logit: self.max_abs_logit(),
            wall_time_s: self.wall_time_s(),
        })
    }

    fn has_diverged(&self, row: &StepRow) -> bool {
        let finite = row.loss_nats.is_finite() && row.grad_norm.is_finite();
        let warmed_up = row.step > self.definition.warmup_steps;
        !finite || (warmed_up && row.loss_nats > self.definition.diverged_above)
    }

    fn head_rows(&self) -> impl Iterator<Item = HeadLogRow> {
        let shape = self.model().shape();
        let kinds = shape.logged_layers().into_iter().map(|block| &shape.heads[block]);
        let layers = self.heads().iter().zip(kinds).enumerate();
        layers.flat_map(move |(layer, (heads, kinds))| {
            heads.iter().zip(kinds).enumerate().map(move |(head, (seen, &kind))| {
                let (kind, window) = HeadLogRow::columns_of(kind);
                HeadLogRow {
                    step: self.steps(),
                    layer,
                    head,
                    kind,
                    window,
                    max_logit: seen.max_logit.into(),
                    min_logit: seen.min_logit.into(),
                    max_abs_logit: seen.max_abs_logit().into(),
                    entropy_nats: seen.entropy_nats.into(),
                }
            })
        })
    }

    fn max_abs_logit(&self) -> Option<f64> {
        let heads = self.heads().iter().flatten();
        heads.map(|head| f64::from(head.max_abs_logit())).reduce(f64::max)
    }
}

/// Receives the rows of a run. The default methods do nothing. An
/// error, for example of a full disk, ends the run.
pub trait Recorder {
    /// Called after each step, before `head` is called for that step.
    ///
    /// # Errors
    /// If the row cannot be written.
    fn step(&mut self, _row: &StepRow) -> io::Result<()> {
        Ok(())
    }

    /// Called after each step for each head, by layer and head.
    ///
    /// # Errors
    /// If the row cannot be written.
    fn head(&mut self, _row: &HeadLogRow) -> io::Result<()> {
        Ok(())
    }

    /// Called after each evaluation.
    ///
    /// # Errors
    /// If the row cannot be written.
    fn eval(&mut self, _row: &EvaluationRow) -> io::Result<()> {
        Ok(())
    }

    /// Called every `checkpoint_every` steps, so that the recorder can [`Trainer::save`] the run.
    ///
    /// # Errors
    /// If the run cannot be saved.
    fn checkpoint(&mut self, _trainer: &Trainer) -> Result<(), LmError> {
        Ok(())
    }

    /// Called at the steps of `keep_checkpoints`, before any [`Self::checkpoint`] of the same step.
    ///
    /// # Errors
    /// If the weights cannot be saved.
    fn keep(&mut self, _trainer: &Trainer) -> Result<(), LmError> {
        Ok(())
    }
}

/// Discards all rows.
impl Recorder for () {}
