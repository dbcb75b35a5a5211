//! The rows of a training run's own files, and its course in short.

use crate::lm::{EvalRecord, Split, StepRecord};
use crate::record::{Column, columns_of, record, to_microseconds, value};

value!(
    Text,
    "a split",
    |split| split.name().to_owned(),
    |text| Split::ALL.into_iter().find(|split| split.name() == text),
    Split
);

record! {
    /// A row of `steps.csv`.
    pub struct StepRow {
        /// the step, from 1
        step: usize,
        /// learned from so far, this step's included
        tokens: u64,
        /// the batch's mean cross-entropy before the update
        #[unit = "nats a token"]
        #[range = Diverging]
        loss_nats: f64,
        /// of the update
        learning_rate: f64,
        /// the gradient's global norm before clipping
        #[range = Any]
        grad_norm: f64,
        /// since the start
        #[unit = "s"]
        wall_time_s: f64,
    }
}

impl From<&StepRecord> for StepRow {
    fn from(record: &StepRecord) -> Self {
        let StepRecord { step, tokens, loss_nats, learning_rate, grad_norm, wall_time_s } = *record;
        let wall_time_s = to_microseconds(wall_time_s);
        Self { step, tokens, loss_nats, learning_rate, grad_norm, wall_time_s }
    }
}

record! {
    /// A row of `eval.csv`.
    pub struct EvaluationRow {
        /// the steps taken before it
        step: usize,
        /// the part of the corpus
        split: Split,
        /// read for it
        tokens: u64,
        /// mean cross-entropy
        #[unit = "nats a token"]
        #[range = Diverging]
        loss_nats: f64,
        /// exp of it
        #[range = Any]
        perplexity: f64,
        /// of text that the tokens are
        bytes: Option<u64>,
        /// the same a byte
        #[unit = "nats a byte"]
        #[range = Diverging]
        loss_nats_per_byte: Option<f64>,
        /// exp of it
        #[range = Any]
        perplexity_per_byte: Option<f64>,
    }
}

impl From<&EvalRecord> for EvaluationRow {
    fn from(record: &EvalRecord) -> Self {
        let found = &record.evaluation;
        Self {
            step: record.step,
            split: record.split,
            tokens: found.tokens,
            loss_nats: found.loss_nats,
            perplexity: found.perplexity(),
            bytes: (found.bytes > 0).then_some(found.bytes),
            loss_nats_per_byte: found.loss_nats_per_byte(),
            perplexity_per_byte: found.perplexity_per_byte(),
        }
    }
}

record! {
    /// A row of `curve.csv`: a stretch of steps, of which a run has some two hundred.
    pub struct CurveRow {
        /// its last step
        step: usize,
        /// learned from by its end
        tokens: u64,
        /// at its end
        #[unit = "s"]
        wall_time_s: f64,
        /// mean over it
        #[unit = "nats a token"]
        #[range = Diverging]
        loss_nats: f64,
        /// mean over it
        #[range = Any]
        grad_norm: f64,
        /// the largest |logit| in it
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit: Option<f64>,
        /// the same over the heads that see everything
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit_global: Option<f64>,
        /// the same over the heads with a window
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit_local: Option<f64>,
    }
}

record! {
    /// How smoothly a training run went, by its steps.
    pub struct Course {
        /// the tokens read in total
        tokens: Option<u64>,
        /// peak max |logit|, over heads and steps
        #[unit = "nats"]
        #[range = Diverging]
        peak_max_abs_logit: Option<f64>,
        /// share of steps whose loss is 7 standard deviations or more from the mean of the 1,000 before (OLMo 2)
        loss_spike_score: f64,
        /// the same for the gradient norm
        grad_spike_score: f64,
        /// number of runs of losses that far above the median of the 201 around, by median absolute deviation
        loss_spikes: usize,
        /// mean |change| of max |logit| per step
        #[unit = "nats"]
        #[range = Diverging]
        logit_change_per_step: Option<f64>,
    }
}

record! {
    /// A row of `heads.parquet`: the logits of one head in one step. The file is written column by column.
    pub struct HeadLogRow {
        /// the step, from 1
        step: usize,
        /// the layer, from 0
        layer: usize,
        /// the head within its layer, from 0
        head: usize,
        /// `global` or `local`
        kind: String,
        /// local head: the tokens that it attends to at most
        window: Option<usize>,
        /// the largest logit of the batch, after 1/√d
        max_logit: f64,
        /// the smallest logit
        min_logit: f64,
        /// max |logit|
        max_abs_logit: f64,
        /// mean entropy of the queries' attention
        #[unit = "nats"]
        entropy_nats: f64,
    }
}

/// The files of a training run's folder that hold rows, each with its columns.
pub fn log_columns() -> [(&'static str, Vec<Column>); 4] {
    [
        ("steps", columns_of::<StepRow>()),
        ("curve", columns_of::<CurveRow>()),
        ("eval", columns_of::<EvaluationRow>()),
        ("heads", columns_of::<HeadLogRow>()),
    ]
}
