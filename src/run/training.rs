//! Training requests and their observers.

use crate::lm::{Corpus, Device, StepRow, TrainDefinition, Workers};

/// Input of a training run.
#[derive(Clone, Copy)]
pub struct Training<'a> {
    /// The run's definition.
    pub definition: &'a TrainDefinition,
    /// Corpus to train on.
    pub corpus: &'a Corpus,
    /// The corpus's name in the manifest: a text's path, or `synthetic`.
    pub source: &'a str,
    /// Device of the computation.
    pub device: Device,
    /// Workers that train the run: [`Alone`](crate::lm::Alone), or several that each call [`train`](super::train) with
    /// the same input.
    pub workers: &'a dyn Workers,
}

/// Observer of a run's progress. A closure observes only steps.
pub trait RunObserver: Sync {
    /// Called after each step.
    fn step(&self, row: &StepRow);
    /// Called when the run continues to another number of steps.
    fn extended(&self, _extension: Extension) {}
}

impl<F: Fn(&StepRow) + Sync> RunObserver for F {
    fn step(&self, row: &StepRow) {
        self(row);
    }
}

/// Change of a run's number of steps. From the current step on, the learning rate follows the schedule of the new
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Last step taken.
    pub at: usize,
    /// Number of steps before the extension.
    pub from: usize,
    /// New number of steps.
    pub to: usize,
}
