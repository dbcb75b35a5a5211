//! What defines a training run: every key, its default, and which values it may take.

mod checks;
mod choices;
mod heads;
mod keys;
mod read;
mod synthetic_corpus;
#[cfg(test)]
mod tests;
mod text_vocabulary;

pub use choices::{Arm, Dtype, Objective, Positions, Schedule, Slopes, Stabiliser};
pub use keys::TrainDefinition;
pub use synthetic_corpus::SyntheticCorpus;
pub use text_vocabulary::TextVocabulary;
