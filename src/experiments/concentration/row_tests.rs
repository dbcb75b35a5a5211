//! Tests that altered rows of random models break an invariant, column by column.

use super::*;
use crate::lm::{Arm, Model, ModelShape, TrainDefinition};
use crate::record::{Line, check_rows, columns, columns_of, line};

/// The lines of a cell with one local and one global head of random weights.
fn cell() -> Vec<Line> {
    let definition = TrainDefinition {
        layers: 1,
        d_model: 8,
        heads: 2,
        window: 3,
        context: 20,
        arm: Arm::Ls,
        ..TrainDefinition::default()
    };
    let model = Model::new(ModelShape::new(&definition, 9), 0.9, 4).unwrap();
    let passage = |at: u32| (0..20).map(|i| (i * i + at * i + i / 3) % 9).collect::<Vec<u32>>();
    let probes = [0, 1].map(|at| model.probe(&passage(at)).unwrap());
    let of = ModelKey {
        of: Some("runs".to_owned()),
        run: "ls".to_owned(),
        arm: "ls".to_owned(),
        seed: Some(1),
        corpus: Some("book".to_owned()),
        layers: 1,
        d_model: Some(8),
        heads: 2,
        d_head: None,
        global_heads: Some(1),
        window: Some(3),
        context: 20,
        batch: Some(1),
        steps: Some(1),
        learning_rate: Some(0.1),
        recall: None,
        step: Some(1),
    };
    let lines = (0..2).map(|head| {
        let of_head = probes.each_ref().map(|probes| &probes[head]);
        let found = ConcentrationMeasurement::measure(&of_head, 0, 3, head as u64).unwrap();
        line("heads", "ls/s1/step-1", &of, Ok(&found), "made up")
    });
    lines.collect()
}

/// The invariants that a cell's lines break; a line that is not a valid row breaks one, too.
fn breaches(lines: &[Line]) -> Vec<String> {
    let mut check = InvariantChecker::default();
    check_rows::<ConcentrationMeasurement>(lines.iter(), &mut check);
    check.breaches
}

#[test]
fn every_altered_column_breaks_a_law() {
    let lines = cell();
    assert_eq!(breaches(&lines), Vec::<String>::new());
    let first = columns::<ConcentrationMeasurement>()
        .iter()
        .position(|column| column.name == "layer")
        .expect("what was found begins with the layer");
    let mut free = Vec::new();
    for (at, column) in columns_of::<ConcentrationMeasurement>().iter().enumerate() {
        let is_told = (0..lines.len()).any(|row| {
            let value = lines[row].at(first + at).to_owned();
            let altered = match value.parse::<f64>() {
                // Ranks may be written as whole numbers.
                Ok(number) if column.name.contains("rank_") => {
                    [number + 100.0, number - 100.0].map(|number| number.to_string())
                }
                Ok(number) if number.fract() != 0.0 || value.contains('.') => {
                    let by = 10.0 * number.abs().max(1.0);
                    [number + by, number - by].map(|number| number.to_string())
                }
                Ok(number) => [number + 1.0, number - 1.0].map(|number| number.to_string()),
                Err(_) => [format!("{value}x"), String::new()],
            };
            altered.into_iter().all(|altered| {
                let mut lines = lines.clone();
                lines[row] = lines[row].with(first + at, &altered);
                !breaches(&lines).is_empty()
            })
        });
        if !is_told && column.name != "wall_time_s" {
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
