//! The trained numbers of a model: their names, shapes, start, and their file.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use candle_core::{Device, Tensor, Var};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

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

/// Every weight of a model, in the order in which its start is drawn. Matrices are stored as
/// inputs × outputs.
fn plan(shape: &ModelShape) -> Vec<Plan> {
    let c = shape.d_model;
    // GPT-2: normal 0.02, and the projections that end on the residual stream scaled down by the
    // root of how many there are.
    let normal = 0.02;
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

/// Draws a model's start from `seed`.
pub(super) fn initial(shape: &ModelShape, seed: u64) -> Result<Vec<Weight>, LmError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    plan(shape)
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

/// Writes weights as safetensors, beside `path` first and then renamed onto it, so that a file of
/// that name is always whole.
pub(super) fn save(weights: &[Weight], path: &Path) -> Result<(), LmError> {
    let io = |source| LmError::Io { path: path.to_owned(), source };
    let wrong = |why: String| LmError::Weights { path: path.to_owned(), why };
    let mut bytes = Vec::with_capacity(weights.len());
    for weight in weights {
        let data = weight.variable.flatten_all()?.to_vec1::<f32>()?;
        let data: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        bytes.push((weight.name.as_str(), weight.variable.dims().to_vec(), data));
    }
    let views = bytes
        .iter()
        .map(|(name, dimensions, data)| {
            Ok((*name, TensorView::new(Dtype::F32, dimensions.clone(), data)?))
        })
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|e| wrong(e.to_string()))?;
    let file = safetensors::serialize(views, None).map_err(|e| wrong(e.to_string()))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(io)?;
    let mut aside = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
    aside.write_all(&file).map_err(io)?;
    aside.as_file().sync_all().map_err(io)?;
    aside.persist(path).map_err(|e| io(e.error))?;
    Ok(())
}

/// Reads the weights of a model of `shape`.
pub(super) fn load(shape: &ModelShape, path: &Path) -> Result<Vec<Weight>, LmError> {
    let wrong = |why: String| LmError::Weights { path: path.to_owned(), why };
    let bytes =
        std::fs::read(path).map_err(|source| LmError::Io { path: path.to_owned(), source })?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| wrong(e.to_string()))?;
    let mut found: HashMap<String, TensorView> = file.tensors().into_iter().collect();
    plan(shape)
        .into_iter()
        .map(|plan| {
            let Some(view) = found.remove(&plan.name) else {
                return Err(wrong(format!("has no tensor {}", plan.name)));
            };
            if view.dtype() != Dtype::F32 || view.shape() != plan.dimensions {
                return Err(wrong(format!(
                    "{} is {:?} {:?}, the model's is F32 {:?}",
                    plan.name,
                    view.dtype(),
                    view.shape(),
                    plan.dimensions
                )));
            }
            let (words, _) = view.data().as_chunks::<4>();
            let data: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
            let tensor = Tensor::from_vec(data, plan.dimensions, &Device::Cpu)?;
            Ok(Weight { name: plan.name, variable: Var::from_tensor(&tensor)? })
        })
        .collect()
}
