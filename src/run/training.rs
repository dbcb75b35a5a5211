//! Training requests and their results.

use crate::lm::Workers;
use crate::lm::{
    Corpus, Device, Model, Outcome, StepRecord, Teacher, TrainDefinition, TrainSummary,
};
use crate::record::STOPPED;

/// What is to be trained.
#[derive(Clone, Copy)]
pub struct Training<'a> {
    /// The run's definition.
    pub definition: &'a TrainDefinition,
    /// What it reads.
    pub corpus: &'a Corpus,
    /// The corpus's name in the manifest: a text's path, or `synthetic`.
    pub source: &'a str,
    /// Where it runs.
    pub device: Device,
    /// What its heads are to attend like, where they are, and its name in the manifest.
    pub teacher: Option<(&'a Teacher, &'a str)>,
    /// Whose weights it begins with, where not with those drawn from its seed, and what the manifest says of them.
    pub start: Option<(&'a Model, &'a str)>,
    /// The workers that train it: [`Alone`](crate::lm::Alone), or several, each of which calls
    /// [`train`](super::train) with the same.
    pub workers: &'a dyn Workers,
}

/// Sees a run go on. A function of a step sees its steps alone.
pub trait RunObserver: Sync {
    /// A step was taken.
    fn step(&self, record: &StepRecord);
    /// The run goes on to another number of steps than it had.
    fn extended(&self, _extension: Extension) {}
}

impl<F: Fn(&StepRecord) + Sync> RunObserver for F {
    fn step(&self, record: &StepRecord) {
        self(record);
    }
}

/// A run that goes on to another number of steps than it had. Its learning rate follows the schedule of the new number
/// from where it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The last step that was taken.
    pub at: usize,
    /// The steps that it had.
    pub from: usize,
    /// The steps that it has now.
    pub to: usize,
}

/// What a run reached, beside its files.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainResult {
    /// What the trainer says.
    pub summary: TrainSummary,
    /// The mean loss of the last 100 steps, nats a token.
    pub train_loss_nats: Option<f64>,
    /// How far the heads ended from a teacher's, where there was one: see
    /// [`Trainer::pattern_kl_nats`](crate::lm::Trainer::pattern_kl_nats).
    pub pattern_kl_nats: Option<f64>,
}

impl TrainResult {
    /// The outcome as it is written.
    pub fn outcome(&self) -> &'static str {
        match self.summary.outcome {
            Outcome::Completed => "completed",
            Outcome::Diverged { .. } => "diverged",
            Outcome::Stopped => STOPPED,
        }
    }
}
