//! Training of a model: the optimiser, the training loop, and its records.

mod descent;
mod muon;
mod records;
mod run;
mod step;
#[cfg(test)]
mod tests;
mod trainer;
mod update;

pub use records::{EvaluationRow, HeadLogRow, Outcome, StepRow, TrainSummary};
pub use run::Recorder;
pub use trainer::Trainer;
#[cfg(feature = "cuda")]
pub(super) use update::Update;
