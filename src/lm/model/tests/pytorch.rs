//! Compares the gradient of every weight of every variant with PyTorch's, from tests/reference/arms.py.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Device, Tensor, Var};

use crate::lm::TrainDefinition;
use crate::lm::model::{Model, ModelShape, Weight};
use crate::lm::tensor_file::SafetensorsFile;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/arms.safetensors");
const SYMBOLS: usize = 11;
const ROUTED: &[(&str, &str)] = &[("layers", "3"), ("recursions", "3")];
const SCALE: (&str, &str) = ("router_scale", "0.7");
const LOSS: (&str, &str) = ("router_loss", "0.4");

/// sin(b + 0.37 i²) for entry i, with b the sum of the name's bytes.
pub(in crate::lm) fn wave(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let begin: u32 = name.bytes().map(u32::from).sum();
    (0..count).map(move |i| (f64::from(begin) + 0.37 * (i * i) as f64).sin())
}

/// Sets the values of a weight from `wave`.
fn set(name: &str, variable: &Var, values: impl Fn(f64) -> f64) {
    let data: Vec<f32> =
        wave(name, variable.elem_count()).map(|wave| values(wave) as f32).collect();
    variable.set(&Tensor::from_vec(data, variable.shape(), &Device::Cpu).unwrap()).unwrap();
}

pub(in crate::lm) fn model(definition: &TrainDefinition) -> Model {
    let model = Model::new(ModelShape::new(definition, SYMBOLS), 0.02, 0).unwrap();
    for Weight { name, variable } in &model.weights {
        let gain = variable.rank() == 1;
        set(name, variable, |wave| if gain { 1.0 + 0.3 * wave } else { 0.5 * wave });
    }
    for Weight { name, variable } in &model.vectors {
        set(name, variable, |wave| wave);
    }
    model
}

/// The tokens, (B, T), and the token after each of them.
pub(in crate::lm) fn text(definition: &TrainDefinition) -> (Tensor, Tensor) {
    let (b, t) = (definition.batch, definition.context);
    let token = |i: usize| ((i * i + 3) % SYMBOLS) as u32;
    let windows = |shift: usize| -> Vec<u32> {
        (0..b).flat_map(|row| (0..t).map(move |i| token(row * (t + 1) + i + shift))).collect()
    };
    (
        Tensor::from_vec(windows(0), (b, t), &Device::Cpu).unwrap(),
        Tensor::from_vec(windows(1), b * t, &Device::Cpu).unwrap(),
    )
}

#[test]
fn the_gradients_of_every_arm_are_those_of_pytorch() {
    let stabilised = r#"["qk-norm", "sigma-reparam", "softcap", "z-loss"]"#;
    let cases: [(&str, &[(&str, &str)]); 22] = [
        ("mhsa", &[]),
        ("ls", &[("arm", "ls")]),
        ("local-only", &[("arm", "local-only")]),
        ("layer-alternating", &[("arm", "layer-alternating")]),
        ("qk-norm", &[("arm", "qk-norm")]),
        ("sigma-reparam", &[("arm", "sigma-reparam")]),
        ("softcap", &[("arm", "softcap")]),
        ("z-loss", &[("arm", "z-loss")]),
        ("loss-exponent", &[("loss_exponent", "0.5")]),
        ("ternary", &[("ternary", "true")]),
        // qk-clip acts after the gradient, which is therefore that of mhsa.
        ("mhsa", &[("arm", "qk-clip")]),
        ("rope", &[("positions", "rope")]),
        ("none", &[("positions", "none")]),
        ("alibi", &[("positions", "none"), ("slopes", "alibi")]),
        ("gam", &[("heads", "1"), ("arm", "gam"), ("memory_slots", "5")]),
        ("recursions", &[("layers", "3"), ("recursions", "3")]),
        (
            "recursions-ls",
            &[("layers", "4"), ("recursions", "2"), ("recursion_keys", "shared"), ("arm", "ls")],
        ),
        ("expert", &[ROUTED, &[("router", "expert"), SCALE, LOSS]].concat()),
        (
            "expert-shared",
            &[
                ROUTED,
                &[("layers", "4"), ("router", "expert"), SCALE, LOSS, ("recursion_keys", "shared")],
                &[("positions", "rope"), ("arm", "qk-norm")],
            ]
            .concat(),
        ),
        ("token", &[ROUTED, &[("router", "token"), SCALE, LOSS, ("positions", "rope")]].concat()),
        ("token-shared", &[ROUTED, &[("router", "token"), ("recursion_keys", "shared")]].concat()),
        ("all", &[("arm", "ls"), ("positions", "rope"), ("stabilisers", stabilised)]),
    ];
    let stored = SafetensorsFile::open(Path::new(FILE)).unwrap();
    let mhsa = stored_gradients(&stored, "mhsa", &small());
    for (case, settings) in cases {
        let mut definition = small();
        for (key, value) in settings {
            definition.set(key, value).unwrap();
        }
        let model = model(&definition);
        let (tokens, targets) = text(&definition);
        let batch = (tokens, targets.flatten_all().unwrap());
        let found = model.gradients(&batch, definition.objective(), false).unwrap();
        let (loss, gradients) = (found.loss_nats, found.gradients.unwrap());
        let expected = match case {
            "mhsa" => mhsa.clone(),
            _ => stored_gradients(&stored, case, &definition),
        };
        assert_eq!(expected.len(), model.weights.len() + 1, "{settings:?}");
        let off = (loss - f64::from(expected["loss"][0])).abs();
        assert!(off < 2e-6 * loss, "{settings:?}: loss differs by {off:e}");
        let size = |x: &[f32]| x.iter().fold(0.0f32, |size, x| size.max(x.abs()));
        // A gradient that another operation cancels, such as that of a gain before qk-norm, is compared
        // relative to the size of the other gradients.
        let floor = 1e-3 * expected.values().map(|x| size(x)).fold(0.0, f32::max);
        for (weight, found) in model.weights.iter().zip(&gradients) {
            let found: Vec<f32> = found.flatten_all().unwrap().to_vec1().unwrap();
            let expected = &expected[&weight.name];
            assert!(size(expected) > 0.0, "{settings:?}: {} has a gradient of zero", weight.name);
            let off: Vec<f32> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
            let relative = size(&off) / size(expected).max(floor);
            assert!(relative < 2e-5, "{settings:?}: {} differs by {relative:e}", weight.name);
        }
    }
}

pub(in crate::lm) fn small() -> TrainDefinition {
    TrainDefinition {
        layers: 2,
        d_model: 8,
        heads: 2,
        window: 3,
        context: 9,
        batch: 2,
        softcap: 0.5,
        z_loss: 0.1,
        ..TrainDefinition::default()
    }
}

/// The stored loss and gradients of a case, by weight.
fn stored_gradients(
    file: &SafetensorsFile,
    case: &str,
    definition: &TrainDefinition,
) -> HashMap<String, Vec<f32>> {
    let mut all = HashMap::new();
    let model = model(definition);
    for Weight { name, variable } in &model.weights {
        let data = file.tensor(&format!("{case}/{name}"), variable.dims()).unwrap();
        all.insert(name.clone(), data);
    }
    all.insert("loss".to_owned(), file.tensor(&format!("{case}/loss"), &[1]).unwrap());
    all
}
