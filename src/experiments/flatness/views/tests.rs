//! Tests of the rows, the table and the figure of a study of flatness, on synthetic models.

use super::*;
use crate::experiments::{CheckpointKey, ModelKey};
use crate::record::{InvariantChecker, Measurement as _};

/// A model whose max |logit| and trace rise with `at`, and whose accuracy falls with them.
fn model(at: usize) -> FlatModel {
    let arm = if at.is_multiple_of(2) { "mhsa" } else { "ls" };
    let trace = 50.0 + 3.0 * at as f64;
    Row {
        study: "flat".to_owned(),
        cell: format!("{arm}-{at}/s1/step-9"),
        settings: String::new(),
        of: CheckpointKey {
            model: ModelKey {
                seed: Some(1),
                learning_rate: Some(if at < 6 { 0.003 } else { 0.01 }),
                ..ModelKey::of_published(&format!("{arm}-{at}"), arm, None, [3, 4, 512], Some(9))
            },
            positions: Some("learned".to_owned()),
            slopes: Some("none".to_owned()),
        },
        found: FlatnessMeasurement {
            passages: 8,
            n: 512,
            parameters: 200_000,
            loss_nats: 1.5 + 0.1 * (at as f64 * 2.3).sin(),
            max_abs_logit: 10.0 + at as f64,
            trace,
            trace_error: 0.02 * trace,
            largest_eigenvalue: 0.1 * trace,
            eigenvalue_residual: 5e-4,
            iterations: 20,
            classifier_accuracy: 0.5 - 0.001 * trace,
            classifier_loss_nats: 1.2,
        },
    }
}

#[test]
fn table_and_figure_have_every_model() {
    let models = (0..12).map(model).collect();
    let found =
        analyse(&Rows { rows: models, failed: 1, path: std::path::PathBuf::new() }).unwrap();
    assert_eq!(found.tables[0].rows().len(), 12);
    let figure = &found.figures[0];
    let series = |panel: usize| &figure.panels[panel].series;
    assert_eq!((figure.panels.len(), figure.keys.len(), series(0).len()), (2, 2, 2));
    assert_eq!(series(1)[0].points.len(), 3, "one of two rates");
    assert!(figure.svg().unwrap().contains("<svg"));
}

#[test]
fn correlations_at_equal_loss_decide_the_claims() {
    use crate::claims::VerdictStatus::{Confirmed, Qualified, Refuted};

    let judged = |alter: fn(usize, &mut FlatnessMeasurement)| {
        let mut models: Vec<FlatModel> = (0..12).map(model).collect();
        models.iter_mut().enumerate().for_each(|(at, model)| alter(at, &mut model.found));
        let verdicts = verdicts(&models, &relations(&models));
        verdicts.iter().map(|verdict| verdict.status).collect::<Vec<_>>()
    };
    assert_eq!(judged(|_, _| ()), [Confirmed, Confirmed]);
    let reversed = |_: usize, found: &mut FlatnessMeasurement| {
        found.max_abs_logit = 100.0 - found.max_abs_logit;
        found.classifier_accuracy = 1.0 - found.classifier_accuracy;
    };
    assert_eq!(judged(reversed), [Refuted, Refuted]);
    let unrelated = |at: usize, found: &mut FlatnessMeasurement| {
        found.max_abs_logit = (at * 5 % 12) as f64;
        found.classifier_accuracy = (at * 7 % 12) as f64 / 12.0;
    };
    assert_eq!(judged(unrelated), [Qualified, Qualified]);
}

#[test]
fn altered_rows_break_an_invariant_and_the_outcome_is_that_of_the_residual() {
    let breaches = |alter: fn(&mut FlatnessMeasurement)| {
        let mut row = model(1);
        alter(&mut row.found);
        let mut check = InvariantChecker::default();
        FlatnessMeasurement::check_row(&row, &mut check);
        check.breaches.len()
    };
    assert_eq!(breaches(|_| ()), 0);
    assert_eq!(breaches(|found| found.n = 513), 1);
    assert_eq!(breaches(|found| found.classifier_accuracy = 1.1), 1);
    assert_eq!(breaches(|found| found.trace_error = -1.0), 1);
    assert_eq!(breaches(|found| found.largest_eigenvalue = -1.0), 1);

    let mut found = model(1).found;
    assert_eq!(found.outcome(), "converged");
    found.eigenvalue_residual = 0.01;
    assert_eq!(found.outcome(), "step-limit");
}
