//! What defines a training run: every key, its default, and which values it may take.

mod checks;
mod choices;
mod keys;
mod read;
mod synthetic_corpus;
#[cfg(test)]
mod tests;

pub use choices::{Arm, Dtype, Objective, Positions, Schedule, Slopes, Stabiliser, TextVocabulary};
pub use keys::TrainDefinition;
pub use synthetic_corpus::SyntheticCorpus;
