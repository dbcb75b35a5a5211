//! Compares the GPU with the CPU. Needs a GPU: `cargo test --release --features cuda -- --ignored`.

use candle_core::{DType, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::lm::attention::{Attended, HeadStatistics, Heads, attention};
use crate::lm::model::tests::{every_kind, text};
use crate::lm::model::{Model, ModelShape};
use crate::lm::operators::Objective;
use crate::lm::{Corpus, Device, Dtype, TrainDefinition, Trainer};
use crate::targets::HeadKind::{self, Global, Local};

fn numbers(x: &Tensor) -> Vec<f32> {
    x.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// The largest difference relative to the largest number, or to 1 if that is larger.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(1.0f32, |most, x| most.max(x.abs()));
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    // `f32::max` would ignore NaN; this fold keeps it.
    off.fold(0.0, |most, off| if off <= most { most } else { off }) / largest
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Output, gradients and statistics of attention, on one device.
fn attend(
    inputs: &[Vec<f32>; 3],
    shape: (usize, usize, usize, usize),
    heads: &Heads,
    (device, dtype): (Device, Dtype),
) -> [Vec<f32>; 5] {
    let device = device.open().unwrap();
    let [q, k, v] = [0, 1, 2].map(|which| {
        let x = Tensor::from_slice(&inputs[which], shape, &candle_core::Device::Cpu).unwrap();
        x.to_dtype(dtype.of_tensors()).unwrap().to_device(&device).unwrap()
    });
    let Attended { output, statistics, pullback } = attention(&q, &k, &v, None, heads).unwrap();
    // The output serves as a gradient that differs from element to element.
    let [dq, dk, dv] = pullback(&output).unwrap().heads;
    let heads = HeadStatistics::of_layers(&[statistics]).unwrap().remove(0);
    let statistics =
        heads.iter().flat_map(|h| [h.max_logit, h.min_logit, h.entropy_nats]).collect();
    [numbers(&output), numbers(&dq), numbers(&dk), numbers(&dv), statistics]
}

#[test]
#[ignore = "needs a GPU"]
fn attention_is_that_of_the_cpu() {
    let mixes: [&[HeadKind]; 4] = [
        &[Global],
        &[Global, Local { window: 7 }, Local { window: 33 }],
        &[Local { window: 1000 }, Global],
        &[Local { window: 64 }, Local { window: 65 }, Local { window: 1 }],
    ];
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut normal = |scale: f32, count: usize| -> Vec<f32> {
        let mut one = || -> f32 { StandardNormal.sample(&mut rng) };
        (0..count).map(|_| scale * one()).collect()
    };
    for (dtype, tolerance) in [(Dtype::Float32, 5e-5), (Dtype::Bfloat16, 3e-2)] {
        for softcap in [None, Some(3.0)] {
            for (at, kinds) in mixes.iter().enumerate() {
                for (index, time) in [1, 31, 64, 65, 130, 700].into_iter().enumerate() {
                    let d_head = [16, 20, 32, 33, 64, 100, 128][(at + index) % 7];
                    let shape = (1 + (at + index) % 3, time, kinds.len(), d_head);
                    let count = shape.0 * shape.1 * shape.2 * shape.3;
                    let scale = 2.0 * (8.0 / d_head as f32).powf(0.25);
                    let inputs = [scale, scale, 1.0].map(|scale| normal(scale, count));
                    let heads = Heads::new(kinds, softcap);
                    let expected = attend(&inputs, shape, &heads, (Device::Cpu, dtype));
                    let found = attend(&inputs, shape, &heads, (Device::Cuda, dtype));
                    let names = ["output", "dq", "dk", "dv", "statistics"];
                    for (name, (found, expected)) in names.iter().zip(found.iter().zip(&expected)) {
                        let off = difference(found, expected);
                        assert!(
                            off < tolerance,
                            "{dtype:?}, {kinds:?}, softcap {softcap:?}, {shape:?}: {name} by {off:e}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn losses_gradients_and_heads_of_every_kind_of_model_are_those_of_the_cpu() {
    for (dtype, tolerance) in [(Dtype::Float32, 1e-5), (Dtype::Bfloat16, 1e-2)] {
        for model in every_kind() {
            let shape = ModelShape { dtype, ..model.shape().clone() };
            let of = |device: Device| {
                let model = Model::new(shape.clone(), 0.02, 7).unwrap().on(device).unwrap();
                let (ids, targets) = text(&model);
                let [ids, targets] = [ids, targets].map(|x| x.to_device(model.device()).unwrap());
                let found = model
                    .gradients(&(ids, targets), Objective { exponent: 1.0, z_loss: 1e-3 }, false)
                    .unwrap();
                let gradients: Vec<_> = found.gradients.unwrap().iter().map(numbers).collect();
                (found.loss_nats, gradients, found.heads)
            };
            let (loss, gradients, heads) = of(Device::Cuda);
            let (expected_loss, expected, expected_heads) = of(Device::Cpu);
            assert!((loss / expected_loss - 1.0).abs() < tolerance, "{shape:?}: {loss}");
            let pairs = gradients.iter().zip(&expected);
            for (weight, (found, expected)) in model.weights().iter().zip(pairs) {
                // With qk-norm, gains of the matrices of queries and keys have no effect: their gradients are noise.
                if shape.qk_norm && weight.name.ends_with(".gain") {
                    continue;
                }
                let (mine, theirs) = (dot(found, found), dot(expected, expected));
                let cosine = dot(found, expected) / (mine * theirs).sqrt();
                let ratio = (mine / theirs).sqrt();
                assert!(
                    1.0 - cosine < tolerance && (ratio - 1.0).abs() < 3.0 * tolerance,
                    "{shape:?}: {} at a cosine of {cosine}, {ratio} × as long",
                    weight.name
                );
            }
            for (found, expected) in heads.iter().flatten().zip(expected_heads.iter().flatten()) {
                let off = f64::from((found.max_logit - expected.max_logit).abs())
                    .max((found.min_logit - expected.min_logit).abs().into())
                    .max((found.entropy_nats - expected.entropy_nats).abs().into());
                assert!(off < 3.0 * tolerance, "{shape:?}: {found:?}, not {expected:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_run_follows_that_of_the_cpu_and_goes_on_on_either() {
    for arm in ["ls", "qk-norm", "sigma-reparam", "qk-clip", "z-loss"] {
        // Low enough for clipping to act.
        let definition = TrainDefinition::default().with(&format!(
            "layers=2 d_model=32 heads=2 context=64 steps=20 warmup_steps=2 qk_clip=0.05 \
             corpus.tokens=40000 arm={arm}"
        ));
        let corpus = Corpus::synthetic(&definition).unwrap();
        let mut cpu = Trainer::new(&definition, &corpus, Device::Cpu).unwrap();
        let mut follows = |other: &mut Trainer, steps: usize| {
            for step in 0..steps {
                let (found, expected) = (other.step().unwrap(), cpu.step().unwrap());
                let off = (found.loss_nats - expected.loss_nats).abs();
                assert!(off < 2e-3, "{arm}, {step}: {found:?}, not {expected:?}");
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.safetensors");
        let mut cuda = Trainer::new(&definition, &corpus, Device::Cuda).unwrap();
        follows(&mut cuda, 10);
        cuda.save(&path).unwrap();
        follows(&mut Trainer::resume(&definition, &corpus, Device::Cuda, &path).unwrap(), 5);
        let mut again = Trainer::resume(&definition, &corpus, Device::Cpu, &path).unwrap();
        let off = (again.step().unwrap().loss_nats - cuda.step().unwrap().loss_nats).abs();
        assert!(off < 1e-4, "{arm}: {off:e}");
    }
}
