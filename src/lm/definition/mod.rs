//! Training definitions: every key, its default, and its valid values.

mod checks;
mod choices;
mod keys;
mod read;
#[cfg(test)]
mod tests;

pub(super) use choices::MOST_SYMBOLS;
pub use choices::{
    Arm, Dtype, Optimiser, Positions, RecursionKeys, Router, Schedule, Slopes, Stabiliser,
    TextVocabulary,
};
pub use keys::{SyntheticCorpus, TrainDefinition};
