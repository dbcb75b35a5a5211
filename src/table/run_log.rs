//! What one training logged: its losses, its evaluations, its heads' logits.

use std::fs::File;
use std::path::Path;

use polars::prelude::{
    DataFrame, DataType, IntoLazy, ParquetReader, PolarsResult, SerReader, col, lit,
};

use super::TableError;
use super::columns::{numbers, words};
use super::rows::{Rows, advice_for_log};

/// The columns of `heads.parquet` that the tables and figures need.
const HEADS: [&str; 3] = ["step", "kind", "max_abs_logit"];

/// (step, value), in the order of the steps.
pub type Curve = Vec<(f64, f64)>;

/// The logs of one training as series over its steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLog {
    /// (step, training loss in nats), every step logged.
    pub train_loss: Curve,
    /// (step, loss in nats) on the validation split.
    pub valid_loss: Curve,
    /// Perplexity on the validation split at its last evaluation.
    pub perplexity: Option<f64>,
    /// (step, max |logit| over all layers and heads).
    pub max_logit: Curve,
    /// The same over the heads that see everything.
    pub max_logit_global: Curve,
    /// The same over the heads with a window.
    pub max_logit_local: Curve,
}

impl RunLog {
    /// Reads `steps.csv`, `eval.csv` and `heads.parquet` in the folder `run`.
    ///
    /// # Errors
    /// A missing or torn file, or a missing column, with file and line.
    pub fn of(run: &Path) -> Result<Self, TableError> {
        let steps = Rows::of_steps(run)?;
        let train_loss =
            series(steps.frame(), "loss_nats").map_err(TableError::frame(steps.path()))?;
        let evaluations = Rows::of_evaluations(run)?;
        let (valid_loss, perplexity) =
            validation(evaluations.frame()).map_err(TableError::frame(evaluations.path()))?;
        let path = run.join("heads.parquet");
        let heads = read_heads(&path)?;
        let over = |kind| max_logit(&heads, kind).map_err(TableError::frame(&path));
        Ok(Self {
            train_loss,
            valid_loss,
            perplexity,
            max_logit: over(None)?,
            max_logit_global: over(Some("global"))?,
            max_logit_local: over(Some("local"))?,
        })
    }

    /// The mean training loss over the last `count` steps logged.
    pub fn final_train_loss(&self, count: usize) -> Option<f64> {
        let last = &self.train_loss[self.train_loss.len().saturating_sub(count)..];
        (!last.is_empty())
            .then(|| last.iter().map(|&(_, loss)| loss).sum::<f64>() / last.len() as f64)
    }

    /// The validation loss at the last evaluation.
    pub fn final_valid_loss(&self) -> Option<f64> {
        self.valid_loss.last().map(|&(_, loss)| loss)
    }

    /// max |logit| at the last step logged.
    pub fn final_max_logit(&self) -> Option<f64> {
        self.max_logit.last().map(|&(_, logit)| logit)
    }

    /// The greatest max |logit| of the whole run.
    pub fn peak_max_logit(&self) -> Option<f64> {
        self.max_logit.iter().map(|&(_, logit)| logit).reduce(f64::max)
    }
}

fn read_heads(path: &Path) -> Result<DataFrame, TableError> {
    let unreadable = |why: String| TableError::Unreadable {
        path: path.to_owned(),
        why,
        advice: advice_for_log(),
    };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let frame = ParquetReader::new(file).finish().map_err(|error| unreadable(error.to_string()))?;
    let found: Vec<&str> = frame.get_column_names().iter().map(|name| name.as_str()).collect();
    match HEADS.iter().find(|name| !found.contains(name)) {
        Some(column) => Err(TableError::MissingColumn {
            path: path.to_owned(),
            column: (*column).to_owned(),
            found: found.join(", "),
            advice: advice_for_log(),
        }),
        None => Ok(frame),
    }
}

/// (step, value) wherever both are there and finite, in the order of the file.
fn series(frame: &DataFrame, column: &str) -> PolarsResult<Curve> {
    let points = numbers(frame, "step")?.into_iter().zip(numbers(frame, column)?);
    Ok(points
        .filter_map(|(step, value)| Some((step?, value?)))
        .filter(|(_, value)| value.is_finite())
        .collect())
}

/// The losses of the validation split, and its last perplexity.
fn validation(frame: &DataFrame) -> PolarsResult<(Curve, Option<f64>)> {
    let splits = words(frame, "split")?;
    let (steps, losses) = (numbers(frame, "step")?, numbers(frame, "loss_nats")?);
    let perplexities = numbers(frame, "perplexity")?;
    let (mut points, mut perplexity) = (Vec::new(), None);
    for (at, split) in splits.iter().enumerate() {
        if split.as_deref().is_some_and(|split| split.starts_with("valid"))
            && let (Some(step), Some(loss)) = (steps[at], losses[at])
        {
            points.push((step, loss));
            perplexity = perplexities[at].or(Some(loss.exp()));
        }
    }
    Ok((points, perplexity))
}

/// (step, max |logit|) over the heads of one kind, or over all.
fn max_logit(heads: &DataFrame, kind: Option<&str>) -> PolarsResult<Curve> {
    let kept = kind.map_or(lit(true), |kind| col("kind").cast(DataType::String).eq(lit(kind)));
    let steps = heads
        .clone()
        .lazy()
        .filter(kept)
        .group_by([col("step")])
        .agg([col("max_abs_logit").max()])
        .sort(["step"], Default::default())
        .collect()?;
    series(&steps, "max_abs_logit")
}
