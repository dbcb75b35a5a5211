//! Training definitions: every key, its default, and its valid values.

mod checks;
mod choices;
mod keys;
mod read;
mod synthetic_corpus;
#[cfg(test)]
mod tests;

pub use choices::{Arm, Dtype, Optimiser, Positions, Schedule, Slopes, Stabiliser, TextVocabulary};
pub use keys::TrainDefinition;
pub use synthetic_corpus::SyntheticCorpus;
