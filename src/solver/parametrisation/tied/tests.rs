//! Compares gradients with finite differences, and points with the factors from which they were made.

use super::*;
use crate::solver::objective::Objective;
use crate::solver::penalty::Penalty;
use crate::solver::problem::Precision;
use crate::targets::{Family, Target, Visibility};

fn packed() -> Target {
    let family = Family::DirichletBand { window: 6, alpha: 1.0 };
    let part = |seed| family.build(20, seed, Visibility::Causal).unwrap();
    Target::packed(&[part(0), part(1)]).unwrap()
}

fn wave(rows: usize, columns: usize, shift: f64) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (0.7 * (i * (j + 1)) as f64 + shift).sin())
}

fn turns(n: usize, pairs: usize) -> Array2<[f64; 2]> {
    Array2::from_shape_fn((n, pairs), |(i, pair)| {
        let (sin, cos) = (i as f64 * 0.3 / (1 + pair) as f64).sin_cos();
        [cos, sin]
    })
}

#[test]
fn the_gradient_in_the_weights_is_that_of_differences() {
    let (n, c, d) = (40, 7, 4);
    let problem = Problem::new(packed(), "global".parse().unwrap(), d).unwrap();
    let penalty = Penalty::new(&problem, 0.4, 0.3);
    let normalised = |centred| Some(Normalisation { epsilon: 1e-5, centred });
    for (normalisation, turns, is_scaled) in [
        (None, None, false),
        (None, Some(turns(n, d / 2)), false),
        (normalised(true), None, false),
        (normalised(true), Some(turns(n, d / 2)), false),
        (normalised(false), Some(turns(n, d / 2)), false),
        (None, Some(turns(n, d / 2)), true),
    ] {
        let inputs = Inputs::new(wave(n, c, 0.5).view()).unwrap();
        let mut tied = SharedProjection::new(inputs, d, normalisation, turns).unwrap();
        if is_scaled {
            let by_row = |of: f64| (0..n).map(|i| 1.0 + 0.5 * (of * i as f64).sin()).collect();
            tied = tied.with_scales([by_row(1.0), by_row(2.0)]).unwrap();
        }
        let point = tied.point(wave(n, d, 1.0).view(), wave(n, d, 2.0).view(), None);
        let mut objective = Objective::varying(&problem, Precision::F64, &tied);
        let mut gradient = vec![0.0; tied.length()];
        objective.evaluate(&point, Some(&penalty), &mut gradient);
        let mut value = |at: usize, offset: f64| {
            let mut moved = point.clone();
            moved[at] += offset;
            let mut unused = vec![0.0; moved.len()];
            objective.evaluate(&moved, Some(&penalty), &mut unused).value
        };
        for (at, &g) in gradient.iter().enumerate() {
            let difference = (value(at, 1e-5) - value(at, -1e-5)) / 2e-5;
            let off = (g - difference).abs();
            assert!(off < 1e-8, "{normalisation:?}, weight {at}: {g} against {difference}");
        }
    }
}

#[test]
fn what_is_linear_in_the_inputs_is_met_by_a_point() {
    let (n, c, d) = (40, 7, 4);
    // The last column repeats the first, so the inputs have one dimension less than columns.
    let mut inputs = wave(n, c, 0.0);
    let first = inputs.column(0).to_owned();
    inputs.column_mut(c - 1).assign(&first);
    let [wq, wk] = [wave(c, d, 3.0), wave(c, d, 4.0)];
    let (q, k) = (inputs.dot(&wq), inputs.dot(&wk));
    let tied = SharedProjection::new(Inputs::new(inputs.view()).unwrap(), d, None, None).unwrap();
    assert!(tied.inputs.dimension() < c);
    let point = tied.point(q.view(), k.view(), None);
    let factors = tied.factors(Precision::F64, &point);
    let off = factors.iter().zip(q.iter().chain(&k)).map(|(a, b)| (a - b).abs());
    assert!(off.fold(0.0, f64::max) < 1e-9);
}

#[test]
fn inputs_that_are_wrong_are_refused() {
    let nothing = Array2::zeros((5, 3));
    assert!(Inputs::new(nothing.view()).is_err());
    assert!(Inputs::new((nothing + f64::NAN).view()).is_err());
    let inputs = Inputs::new(wave(5, 3, 0.0).view()).unwrap();
    let turned = SharedProjection::new(inputs, 4, None, Some(turns(5, 1)));
    assert!(turned.unwrap_err().to_string().contains("turns (5, 1)"));
}
