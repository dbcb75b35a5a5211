//! A GPT-2-style language model with global and local attention heads, and its trainer, which logs the logits of every
//! head. It reads a text or a seeded synthetic corpus.
//!
//! A [`TrainDefinition`] holds all settings of a run except its text. A [`Corpus`] is the text as tokens. A [`Trainer`] takes
//! the steps. [`Model::probe`] returns the queries and keys of every head, and so does a published [`PretrainedModel`].

mod attention;
mod corpus;
#[cfg(feature = "cuda")]
mod cuda;
mod definition;
mod device;
mod error;
mod evaluation;
mod exported;
mod flatness;
mod memory_estimate;
mod model;
#[cfg(feature = "mpi")]
mod mpi;
mod operators;
mod pretrained;
mod probe;
mod simd;
mod tensor_file;
mod training;
mod workers;

pub use attention::{AttentionEvaluator, HeadStatistics};
pub use corpus::{Bpe, Corpus, Split, Symbols, Texts, Vocabulary};
pub use definition::{
    Arm, Dtype, Optimiser, Positions, RecursionKeys, Router, Schedule, Slopes, Stabiliser,
    SyntheticCorpus, TextVocabulary, TrainDefinition,
};
pub use device::Device;
pub use error::LmError;
pub use evaluation::{Evaluation, evaluate_whole};
pub use exported::ExportedHeads;
pub use flatness::{EIGENVALUE_TOLERANCE, FlatnessMeasurement};
use model::attended;
pub use model::{Forward, Matrices, Model, ModelShape, RecursionShape, Session};
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use pretrained::PretrainedModel;
#[cfg(all(test, feature = "study"))]
pub(crate) use pretrained::Published;
pub use probe::{
    Attend, HeadInputs, HeadProbe, HeadsOfLayer, NormalisedInputs, PositionBias, Probed,
};
pub use training::{EvaluationRow, HeadLogRow, Outcome, Recorder, StepRow, TrainSummary, Trainer};
pub use workers::{Alone, Workers};
