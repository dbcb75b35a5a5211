//! What training does: a GPT-2-style language model whose attention heads are global or local,
//! trained on a text or on a seeded synthetic corpus, with the logits of every head logged.

mod attention;
mod choices;
mod corpus;
#[cfg(feature = "cuda")]
mod cuda;
mod definition;
mod device;
mod error;
mod evaluation;
mod foreign;
mod latency;
mod model;
mod operators;
mod optimiser;
mod records;
mod schedule;
mod simd;
mod tensor_file;
mod trainer;
mod weights;

pub use attention::{AttentionEvaluator, AttentionPass};
pub use choices::{Arm, Dtype, Positions, Schedule, Stabiliser};
pub use corpus::{
    Bpe, Corpus, Symbols, SyntheticCorpus, TextVocabulary, Texts, Tokens, Vocabulary,
};
pub use definition::TrainDefinition;
pub use device::Device;
pub use error::LmError;
pub use evaluation::{Evaluation, evaluate, evaluate_whole};
pub use foreign::ForeignModel;
#[cfg(test)]
pub(crate) use foreign::Published;
pub use latency::Latency;
pub use model::{
    Forward, HeadInputs, HeadProbe, HeadStatistics, Model, ModelShape, NormalisedInputs, Session,
    Teacher,
};
pub use records::{EvalRecord, HeadRecord, Outcome, Recorder, Split, StepRecord, TrainSummary};
pub use trainer::Trainer;
