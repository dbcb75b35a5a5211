//! Tests of the model: gradients, causality and files.

pub(in crate::lm) mod pytorch;

use candle_core::{Device, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::lm::operators::Objective;
use crate::lm::{Dtype, RecursionKeys, Router, TrainDefinition};
use crate::targets::HeadKind;

fn shape(settings: &str) -> ModelShape {
    let sizes = "layers=2 d_model=24 heads=3 context=40 softcap=0.5";
    let definition = TrainDefinition::default().with(sizes).with(settings);
    let mixed = vec![HeadKind::Global, HeadKind::Local { window: 5 }, HeadKind::Global];
    ModelShape { heads: vec![mixed; 2], ..ModelShape::new(&definition, 19) }
}

/// One model for each component and each supported combination.
pub(in crate::lm) fn every_kind() -> Vec<Model> {
    [with_attention(), vec![without_attention()], with_recursions()].into_iter().flatten().collect()
}

/// A model for each router and each kind of keys, which chooses tokens in validation as in training.
pub(in crate::lm) fn with_recursions() -> Vec<Model> {
    let shape = |router, keys| {
        let recursion = RecursionShape {
            recursions: 3,
            router,
            scale: 0.8,
            // The loss of a router is not part of the loss whose slopes are compared.
            loss: 0.0,
            keys,
            causal_validation: false,
        };
        let kinds = match router {
            Router::None => shape("").heads.remove(0),
            _ => vec![HeadKind::Global; 3],
        };
        let (heads, recursion) = (vec![kinds; 3], Some(recursion));
        ModelShape { heads, recursion, ..shape("positions=rope") }
    };
    let routers = [Router::None, Router::Expert, Router::Token];
    let all = routers
        .map(|router| [RecursionKeys::Own, RecursionKeys::Shared].map(|keys| shape(router, keys)));
    all.into_iter().flatten().map(|shape| Model::new(shape, 0.02, 7).unwrap()).collect()
}

/// A model whose layers have a gated memory of seven slots.
pub(in crate::lm) fn without_attention() -> Model {
    let heads = vec![vec![HeadKind::Global]; 2];
    let shape = ModelShape { heads, d_head: 24, memory_slots: Some(7), ..shape("") };
    Model::new(shape, 0.02, 7).unwrap()
}

/// One model for each component of attention and each supported combination.
pub(in crate::lm) fn with_attention() -> Vec<Model> {
    let all = r#"positions=rope slopes=learned stabilisers=["qk-norm","sigma-reparam","softcap"]"#;
    let settings = [
        "",
        "positions=rope",
        "positions=none",
        "d_head=5",
        "d_head=12 positions=rope arm=qk-norm",
        "positions=sinusoidal",
        "positions=none slopes=alibi",
        "slopes=learned",
        "arm=qk-norm",
        "arm=sigma-reparam",
        "arm=softcap",
        all,
    ];
    settings.map(|settings| Model::new(shape(settings), 0.02, 7).unwrap()).into()
}

pub(in crate::lm) fn text(model: &Model) -> (Tensor, Tensor) {
    let (b, t, v) = (3, model.shape.context, model.shape.vocabulary_size as u32);
    let tokens = |shift: u32| (0..(b * t) as u32).map(|i| (i * i + shift) % v).collect();
    (
        Tensor::from_vec(tokens(0), (b, t), &Device::Cpu).unwrap(),
        Tensor::from_vec(tokens(5), b * t, &Device::Cpu).unwrap(),
    )
}

fn logits(model: &Model, ids: &Tensor) -> Vec<Vec<f32>> {
    model.predict(ids).unwrap().logits().unwrap().to_vec2().unwrap()
}

#[test]
fn the_gradient_of_each_weight_is_the_slope_of_the_loss() {
    // With sigma-reparam the loss is too strongly curved for finite differences in float32; those models are compared
    // with PyTorch's gradients instead.
    for model in every_kind().iter().filter(|model| !model.shape.sigma_reparam) {
        gradients_are_slopes(model);
    }
}

fn gradients_are_slopes(model: &Model) {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    // Most gradients are tiny at initialisation; larger weights give slopes that float32 resolves.
    for weight in &model.weights {
        let scaled = (weight.variable.as_tensor() * 4.0).unwrap();
        weight.variable.set(&scaled).unwrap();
    }
    let batch = text(model);
    let gradients =
        model.gradients(&batch, Objective::CROSS_ENTROPY, false).unwrap().gradients.unwrap();
    for (weight, gradient) in model.weights.iter().zip(&gradients) {
        let start = weight.variable.copy().unwrap();
        let normals: Vec<f32> =
            (0..start.elem_count()).map(|_| StandardNormal.sample(&mut rng)).collect();
        let direction = Tensor::from_vec(normals, start.shape(), &Device::Cpu).unwrap();
        // The component along the gradient gives a slope equal to its norm; the random component tests the other directions.
        let norm = |x: &Tensor| {
            f64::from(x.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap()).sqrt()
        };
        let along = (gradient * (1.0 / norm(gradient))).unwrap();
        let aside = (&direction * (0.5 / norm(&direction))).unwrap();
        let direction = (along + aside).unwrap();
        let product = (gradient * &direction).unwrap().sum_all().unwrap();
        let product = f64::from(product.to_scalar::<f32>().unwrap());
        let loss_at = |step: f64| {
            weight.variable.set(&(&start + (&direction * step).unwrap()).unwrap()).unwrap();
            model.predict(&batch.0).unwrap().loss_of(&batch.1).unwrap()
        };
        // A thousandth of change in the loss is small against its curvature, large against the rounding of float32. A router may
        // choose other tokens then, which a smaller change does not make it do.
        let is_routed = |of: &RecursionShape| of.router != Router::None;
        let changes = match model.shape.recursion.as_ref().is_some_and(is_routed) {
            true => &[1e-3, 1e-4, 1e-5][..],
            false => &[1e-3],
        };
        let steps = changes.iter().map(|change| change / norm(gradient));
        let slopes: Vec<f64> =
            steps.map(|step| (loss_at(step) - loss_at(-step)) / (2.0 * step)).collect();
        weight.variable.set(&start).unwrap();
        assert!(
            slopes.iter().any(|slope| (slope - product).abs() < 0.02 * product.abs() + 2e-4),
            "{:?}, {}: {slopes:?} against {product}",
            model.shape,
            weight.name
        );
    }
}

#[test]
fn a_token_does_not_see_the_ones_after_it() {
    for mut model in every_kind() {
        let chooses_by_rank = match &mut model.shape.recursion {
            Some(recursion) => {
                recursion.causal_validation = true;
                recursion.router == Router::Expert
            }
            None => false,
        };
        let causal = Model::new(model.shape.clone(), 0.3, 7).unwrap();
        let changed = tokens_with_other_logits(&causal, |token| token >= 30);
        assert!(changed.iter().all(|&token| token >= 30), "{:?}: {changed:?}", model.shape);
        if chooses_by_rank {
            model.shape.recursion.as_mut().unwrap().causal_validation = false;
            let model = Model::new(model.shape, 0.3, 7).unwrap();
            let changed = tokens_with_other_logits(&model, |token| token >= 30);
            assert!(changed[0] < 30, "a choice by rank reads later tokens: {changed:?}");
        }
    }
}

/// A layer's entry per recursion: of expert choice with the largest logit among fewer tokens each time.
#[test]
fn each_recursion_is_a_layer_of_the_log() {
    for model in with_recursions() {
        let (ids, _) = text(&model);
        let heads = model.predict(&ids).unwrap().heads().unwrap();
        assert_eq!(model.shape.logged_layers(), [0, 1, 1, 1, 2]);
        assert_eq!(heads.len(), 5);
        let some = heads.iter().flatten().all(|head| head.max_abs_logit() > 0.0);
        assert!(some, "{:?}: {heads:?}", model.shape);
        let entropy = |layer: usize| heads[layer][0].entropy_nats;
        // Logits are tiny at the start: attention is nearly uniform over the tokens seen.
        let recursion = model.shape.recursion.as_ref().unwrap();
        let fewer = recursion.router == Router::Expert && recursion.keys == RecursionKeys::Own;
        assert_eq!(entropy(3) < entropy(1) - 0.5, fewer, "{:?}: {heads:?}", model.shape);
        assert!(model.probe(&[1, 2]).unwrap_err().to_string().contains("recursions"));
        assert!(model.session().feed(&[1, 2]).unwrap_err().to_string().contains("recursions"));
    }
}

/// Each of two layers of a gated memory reads its own token and the two before.
#[test]
fn without_attention_a_token_sees_two_tokens_back_per_layer() {
    let changed = tokens_with_other_logits(&without_attention(), |token| token == 20);
    assert_eq!(changed, [20, 21, 22, 23, 24]);
}

/// The tokens of the first sequence whose logits change if those tokens that `alters` names are others.
fn tokens_with_other_logits(model: &Model, alters: impl Fn(usize) -> bool) -> Vec<usize> {
    let (ids, _) = text(model);
    let (b, t) = ids.dims2().unwrap();
    let own = ids.flatten_all().unwrap().to_vec1::<u32>().unwrap();
    let other = |(i, id): (usize, &u32)| if alters(i % t) { (id + 1) % 19 } else { *id };
    let changed = own.iter().enumerate().map(other).collect();
    let changed = Tensor::from_vec(changed, (b, t), &Device::Cpu).unwrap();
    let (before, after) = (logits(model, &ids), logits(model, &changed));
    (0..t).filter(|&token| before[token] != after[token]).collect()
}

#[test]
fn a_saved_model_reads_back_and_another_shape_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    for model in every_kind() {
        model.save(&path).unwrap();
        let (ids, _) = text(&model);
        let again = Model::load(model.shape.clone(), &path).unwrap();
        assert_eq!(logits(&again, &ids), logits(&model, &ids));
        let other = ModelShape { d_model: 48, ..model.shape.clone() };
        let Err(error) = Model::load(other, &path) else { panic!("another shape was accepted") };
        assert!(error.to_string().contains("token_embedding"), "{error}");
        assert!(Model::load(model.shape.clone(), &folder.path().join("none")).is_err());
    }
}

#[test]
fn in_bfloat16_gradients_are_rounded_and_point_where_those_of_float32_do() {
    for model in every_kind() {
        let shape = ModelShape { dtype: Dtype::Bfloat16, ..model.shape.clone() };
        let rounded = Model::new(shape, 0.02, 7).unwrap();
        let batch = text(&model);
        let of = |model: &Model| {
            let found = model.gradients(&batch, Objective::CROSS_ENTROPY, false).unwrap();
            let flat = |x: Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            (found.loss_nats, found.gradients.unwrap().into_iter().map(flat).collect::<Vec<_>>())
        };
        let ((exact_loss, exact), (loss, found)) = (of(&model), of(&rounded));
        assert!((loss - exact_loss).abs() < 2e-3 * exact_loss, "{loss}, not {exact_loss}");
        for (weight, (exact, found)) in model.weights.iter().zip(exact.iter().zip(&found)) {
            // With qk-norm, gains of the matrices of queries and keys have no effect: their gradients are noise.
            if model.shape.qk_norm && weight.name.ends_with(".gain") {
                continue;
            }
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            let cosine = dot(exact, found) / (dot(exact, exact) * dot(found, found)).sqrt();
            assert!(cosine > 0.99, "{:?}: {} at a cosine of {cosine}", rounded.shape, weight.name);
            assert_ne!(exact, found, "{:?}: {} is not rounded", rounded.shape, weight.name);
        }
    }
}

#[test]
fn probed_queries_and_keys_give_the_logits_that_were_measured() {
    for model in with_attention() {
        let first = text(&model).0.narrow(0, 0, 1).unwrap();
        let measured = model.predict(&first).unwrap().heads().unwrap();
        let tokens = first.flatten_all().unwrap().to_vec1::<u32>().unwrap();
        let probes = model.probe(&tokens).unwrap();
        assert_eq!(probes.len(), 2 * 3);
        for probe in probes {
            let scale = (probe.queries.ncols() as f32).sqrt();
            let logits = probe.queries.dot(&probe.keys.t()) / scale;
            let seen = (0..tokens.len()).flat_map(|row| {
                let columns = probe.kind.columns(row, tokens.len(), probe.visibility);
                columns.map(move |column| (row, column))
            });
            let largest = seen.fold(f32::NEG_INFINITY, |most, at| most.max(logits[at]));
            let expected = measured[probe.layer][probe.head].max_logit;
            assert!((largest - expected).abs() < 1e-5, "{largest}, measured {expected}");
        }
    }
}

#[test]
fn heads_above_the_threshold_are_clipped_to_it_and_no_others() {
    let model = Model::new(shape(""), 0.02, 7).unwrap();
    // Only one head of the second layer has large logits.
    for part in ["query", "key"] {
        let weight = model.matrix(&format!("layers.1.attention.{part}")).unwrap();
        super::qk_clip::scale_heads(weight, &[1.0, 25.0, 1.0]).unwrap();
    }
    let (ids, _) = text(&model);
    let before = model.predict(&ids).unwrap().heads().unwrap();
    let threshold = f64::from(before[1][1].max_logit) / 3.0;
    assert!(threshold > 2.0 * f64::from(before[1][0].max_logit), "{before:?}");
    model.clip_queries_and_keys(&before, threshold).unwrap();
    let after = model.predict(&ids).unwrap().heads().unwrap();
    let off = (f64::from(after[1][1].max_logit) / threshold - 1.0).abs();
    assert!(off < 1e-5, "{after:?} with a threshold of {threshold}");
    for (layer, head) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)] {
        assert_eq!(after[layer][head], before[layer][head]);
    }
}

#[test]
fn a_model_at_its_start_has_spectral_norms_of_one() {
    use ndarray_linalg::SVD;

    let model = Model::new(shape("arm=sigma-reparam"), 0.02, 7).unwrap();
    for Weight { name, variable: vector } in &model.vectors {
        let weight = model.matrix(name.trim_end_matches(".singular_vector")).unwrap();
        let (rows, columns) = weight.dims2().unwrap();
        let data: Vec<f32> = weight.flatten_all().unwrap().to_vec1().unwrap();
        let exact = ndarray::Array2::from_shape_vec((rows, columns), data).unwrap();
        let exact = exact.svd(false, false).unwrap().1[0];
        let image = weight.matmul(&vector.unsqueeze(1).unwrap()).unwrap();
        let found = image.sqr().unwrap().sum_all().unwrap().sqrt().unwrap();
        let found = found.to_scalar::<f32>().unwrap();
        assert!((found / exact - 1.0).abs() < 0.01, "{name}: {found}, not {exact}");
    }
}
