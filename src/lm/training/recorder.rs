//! The interface that receives the records of a run.

use std::io;

use super::records::{EvalRecord, HeadRecord, StepRecord};
use super::trainer::Trainer;
use crate::lm::LmError;

/// Receives the records of a run. The default methods do nothing. An
/// error, for example of a full disk, ends the run.
pub trait Recorder {
    /// Called after each step, before `head` is called for that step.
    ///
    /// # Errors
    /// If the record cannot be written.
    fn step(&mut self, _record: &StepRecord) -> io::Result<()> {
        Ok(())
    }

    /// Called after each step for each head, by layer and head.
    ///
    /// # Errors
    /// If the record cannot be written.
    fn head(&mut self, _record: &HeadRecord) -> io::Result<()> {
        Ok(())
    }

    /// Called after each evaluation.
    ///
    /// # Errors
    /// If the record cannot be written.
    fn eval(&mut self, _record: &EvalRecord) -> io::Result<()> {
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

/// Discards all records.
impl Recorder for () {}
