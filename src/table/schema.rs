//! The columns that a file of rows may hold, and what is in them.

use polars::prelude::DataType;

/// A file's columns that a table needs, and every known column's type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema {
    /// The columns without which there is no table.
    pub needed: &'static [&'static str],
    /// The columns that hold whole numbers.
    pub integers: &'static [&'static str],
    /// The columns that hold numbers.
    pub numbers: &'static [&'static str],
}

/// `rows.csv` of a study of fits.
pub(super) const FITS: Schema = Schema {
    needed: &[
        "cell",
        "family",
        "n",
        "rank",
        "layout",
        "seed",
        "cap",
        "kl_nats",
        "max_abs_logit",
        "floor_kl_nats",
        "floor_max_abs_logit",
        "inflation",
        "outcome",
        "tolerance",
        "err",
    ],
    integers: &["window", "k", "m", "n", "rank", "seed", "iterations", "evaluations"],
    numbers: &[
        "tau",
        "alpha",
        "sigma",
        "lambda",
        "cap",
        "kl_nats",
        "max_abs_logit",
        "logit_spread",
        "norm_product",
        "floor_kl_nats",
        "floor_max_abs_logit",
        "inflation",
        "wall_time_s",
        "tolerance",
        "gradient_norm",
    ],
};

/// `rows.csv` of a study of trainings.
pub(super) const TRAININGS: Schema = Schema {
    needed: &["cell", "run", "arm", "seed", "context", "steps", "parameters", "outcome", "err"],
    integers: &[
        "seed",
        "layers",
        "d_model",
        "heads",
        "global_heads",
        "window",
        "context",
        "batch",
        "steps",
        "parameters",
    ],
    numbers: &[
        "learning_rate",
        "train_loss_nats",
        "valid_loss_nats",
        "max_abs_logit",
        "wall_time_s",
    ],
};

/// `steps.csv` of a training.
pub(super) const STEPS: Schema = Schema {
    needed: &["step", "loss_nats"],
    integers: &["step", "tokens"],
    numbers: &["loss_nats", "learning_rate", "grad_norm", "wall_time_s"],
};

/// `eval.csv` of a training.
pub(super) const EVALUATIONS: Schema = Schema {
    needed: &["step", "split", "loss_nats", "perplexity"],
    integers: &["step", "tokens"],
    numbers: &["loss_nats", "perplexity"],
};

impl Schema {
    /// The type of the column `name`; a column that nobody declared is text.
    pub(super) fn dtype(&self, name: &str) -> DataType {
        if self.integers.contains(&name) {
            DataType::Int64
        } else if self.numbers.contains(&name) {
            DataType::Float64
        } else {
            DataType::String
        }
    }

    /// Whether `field`, as written, can stand in the column `name`; empty always can.
    pub(super) fn accepts(&self, name: &str, field: &str) -> bool {
        match self.dtype(name) {
            _ if field.is_empty() => true,
            DataType::Int64 => field.parse::<i64>().is_ok(),
            DataType::Float64 => field.parse::<f64>().is_ok(),
            _ => true,
        }
    }
}
