//! Training a model: the optimiser, the loop, and what it tells.

mod adamw;
mod records;
mod run;
#[cfg(test)]
mod tests;
mod trainer;

#[cfg(feature = "cuda")]
pub(super) use adamw::Update;
pub use records::{EvalRecord, HeadRecord, Outcome, Recorder, StepRecord, TrainSummary};
pub use trainer::Trainer;
