//! Compares the gradient of every weight of every variant with PyTorch's, from tests/reference/arms.py.

use std::path::Path;

use candle_core::{Device, Tensor, Var};

use crate::lm::TrainDefinition;
use crate::lm::model::{Model, ModelShape, Weight};
use crate::lm::tensor_file::SafetensorsFile;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/arms.safetensors");
const SYMBOLS: usize = 11;

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
    let cases = [
        ("mhsa", ""),
        ("ls", "arm=ls"),
        ("local-only", "arm=local-only"),
        ("layer-alternating", "arm=layer-alternating"),
        ("qk-norm", "arm=qk-norm"),
        ("sigma-reparam", "arm=sigma-reparam"),
        ("softcap", "arm=softcap"),
        ("z-loss", "arm=z-loss"),
        ("loss-exponent", "loss_exponent=0.5"),
        ("ternary", "ternary=true"),
        // qk-clip acts after the gradient, which is therefore that of mhsa.
        ("mhsa", "arm=qk-clip"),
        ("rope", "positions=rope"),
        ("none", "positions=none"),
        ("alibi", "positions=none slopes=alibi"),
        ("gam", "heads=1 arm=gam memory_slots=5"),
        ("recursions", "layers=3 recursions=3"),
        ("recursions-ls", "layers=4 recursions=2 recursion_keys=shared arm=ls"),
        ("expert", "layers=3 recursions=3 router=expert router_scale=0.7 router_loss=0.4"),
        (
            "expert-shared",
            "layers=4 recursions=3 router=expert router_scale=0.7 router_loss=0.4 \
             recursion_keys=shared positions=rope arm=qk-norm",
        ),
        (
            "token",
            "layers=3 recursions=3 router=token router_scale=0.7 router_loss=0.4 positions=rope",
        ),
        ("token-shared", "layers=3 recursions=3 router=token recursion_keys=shared"),
        (
            "all",
            r#"arm=ls positions=rope stabilisers=["qk-norm","sigma-reparam","softcap","z-loss"]"#,
        ),
    ];
    let stored = SafetensorsFile::open(Path::new(FILE)).unwrap();
    for (case, settings) in cases {
        let definition = small().with(settings);
        let model = model(&definition);
        let found = model.gradients(&text(&definition), definition.objective(), false).unwrap();
        let (loss, gradients) = (found.loss_nats, found.gradients.unwrap());
        let stored_as = |name: &str, shape: &[usize]| -> Vec<f32> {
            stored.tensor(&format!("{case}/{name}"), shape).unwrap()
        };
        let off = (loss - f64::from(stored_as("loss", &[1])[0])).abs();
        assert!(off < 2e-6 * loss, "{settings:?}: loss differs by {off:e}");
        let size = |x: &[f32]| x.iter().fold(0.0f32, |size, x| size.max(x.abs()));
        // A gradient that another operation cancels, such as that of a gain before qk-norm, is compared
        // relative to the loss or to the largest gradient.
        let expected: Vec<Vec<f32>> =
            model.weights.iter().map(|w| stored_as(&w.name, w.variable.dims())).collect();
        let floor = 1e-3 * expected.iter().map(|x| size(x)).fold(loss as f32, f32::max);
        for (weight, (found, expected)) in model.weights.iter().zip(gradients.iter().zip(&expected))
        {
            let found: Vec<f32> = found.flatten_all().unwrap().to_vec1().unwrap();
            assert!(size(expected) > 0.0, "{settings:?}: {} has a gradient of zero", weight.name);
            let off: Vec<f32> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
            let relative = size(&off) / size(expected).max(floor);
            assert!(relative < 2e-5, "{settings:?}: {} differs by {relative:e}", weight.name);
        }
    }
}

pub(in crate::lm) fn small() -> TrainDefinition {
    TrainDefinition::default()
        .with("layers=2 d_model=8 heads=2 window=3 context=9 batch=2 softcap=0.5 z_loss=0.1")
}
