//! rank-study: how large must attention logits grow when the queries and keys are low-rank, and
//! does that explain what happens in real language-model training?

mod blas;
mod lm;
mod process;
mod target;

pub use lm::{
    Arm, Corpus, Dtype, EvalRecord, Evaluation, Forward, HeadProbe, HeadRecord, HeadStatistics,
    LmError, Model, ModelShape, Outcome, Positions, Recorder, Schedule, Split, StepRecord,
    SyntheticCorpus, TextVocabulary, TrainDefinition, TrainSummary, Trainer, Vocabulary, evaluate,
};
pub use process::prepare_process;
pub use target::{HeadKind, Layout, Target, TargetError, Visibility};
