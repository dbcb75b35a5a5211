//! Tests of the Hessian's products, trace and largest eigenvalue, and of the classifier.

use std::path::Path;

use candle_core::Tensor;

use super::classifier::classify_parts;
use super::complex::Number;
use super::measurement::Loss;
use super::*;
use crate::lm::Model;
use crate::lm::model::tests::pytorch::{
    model as reference_model, small, text as reference_text, wave,
};
use crate::lm::model::tests::{text, with_attention, with_recursions, without_attention};
use crate::lm::operators::Objective;
use crate::lm::tensor_file::SafetensorsFile;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/hessians.safetensors");

/// The windows of a batch as passages, each with its last target.
fn passages((ids, targets): &(Tensor, Tensor)) -> Vec<Vec<u32>> {
    let (ids, targets) = (ids.to_vec2::<u32>().unwrap(), targets.flatten_all().unwrap());
    let targets = targets.to_vec1::<u32>().unwrap();
    let last = targets.chunks(ids[0].len()).map(|row| *row.last().unwrap());
    ids.into_iter().zip(last).map(|(row, last)| [row, vec![last]].concat()).collect()
}

fn flat(tensors: &[Tensor]) -> Vec<f64> {
    tensors
        .iter()
        .flat_map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap())
        .map(f64::from)
        .collect()
}

/// The largest difference, relative to the largest number of `expected`.
fn off(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let size = expected.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max) / size
}

/// Models with every supported part, whose weights are so large that attention is far from uniform.
fn models() -> Vec<Model> {
    let mut models = with_attention();
    models.retain(|model| Loss::new(model, &[]).is_ok());
    assert_eq!(models.len(), 7);
    for weight in models.iter().flat_map(|model| model.weights()) {
        weight.variable.set(&(weight.variable.as_tensor() * 3.0).unwrap()).unwrap();
    }
    models
}

/// Passages in which each token follows from the one before.
fn of_model(model: &Model) -> (Vec<Vec<u32>>, (Tensor, Tensor)) {
    let (ids, _) = text(model);
    let (b, t) = ids.dims2().unwrap();
    let targets: Vec<u32> = ids.flatten_all().unwrap().to_vec1::<u32>().unwrap();
    let next = |i: usize| if (i + 1).is_multiple_of(t) { 3 } else { targets[i + 1] };
    let targets = Tensor::from_vec((0..b * t).map(next).collect(), b * t, ids.device()).unwrap();
    let batch = (ids, targets);
    (passages(&batch), batch)
}

fn direction(model: &Model) -> Vec<f64> {
    model.weights().iter().flat_map(|w| wave(&w.name, w.variable.elem_count())).collect()
}

fn real(of: &[Number]) -> Vec<f64> {
    of.iter().map(|z| z.re).collect()
}

#[test]
fn loss_gradient_and_largest_logit_are_those_of_the_trainer() {
    for model in models() {
        let (passages, batch) = of_model(&model);
        let trained = model.gradients(&batch, Objective::CROSS_ENTROPY, false).unwrap();
        let loss = Loss::new(&model, &passages).unwrap();
        let found = loss.along(&direction(&model));
        let far = off(&real(&found.gradient), &flat(&trained.gradients.unwrap()));
        assert!(far < 1e-4, "{:?}: the gradient differs by {far:e}", model.shape());
        let logits = trained.heads.iter().flatten().map(|head| f64::from(head.max_abs_logit()));
        let far = off(
            &[found.nats, found.max_abs_logit],
            &[trained.loss_nats, logits.fold(0.0, f64::max)],
        );
        assert!(far < 1e-5, "{:?}: loss or logits differ by {far:e}", model.shape());
    }
}

#[test]
fn a_product_is_the_slope_of_the_gradient() {
    for model in models() {
        let (passages, _) = of_model(&model);
        let direction = direction(&model);
        let mut loss = Loss::new(&model, &passages).unwrap();
        let found = loss.product(&direction);
        // Central differences of this module's gradient, which is that of the trainer: see above.
        let values = loss.values.clone();
        let mut gradient = |step: f64| {
            let moved = values.iter().zip(&direction).map(|(at, v)| at + step * v);
            loss.values = moved.collect();
            real(&loss.along(&direction).gradient)
        };
        let step = 1e-7;
        let pairs = gradient(step).into_iter().zip(gradient(-step));
        let slope: Vec<f64> =
            pairs.map(|(after, before)| (after - before) / (2.0 * step)).collect();
        let far = off(&found, &slope);
        assert!(far < 1e-6, "{:?}: differs by {far:e}", model.shape());
    }
}

#[test]
fn products_trace_and_eigenvalue_are_those_of_pytorch() {
    let stored = SafetensorsFile::open(Path::new(FILE)).unwrap();
    for (case, settings) in [
        ("mhsa", ""),
        ("ls", "arm=ls"),
        ("qk-norm", "arm=qk-norm"),
        ("rope", "positions=rope"),
        ("alibi", "positions=none slopes=alibi"),
    ] {
        let definition = small().with(settings);
        let model = reference_model(&definition);
        let passages = passages(&reference_text(&definition));
        let loss = Loss::new(&model, &passages).unwrap();
        let (mut direction, mut expected) = (Vec::new(), Vec::new());
        for weight in model.weights() {
            let (name, variable) = (&weight.name, &weight.variable);
            direction.extend(wave(&format!("{name}.direction"), variable.elem_count()));
            expected.extend(stored.tensor(&format!("{case}/{name}"), variable.dims()).unwrap());
        }
        let expected: Vec<f64> = expected.into_iter().map(f64::from).collect();
        let far = off(&loss.product(&direction), &expected);
        assert!(far < 1e-6, "{case}: Hv differs by {far:e}");

        let number =
            |name: &str| f64::from(stored.tensor(&format!("{case}/{name}"), &[1]).unwrap()[0]);
        let found = loss.largest_eigenvalue(200, &|| true).unwrap();
        let far = off(&[found.value], &[number("eigenvalue")]);
        assert!(far < 1e-5 && found.residual <= EIGENVALUE_TOLERANCE, "{case}: {far:e}");
        let one = loss.largest_eigenvalue(2, &|| true).unwrap();
        assert!(one.residual > EIGENVALUE_TOLERANCE && one.iterations == 2, "{case}");
        assert!(one.value < found.value, "{case}: {} of {}", one.value, found.value);

        let [mean, error] = loss.trace(300, &|| true).unwrap();
        let far = (mean - number("trace")).abs() / error;
        assert!(far < 3.0, "{case}: {mean} is {far} standard errors from {}", number("trace"));
    }
}

#[test]
fn a_stop_ends_the_products() {
    let model = &models()[0];
    let (passages, _) = of_model(model);
    let loss = Loss::new(model, &passages).unwrap();
    let left = std::cell::Cell::new(3);
    let goes_on = || left.replace(left.get() - 1) > 0;
    assert!(loss.trace(9, &goes_on).is_none() && left.get() == -1);
    assert!(loss.largest_eigenvalue(9, &|| false).is_none());
}

#[test]
fn other_models_and_passages_are_refused() {
    let said = |model: &Model, passages: &[Vec<u32>]| {
        Loss::new(model, passages).err().map(|e| e.to_string()).unwrap_or_default()
    };
    for model in with_recursions().iter().chain([&without_attention()]) {
        assert!(said(model, &[]).contains("gam, recursions"));
    }
    let model = &models()[0];
    for passage in [vec![1], vec![1; 42], vec![1, 19]] {
        assert!(said(model, &[passage]).contains("2..42 tokens in 0..19"));
    }
}

#[test]
fn the_classifier_names_parts_that_differ_and_no_others() {
    let model = &models()[0];
    let text = |symbols: &dyn Fn(usize) -> u32| (0..12 * 600).map(symbols).collect::<Vec<u32>>();
    let mixed = |at: usize| ((at * at + 7 * at / 5) % 61) as u32;
    let apart = classify_parts(model, &text(&|at| (at / 1200 * 3) as u32 + mixed(at) % 4)).unwrap();
    assert!(apart[0] > 0.99 && apart[1] < 0.2, "{apart:?}");
    let alike = classify_parts(model, &text(&|at| mixed(at) % 19)).unwrap();
    assert!((alike[0] - 1.0 / 6.0).abs() < 0.1, "{alike:?}");
    let error = classify_parts(model, &[1; 500]).unwrap_err().to_string();
    assert!(error.contains("500 of the 960 tokens"), "{error}");
}
