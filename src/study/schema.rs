//! The columns of a study's rows: their names, their order and what is in them.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Words.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers, in the shortest digits that read back as the same float64.
    Number,
}

use ColumnKind::{Integer, Number, Text};

/// The columns of one kind of rows, in order.
pub type Columns = [(&'static str, ColumnKind)];

/// `frontier.csv` of `fit`: one row for each cap, or the one row of a tolerance.
pub const FRONTIER_COLUMNS: &Columns = &[
    ("target", Text),
    ("n", Integer),
    ("rank", Integer),
    ("layout", Text),
    ("seed", Integer),
    ("cap", Number),
    ("kl_nats", Number),
    ("max_abs_logit", Number),
    ("logit_spread", Number),
    ("norm_product", Number),
    ("floor_kl_nats", Number),
    ("floor_max_abs_logit", Number),
    ("inflation", Number),
    ("outcome", Text),
    ("iterations", Integer),
    ("evaluations", Integer),
    ("wall_time_s", Number),
    ("factors", Text),
    ("tolerance", Number),
    ("visibility", Text),
    ("gradient_norm", Number),
    ("lower_bound_max_abs_logit", Number),
    ("lower_bound_by", Text),
];

/// `rows.csv` of a study of targets, before what is measured of them.
const TARGET_PREFIX: &Columns = &[
    ("study", Text),
    ("cell", Text),
    ("family", Text),
    ("window", Integer),
    ("tau", Number),
    ("alpha", Number),
    ("sigma", Number),
    ("k", Integer),
    ("m", Integer),
    ("c", Integer),
    ("vocabulary", Integer),
    ("lambda", Number),
    ("local", Text),
    ("global", Text),
    ("of", Text),
    ("path", Text),
];

/// What ends every study's row: a hash of all that the cell was measured with, and the error of a
/// cell that failed.
const SUFFIX: &Columns = &[("settings", Text), ("err", Text)];

/// What begins the rows of cells.
const CELL: &Columns = &[("study", Text), ("cell", Text)];

/// What a training run is.
const RUN: &Columns = &[
    ("run", Text),
    ("arm", Text),
    ("seed", Integer),
    ("corpus", Text),
    ("layers", Integer),
    ("d_model", Integer),
    ("heads", Integer),
    ("global_heads", Integer),
    ("window", Integer),
    ("context", Integer),
    ("batch", Integer),
    ("steps", Integer),
    ("learning_rate", Number),
];

/// `rows.csv` of a study of training runs, between `RUN` and `SUFFIX`.
const TRAIN_COLUMNS: &Columns = &[
    ("parameters", Integer),
    ("train_loss_nats", Number),
    ("valid_loss_nats", Number),
    ("max_abs_logit", Number),
    ("outcome", Text),
    ("wall_time_s", Number),
    ("tokens", Integer),
    ("peak_max_abs_logit", Number),
    ("loss_spike_score", Number),
    ("grad_spike_score", Number),
    ("loss_spikes", Integer),
    ("logit_change_per_step", Number),
    ("recall", Number),
    ("corpus_entropy_nats", Number),
    ("pattern_kl_nats", Number),
];

/// `curve.csv` of a training run: a row for each of some two hundred stretches of steps.
pub const CURVE_COLUMNS: &Columns = &[
    ("step", Integer),
    ("tokens", Integer),
    ("wall_time_s", Number),
    ("loss_nats", Number),
    ("grad_norm", Number),
    ("max_abs_logit", Number),
    ("max_abs_logit_global", Number),
    ("max_abs_logit_local", Number),
];

/// `rows.csv` of a study of singular values, between the columns of the target and `SUFFIX`.
const SPECTRUM_COLUMNS: &Columns = &[
    ("target", Text),
    ("n", Integer),
    ("seed", Integer),
    ("visibility", Text),
    ("tolerance", Number),
    ("density", Number),
    ("mean_row_entropy_nats", Number),
    ("floor_max_abs_logit", Number),
    ("matrix", Text),
    ("effective_rank", Number),
    ("numerical_rank", Integer),
    ("index", Integer),
    ("singular_value", Number),
];

/// `rows.csv` of a study of inference, before `SUFFIX`.
const LATENCY_COLUMNS: &Columns = &[
    ("study", Text),
    ("cell", Text),
    ("run", Text),
    ("arm", Text),
    ("layers", Integer),
    ("d_model", Integer),
    ("heads", Integer),
    ("global_heads", Integer),
    ("window", Integer),
    ("n", Integer),
    ("round", Integer),
    ("threads", Integer),
    ("parameters", Integer),
    ("prefill_s", Number),
    ("decode_s", Number),
    ("cache_bytes", Integer),
];

/// `rows.csv` of a study of trained heads, between `RUN` and `SUFFIX`.
const PREDICT_COLUMNS: &Columns = &[
    ("step", Integer),
    ("layer", Integer),
    ("head", Integer),
    ("kind", Text),
    ("passage", Integer),
    ("passages", Integer),
    ("n", Integer),
    ("rows", Integer),
    ("rank", Integer),
    ("epsilon", Number),
    ("actual", Number),
    ("spread", Number),
    ("needed", Number),
    ("needed_tied", Number),
    ("needed_any_rank", Number),
    ("lower_bound_tied", Number),
    ("floor", Number),
    ("inflation", Number),
    ("tying", Number),
    ("drift", Number),
    ("gauge", Number),
    ("entropy_nats", Number),
    ("effective_rank_logits", Number),
    ("effective_rank_attention", Number),
    ("mass_within_1", Number),
    ("mass_within_4", Number),
    ("mass_within_16", Number),
    ("mass_within_64", Number),
    ("kl_nats", Number),
    ("kl_nats_tied", Number),
    ("outcome", Text),
    ("outcome_tied", Text),
    ("iterations", Integer),
    ("evaluations", Integer),
    ("wall_time_s", Number),
    ("recall", Number),
];

/// `steps.csv` of a training run.
pub const STEP_COLUMNS: &Columns = &[
    ("step", Integer),
    ("tokens", Integer),
    ("loss_nats", Number),
    ("learning_rate", Number),
    ("grad_norm", Number),
    ("wall_time_s", Number),
];

/// `eval.csv` of a training run.
pub const EVALUATION_COLUMNS: &Columns = &[
    ("step", Integer),
    ("split", Text),
    ("tokens", Integer),
    ("loss_nats", Number),
    ("perplexity", Number),
    ("bytes", Integer),
    ("loss_nats_per_byte", Number),
    ("perplexity_per_byte", Number),
];

/// The columns of `rows.csv` of a study of fits.
pub fn fit_columns() -> Vec<(&'static str, ColumnKind)> {
    [TARGET_PREFIX, FRONTIER_COLUMNS, SUFFIX].concat()
}

/// The columns of `rows.csv` of a study of training runs.
pub fn train_columns() -> Vec<(&'static str, ColumnKind)> {
    [CELL, RUN, TRAIN_COLUMNS, SUFFIX].concat()
}

/// The columns of `rows.csv` of a study of singular values.
pub fn spectrum_columns() -> Vec<(&'static str, ColumnKind)> {
    [TARGET_PREFIX, SPECTRUM_COLUMNS, SUFFIX].concat()
}

/// The columns of `rows.csv` of a study of trained heads.
pub fn predict_columns() -> Vec<(&'static str, ColumnKind)> {
    [CELL, &[("of", Text)], RUN, PREDICT_COLUMNS, SUFFIX].concat()
}

/// The columns of `rows.csv` of a study of inference.
pub fn latency_columns() -> Vec<(&'static str, ColumnKind)> {
    [LATENCY_COLUMNS, SUFFIX].concat()
}
