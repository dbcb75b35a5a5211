//! The trained numbers of a model: their names, shapes and start.

use candle_core::{Device, Var};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::tensor_file::{Named, TensorFile};
use super::{LmError, ModelShape};

/// One named variable.
pub(super) struct Weight {
    pub(super) name: String,
    pub(super) variable: Var,
}

/// How a weight starts.
enum Start {
    Normal { deviation: f32 },
    Ones,
}

/// A weight's name, dimensions and start.
struct Plan {
    name: String,
    dimensions: Vec<usize>,
    start: Start,
}

/// Every weight of a model, in the order in which its start is drawn, normals with the standard
/// deviation `normal`. Matrices are stored as
/// inputs × outputs.
fn plan(shape: &ModelShape, normal: f32) -> Vec<Plan> {
    let c = shape.d_model;
    // As in GPT-2, the projections that end on the residual stream are scaled down by the root of
    // how many there are.
    let residual = normal / (2.0 * shape.layers as f32).sqrt();
    let matrix = |name: String, rows: usize, columns: usize, deviation: f32| Plan {
        name,
        dimensions: vec![rows, columns],
        start: Start::Normal { deviation },
    };
    let gain = |name: String| Plan { name, dimensions: vec![c], start: Start::Ones };
    let mut all = vec![
        matrix("token_embedding".into(), shape.vocabulary_size, c, normal),
        matrix("position_embedding".into(), shape.context, c, normal),
    ];
    for layer in 0..shape.layers {
        let name = |part: &str| format!("layers.{layer}.{part}");
        all.extend([
            gain(name("attention.norm")),
            matrix(name("attention.query"), c, c, normal),
            matrix(name("attention.key"), c, c, normal),
            matrix(name("attention.value"), c, c, normal),
            matrix(name("attention.output"), c, c, residual),
            gain(name("mlp.norm")),
            matrix(name("mlp.input"), c, 4 * c, normal),
            matrix(name("mlp.output"), 4 * c, c, residual),
        ]);
    }
    all.push(gain("norm".into()));
    all
}

/// Draws a model's start from `seed`, with normals of standard deviation `deviation`.
pub(super) fn initial(
    shape: &ModelShape,
    deviation: f64,
    seed: u64,
) -> Result<Vec<Weight>, LmError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    plan(shape, deviation as f32)
        .into_iter()
        .map(|plan| {
            let count = plan.dimensions.iter().product();
            let data: Vec<f32> = match plan.start {
                Start::Ones => vec![1.0; count],
                Start::Normal { deviation } => (0..count)
                    .map(|_| {
                        let x: f32 = StandardNormal.sample(&mut rng);
                        x * deviation
                    })
                    .collect(),
            };
            let variable = Var::from_vec(data, plan.dimensions, &Device::Cpu)?;
            Ok(Weight { name: plan.name, variable })
        })
        .collect()
}

/// The weights, ready to be written.
pub(super) fn named(weights: &[Weight]) -> Result<Vec<Named>, LmError> {
    weights
        .iter()
        .map(|weight| {
            Ok(Named {
                name: weight.name.clone(),
                dimensions: weight.variable.dims().to_vec(),
                data: weight.variable.flatten_all()?.to_vec1()?,
            })
        })
        .collect()
}

/// The weights of a model of `shape` out of a file.
pub(super) fn from_file(shape: &ModelShape, file: &mut TensorFile) -> Result<Vec<Weight>, LmError> {
    // Names and dimensions are what counts here; no start is drawn.
    plan(shape, 0.0)
        .into_iter()
        .map(|plan| {
            let data = file.take(&plan.name, &plan.dimensions)?;
            let variable = Var::from_vec(data, plan.dimensions, &Device::Cpu)?;
            Ok(Weight { name: plan.name, variable })
        })
        .collect()
}
