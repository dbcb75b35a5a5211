//! rank-study: how large must attention logits grow when the queries and keys are low-rank, and
//! does that explain what happens in real language-model training?

mod blas;
mod files;
mod fit;
mod lm;
mod study;
mod target;

pub use files::write_whole;
pub use fit::{
    Candidate, Effort, Factors, FactorsError, FitError, Floor, FrontierPoint, LARGEST_CAP, Needed,
    Outcome, Problem, SearchOptions, Solution, frontier, needed_logit, norm_product,
};
pub use lm::{
    Arm, Corpus, Dtype, EvalRecord, Forward, HeadRecord, HeadStatistics, LmError, Model,
    ModelShape, Outcome as TrainOutcome, Positions, Recorder, Schedule, Split, StepRecord,
    SyntheticCorpus, TextVocabulary, TrainDefinition, TrainSummary, Trainer, Vocabulary,
};
pub use study::{
    ColumnKind, FRONTIER_COLUMNS, FrontierLabel, Manifest, Observer, Plan, Row, StudyDefinition,
    StudyError, StudyWork, Sweep, SweepSummary, TrainError, TrainResult, fit_columns,
    frontier_rows, needed_row, to_csv, train, train_columns, write_factors,
};
pub use target::{
    Family, HeadKind, Layout, Parameters, Spectrum, Statistics, Target, TargetError, Visibility,
};
