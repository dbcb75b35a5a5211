//! Training of a model: the optimiser, the training loop, and its records.

mod descent;
mod muon;
mod norm;
mod recorder;
mod records;
mod run;
mod schedule;
mod share;
#[cfg(test)]
mod tests;
mod trainer;
mod update;

pub use recorder::Recorder;
pub use records::{EvalRecord, HeadRecord, Outcome, StepRecord, TrainSummary};
pub use trainer::Trainer;
#[cfg(feature = "cuda")]
pub(super) use update::Update;
