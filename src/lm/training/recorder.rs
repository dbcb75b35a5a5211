//! Who keeps the records of a run.

use std::io;

use super::records::{EvalRecord, HeadRecord, StepRecord};
use super::trainer::Trainer;
use crate::lm::LmError;

/// Takes the records of a run as they come. Each method does nothing unless it is written; an
/// error, as of a full disk, ends the run.
pub trait Recorder {
    /// After each step, before that step's heads.
    ///
    /// # Errors
    /// Where the record could not be kept.
    fn step(&mut self, _record: &StepRecord) -> io::Result<()> {
        Ok(())
    }

    /// After each step, once a head, by layer and head.
    ///
    /// # Errors
    /// Where the record could not be kept.
    fn head(&mut self, _record: &HeadRecord) -> io::Result<()> {
        Ok(())
    }

    /// After each evaluation.
    ///
    /// # Errors
    /// Where the record could not be kept.
    fn eval(&mut self, _record: &EvalRecord) -> io::Result<()> {
        Ok(())
    }

    /// Every `checkpoint_every` steps, for a recorder that wants to [`Trainer::save`] the run.
    ///
    /// # Errors
    /// Where the run could not be saved.
    fn checkpoint(&mut self, _trainer: &Trainer) -> Result<(), LmError> {
        Ok(())
    }

    /// At the steps of `keep_checkpoints`, before any [`Self::checkpoint`] of the same step.
    ///
    /// # Errors
    /// Where the weights could not be saved.
    fn keep(&mut self, _trainer: &Trainer) -> Result<(), LmError> {
        Ok(())
    }
}

/// Keeps nothing.
impl Recorder for () {}
