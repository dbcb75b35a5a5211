//! The columns that a table needs of a file of rows, and what is in each of a file's columns.

use polars::prelude::{Column, DataFrame, DataType, IntoColumn, NamedFrom, PolarsResult, Series};

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

    /// All the declared columns of a frame in their order; those that it lacks are null.
    pub(super) fn completed(&self, frame: &DataFrame) -> PolarsResult<DataFrame> {
        let height = frame.height();
        let column = |name: &str| match frame.column(name) {
            Ok(column) => column.clone(),
            Err(_) => Column::full_null(name.into(), height, &self.dtype(name)),
        };
        DataFrame::new(height, self.columns.iter().map(|(name, _)| column(name)).collect())
    }

    /// The column `name` of fields as written; an empty one is null, and so is what [`Schema::accepts`] refuses.
    pub(super) fn column<'f>(&self, name: &str, fields: impl Iterator<Item = &'f str>) -> Column {
        let as_name = name.into();
        match self.dtype(name) {
            DataType::Int64 => {
                Series::new(as_name, fields.map(|f| f.parse::<i64>().ok()).collect::<Vec<_>>())
            }
            DataType::Float64 => {
                Series::new(as_name, fields.map(|f| f.parse::<f64>().ok()).collect::<Vec<_>>())
            }
            _ => {
                let texts = fields.map(|f| (!f.is_empty()).then_some(f));
                Series::new(as_name, texts.collect::<Vec<_>>())
            }
        }
        .into_column()
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
