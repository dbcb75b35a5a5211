//! Rows of a training run's own files, and the summary of its course.

use crate::lm::{EvaluationRow, HeadLogRow, StepRow};
use crate::record::{Column, columns_of, record};

record! {
    /// A row of `curve.csv`: an interval of steps; a run has about two hundred.
    pub struct CurveRow {
        /// last step of the interval
        step: usize,
        /// tokens learned from by its end
        tokens: u64,
        /// time since the start at its end
        #[unit = "s"]
        wall_time_s: f64,
        /// mean loss over the interval
        #[unit = "nats a token"]
        #[range = Diverging]
        loss_nats: f64,
        /// mean gradient norm over the interval
        #[range = Any]
        grad_norm: f64,
        /// largest |logit| in the interval
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit: Option<f64>,
        /// largest |logit| over global heads
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit_global: Option<f64>,
        /// largest |logit| over heads with a window
        #[unit = "nats"]
        #[range = Diverging]
        max_abs_logit_local: Option<f64>,
    }
}

record! {
    /// Summary of the stability of a training run, computed from its steps.
    #[derive(Default)]
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

/// The row files in a training run's folder, by short name, with their columns.
pub fn log_columns() -> [(&'static str, Vec<Column>); 4] {
    [
        ("steps", columns_of::<StepRow>()),
        ("curve", columns_of::<CurveRow>()),
        ("eval", columns_of::<EvaluationRow>()),
        ("heads", columns_of::<HeadLogRow>()),
    ]
}
