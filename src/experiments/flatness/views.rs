//! The table and the figure of a study of flatness.

use crate::experiment::Analysed;
use crate::experiments::training::figures::variant::Variant;
use crate::figure::{Axis, Figure, Key, Panel, Series, Shape};
use crate::lm::FlatnessMeasurement;
use crate::record::{Row, Rows};
use crate::table::error::READ_ERR;
use crate::table::groups::sorted;
use crate::table::{RankCorrelation, Table, TableError, groups};

type FlatModel = Row<FlatnessMeasurement>;

fn variant(model: &FlatModel) -> Variant<'_> {
    let of = &model.of;
    Variant::new(&of.model.arm, of.positions.as_deref(), of.slopes.as_deref())
}

/// The table and the figure of a study.
pub(super) fn analyse(rows: &Rows<FlatnessMeasurement>) -> Result<Analysed, TableError> {
    let why = "no finished row has a model";
    let models = TableError::unless_empty(rows.rows.clone(), &rows.path, why, READ_ERR)?;
    let (tables, figures) = (vec![table(&models, rows.failed)], vec![figure(&models)]);
    Ok(Analysed { tables, figures, verdicts: Vec::new() })
}

fn table(models: &[FlatModel], failed: usize) -> Table {
    let key = |model: &FlatModel| {
        let of = &model.of.model;
        (of.of.clone(), of.run.clone(), of.step)
    };
    Table::from_groups("flatness", "Curvature of the loss at trained weights", groups(models, key))
        .words("run", "run", |model| &*model.of.model.run)
        .numbers("step", "step", |model| model.of.model.step)
        .sizes("models", "models")
        .medians("loss", "loss (nats)", |model| model.found.loss_nats)
        .medians("max_abs_logit", "max |logit|", |model| model.found.max_abs_logit)
        .medians("trace", "trace of H", |model| model.found.trace)
        .medians("trace_error", "its standard error", |model| model.found.trace_error)
        .medians("eigenvalue", "largest eigenvalue", |model| model.found.largest_eigenvalue)
        .medians("residual", "its residual", |model| model.found.eigenvalue_residual)
        .medians("accuracy", "classifier accuracy", |model| model.found.classifier_accuracy)
        .medians("loss_c", "classifier loss (nats)", |model| model.found.classifier_loss_nats)
        .note(
            "H: Hessian of the mean cross-entropy. A linear classifier of the mean hidden state names the part of the text \
             that a window is from, of six parts. Medians over models with (least–greatest).",
        )
        .note(format!(
            "Partial rank correlations over models, given the loss, with 95 % intervals. {}; {}.",
            given_loss(models, "Max |logit| and trace", |f| [f.max_abs_logit, f.trace]),
            given_loss(models, "trace and accuracy", |f| [f.trace, f.classifier_accuracy]),
        ))
        .note_failed(failed)
        .build()
}

fn figure(models: &[FlatModel]) -> Figure {
    let ordered = sorted(models, |model| variant(model).name());
    let variants = groups(ordered, |model| variant(model).name());
    let panel = |name: &str, of: fn(&FlatnessMeasurement) -> f64| {
        let point = |model: &&FlatModel| (model.found.max_abs_logit, of(&model.found));
        let series = variants.iter().map(|models| {
            let first = variant(models[0]);
            let points = models.iter().map(point).collect();
            Series::new(&first.name(), first.ink(), Shape::Points, points)
        });
        let x = Axis::log("max |logit|", models.iter().map(|model| point(&model).0));
        let y = Axis::log(name, models.iter().map(|model| point(&model).1));
        Panel::new("", x, y, series.collect())
    };
    let panels = vec![
        panel("trace of the Hessian", |found| found.trace),
        panel("largest eigenvalue", |found| found.largest_eigenvalue),
    ];
    Figure {
        name: "flatness".to_owned(),
        caption: "Trace and largest eigenvalue of the loss's Hessian against max |logit|, on the same passages. Each point is one \
                  trained model. Higher is sharper."
            .to_owned(),
        keys: Key::of_series(&panels[0].series, Shape::Points),
        panels,
    }
}

/// Spearman's ρ of two quantities at equal loss, in words.
fn given_loss(
    models: &[FlatModel],
    what: &str,
    of: fn(&FlatnessMeasurement) -> [f64; 2],
) -> String {
    let points = models.iter().map(|model| {
        let [x, y] = of(&model.found);
        [x, y, model.found.loss_nats]
    });
    let found = RankCorrelation::given(&[points.collect()]);
    format!("{what}: {}", found.map_or_else(|| "–".to_owned(), |found| found.shown()))
}

#[cfg(test)]
mod tests;
