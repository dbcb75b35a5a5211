//! rank-study: how large must attention logits grow when the queries and keys are low-rank, and
//! does that explain what happens in real language-model training?

mod blas;
mod digest;
mod figure;
mod files;
mod fit;
mod lm;
mod machine;
mod pool;
mod predict;
mod process;
mod report;
mod simd;
mod study;
mod table;
mod target;

pub use figure::{
    Axis, Figure, FigureError, Ink, Key, Marker, Panel, Rgb, Scale, Series, Shape, Stroke, Tick,
    Tile, ablation, arms, by_context, decomposition, dial, frontiers, head_kinds, inflation,
    interventions, latency, layouts, logits_needed, phase, prediction, spectra, training,
    window_rule,
};
pub use files::write_whole;
pub use fit::{
    BoundKind, Candidate, Effort, Evaluator, Factors, FactorsError, FitError, FitName, FitProgress,
    FitState, Floor, FrontierPoint, InitialHessian, Kept, LARGEST_CAP, LowerBound, LowerBounds,
    Measured, Multiplier, Multipliers, Needed, Normalisation, Outcome, Precision, Problem,
    SearchOptions, Solution, Tied, Watch, check_cap, check_tolerance, constructions,
    fourier_features, frontier, lower_bound, moment_curve, needed_logit, needed_logit_from,
    needed_logit_tied, norm_product, random_codes,
};
pub use lm::{
    Arm, AttentionEvaluator, AttentionPass, Bpe, Corpus, Device, Dtype, EvalRecord, Evaluation,
    ForeignModel, Forward, HeadInputs, HeadProbe, HeadRecord, HeadStatistics, LmError, Model,
    ModelShape, NormalisedInputs, Outcome as TrainOutcome, Positions, Recorder, Schedule, Session,
    Split, Stabiliser, StepRecord, Symbols, SyntheticCorpus, Teacher, TextVocabulary, Texts,
    Tokens, TrainDefinition, TrainSummary, Trainer, Vocabulary, evaluate, evaluate_whole,
};
pub use machine::Machine;
pub use predict::{Actual, Found, LAGS, Parts, PredictError, TrainedHead};
pub use process::{peak_rss_bytes, prepare_process};
pub use report::{
    Analysis, AnalysisKind, Claim, Header, Picture, ReportError, SEEDS_TO_CONFIRM, Section,
    Verdict, Word, analyse, page,
};
#[doc(hidden)]
pub use simd::multiply;
pub use simd::{InstructionsError, check_instructions, instructions_there};
pub use study::{
    Begin, Bound, CURVE_COLUMNS, ColumnKind, EVALUATION_COLUMNS, Expected, FRONTIER_COLUMNS,
    FitLedger, FrontierLabel, Latency, Manifest, Observer, Plan, Preset, Row, STEP_COLUMNS,
    Selection, Statistic, StudyDefinition, StudyError, StudyWork, Sweep, SweepSummary, TrainError,
    TrainResult, TrainedRun, Training, Verification, fit_columns, frontier_rows, latency_columns,
    needed_row, predict_columns, read_factors, revision, search_settings, spectrum_columns,
    stored_rows, to_csv, train, train_columns, verify, write_factors,
};
pub use table::{
    Align, Cell, Column, Curve, ERRORS, Growth, GrowthCell, GrowthModel, GrowthSeed, GrowthSlope,
    HeadOrdering, HeadParts, Latencies, LatencyCell, LayoutCell, LayoutSeed, Layouts, LeastWindow,
    ModelFit, PARTS, PartsOfGrowth, RankCorrelation, Rows, RunLog, Slope, Spectra, SpectrumCell,
    Spread, Table, TableError, TrainedHeads, TrainingRun, Trainings, plural, significant,
};
pub use target::{
    Bounds, Family, HeadKind, Layout, LeadingSpectrum, Parameters, Spectrum, Statistics, Target,
    TargetError, Visibility, write_matrix,
};
