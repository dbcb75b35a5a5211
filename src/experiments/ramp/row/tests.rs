//! Tests that altered rows of random models break an invariant, column by column.

use super::*;
use crate::experiments::ModelKey;
use crate::lm::{Model, ModelShape, TrainDefinition};
use crate::record::{Line, check_rows, columns, columns_of, line};

/// The heads of a model of random weights, as the lines of a cell.
fn cell() -> Vec<Line> {
    let definition = TrainDefinition {
        layers: 1,
        d_model: 8,
        heads: 2,
        context: 12,
        ..TrainDefinition::default()
    };
    let model = Model::new(ModelShape::new(&definition, 9), 0.9, 4).unwrap();
    let probes = model.probe(&[0, 3, 1, 4, 2, 2, 0, 1, 8, 7]).unwrap();
    let of = CheckpointKey {
        model: ModelKey {
            of: Some("runs".to_owned()),
            run: "mhsa".to_owned(),
            arm: "mhsa".to_owned(),
            seed: Some(1),
            corpus: Some("book".to_owned()),
            layers: 1,
            d_model: Some(8),
            heads: 2,
            global_heads: Some(2),
            window: Some(16),
            context: 12,
            batch: Some(1),
            steps: Some(1),
            learning_rate: Some(0.1),
            step: Some(1),
            ..ModelKey::default()
        },
        positions: Some("learned".to_owned()),
        slopes: Some("none".to_owned()),
    };
    let lines = probes.iter().map(|probe| {
        let found = RampMeasurement::measure(&[probe], 0, None).unwrap();
        line("ramps", "mhsa/s1/step-1", &of, Ok(&found), "made up")
    });
    lines.collect()
}

/// The invariants that a cell's lines break; a line that is not a valid row breaks one, too.
fn breaches(lines: &[Line]) -> Vec<String> {
    let mut check = InvariantChecker::default();
    check_rows::<RampMeasurement>(lines.iter(), &mut check);
    check.breaches
}

#[test]
fn every_altered_column_breaks_a_law() {
    let lines = cell();
    assert_eq!(breaches(&lines), Vec::<String>::new());
    let first = columns::<RampMeasurement>()
        .iter()
        .position(|column| column.name == "layer")
        .expect("what was found begins with the layer");
    let mut free = Vec::new();
    for (at, column) in columns_of::<RampMeasurement>().iter().enumerate() {
        let value = lines[0].at(first + at).to_owned();
        let altered = match value.parse::<f64>() {
            Ok(number) if number.fract() != 0.0 || value.contains('.') => {
                let by = 10.0 * number.abs().max(1.0);
                [number + by, number - by].map(|number| number.to_string())
            }
            Ok(number) => [number + 1.0, number - 1.0].map(|number| number.to_string()),
            Err(_) if value.is_empty() => ["1".to_owned(), "0.5".to_owned()],
            Err(_) => [format!("{value}x"), String::new()],
        };
        let is_told = altered.into_iter().any(|altered| {
            let mut lines = lines.clone();
            lines[0] = lines[0].with(first + at, &altered);
            !breaches(&lines).is_empty()
        });
        // The median may be any distance between two distances whose masses are columns.
        if !is_told && column.name != "median_lag" {
            free.push(column.name);
        }
    }
    assert!(free.is_empty(), "no law holds {free:?}");
}

#[test]
fn a_cell_has_every_head_of_its_layers_once() {
    let lines = cell();
    assert!(breaches(&lines[..1]).iter().any(|b| b.contains("1 rows where")));
    let turned = [lines[1].clone(), lines[0].clone()];
    assert!(breaches(&turned).iter().any(|b| b.contains("in order")));
}
