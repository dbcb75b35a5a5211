//! Training requests.

use crate::lm::{Corpus, Device, TrainDefinition, Workers};

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
