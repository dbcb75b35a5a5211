//! The columns that a table needs of a file of rows, and what is in each of a file's columns.

use polars::prelude::{DataFrame, DataType, Expr, IntoLazy, LazyFrame, NULL, col, lit};

use crate::study::{
    CURVE_COLUMNS, ColumnKind, EVALUATION_COLUMNS, fit_columns, latency_columns, predict_columns,
    spectrum_columns, train_columns,
};

/// A file's columns, and those without which there is no table.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    /// The columns without which there is no table.
    pub needed: &'static [&'static str],
    columns: Vec<(&'static str, ColumnKind)>,
}

impl Schema {
    /// `rows.csv` of a study of fits.
    pub(super) fn fits() -> Self {
        let needed = &[
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
        ];
        Self { needed, columns: fit_columns() }
    }

    /// `rows.csv` of a study of training runs.
    pub(super) fn trainings() -> Self {
        let needed = &[
            "cell",
            "run",
            "arm",
            "seed",
            "context",
            "steps",
            "valid_loss_nats",
            "outcome",
            "err",
        ];
        Self { needed, columns: train_columns() }
    }

    /// `curve.csv` of a training run.
    pub(super) fn curve() -> Self {
        let needed = &["step", "tokens", "wall_time_s", "loss_nats", "max_abs_logit"];
        Self { needed, columns: CURVE_COLUMNS.to_vec() }
    }

    /// `rows.csv` of a study of singular values.
    pub(super) fn spectra() -> Self {
        let needed =
            &["family", "n", "seed", "matrix", "effective_rank", "index", "singular_value", "err"];
        Self { needed, columns: spectrum_columns() }
    }

    /// `rows.csv` of a study of inference.
    pub(super) fn latency() -> Self {
        let needed = &["run", "arm", "n", "round", "prefill_s", "decode_s", "cache_bytes", "err"];
        Self { needed, columns: latency_columns() }
    }

    /// `rows.csv` of a study of trained heads.
    pub(super) fn heads() -> Self {
        let needed = &[
            "run",
            "seed",
            "step",
            "layer",
            "head",
            "n",
            "rank",
            "epsilon",
            "actual",
            "spread",
            "needed",
            "needed_tied",
            "needed_any_rank",
            "lower_bound_tied",
            "floor",
            "entropy_nats",
            "err",
        ];
        Self { needed, columns: predict_columns() }
    }

    /// `eval.csv` of a training run.
    pub(super) fn evaluations() -> Self {
        let needed = &["step", "split", "loss_nats", "perplexity"];
        Self { needed, columns: EVALUATION_COLUMNS.to_vec() }
    }

    /// The frame as lazy columns, all the declared ones in their order; those that the file lacks are null.
    pub(super) fn completed(&self, frame: DataFrame) -> LazyFrame {
        let there = |name: &str| frame.get_column_names().iter().any(|column| *column == name);
        let columns: Vec<Expr> = self
            .columns
            .iter()
            .map(|(name, _)| match there(name) {
                true => col(*name),
                false => lit(NULL).cast(self.dtype(name)).alias(*name),
            })
            .collect();
        frame.lazy().select(columns)
    }

    /// The type of the column `name`; a column that nobody declared is text.
    pub(super) fn dtype(&self, name: &str) -> DataType {
        match self.columns.iter().find(|(column, _)| *column == name) {
            Some((_, ColumnKind::Integer)) => DataType::Int64,
            Some((_, ColumnKind::Number)) => DataType::Float64,
            Some((_, ColumnKind::Text)) | None => DataType::String,
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
