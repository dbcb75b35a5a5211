//! The sizes of a model, and its trained parameters: names, shapes and initial values.

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor, Var, bail};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::lm::error::require;
use crate::lm::operators::plus;
use crate::lm::tensor_file::{Named, TensorFile};
use crate::lm::{Dtype, LmError, Positions, Slopes, Stabiliser, TrainDefinition};
use crate::targets::HeadKind;

/// The sizes and components of a model. The names and shapes of its weights and its computation depend on nothing
/// else.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// Number of symbols V.
    pub vocabulary_size: usize,
    /// The longest sequence.
    pub context: usize,
    /// Channels of the residual stream: C.
    pub d_model: usize,
    /// Channels of one head: D.
    pub d_head: usize,
    /// What each head sees: one entry a decoder block, with as many heads in every one.
    pub heads: Vec<Vec<HeadKind>>,
    /// Position encoding.
    pub positions: Positions,
    /// Linear position bias of each head.
    pub slopes: Slopes,
    /// Root mean square of the channels of a sinusoidal position vector.
    pub sinusoid: f32,
    /// Whether queries and keys are normalised: [`Stabiliser::QkNorm`].
    pub qk_norm: bool,
    /// Whether a block's matrices are divided by their spectral norm: [`Stabiliser::SigmaReparam`].
    pub sigma_reparam: bool,
    /// The softcap c of attention logits c tanh(z/c): [`Stabiliser::Softcap`].
    pub softcap: Option<f32>,
    /// Precision of products and attention.
    pub dtype: Dtype,
}

impl ModelShape {
    /// The shape for a definition and a text whose vocabulary has `vocabulary_size` symbols.
    pub fn new(definition: &TrainDefinition, vocabulary_size: usize) -> Self {
        let softcap = definition.softcap as f32;
        Self {
            vocabulary_size,
            context: definition.context,
            d_model: definition.d_model,
            d_head: definition.head_dimension(),
            heads: definition.head_kinds(),
            positions: definition.positions,
            slopes: definition.slopes,
            sinusoid: definition.initial_deviation as f32,
            qk_norm: definition.has(Stabiliser::QkNorm),
            sigma_reparam: definition.has(Stabiliser::SigmaReparam),
            softcap: definition.has(Stabiliser::Softcap).then_some(softcap),
            dtype: definition.dtype,
        }
    }

    /// Number of blocks.
    pub fn layers(&self) -> usize {
        self.heads.len()
    }

    /// The fixed position vectors, (context, C), for [`Positions::Sinusoidal`]; `None` otherwise.
    pub(super) fn sinusoids(&self, device: &Device) -> candle_core::Result<Option<Tensor>> {
        if self.positions != Positions::Sinusoidal {
            return Ok(None);
        }
        let amplitude = f64::from(self.sinusoid) * std::f64::consts::SQRT_2;
        let value = |at: usize| {
            let (t, channel) = (at / self.d_model, at % self.d_model);
            let exponent = (channel / 2 * 2) as f64 / self.d_model as f64;
            let (sin, cos) = (t as f64 * 10_000f64.powf(-exponent)).sin_cos();
            (amplitude * if channel.is_multiple_of(2) { sin } else { cos }) as f32
        };
        let values: Vec<f32> = (0..self.context * self.d_model).map(value).collect();
        Tensor::from_vec(values, (self.context, self.d_model), device).map(Some)
    }

    /// Refuses sizes with which attention cannot be computed.
    pub(super) fn check(&self) -> Result<(), LmError> {
        require(self.layers() >= 1, "layers", self.layers(), "must be at least 1")?;
        let heads = self.heads[0].len();
        for layer in &self.heads {
            require(!layer.is_empty(), "heads", layer.len(), "must be at least 1")?;
            let why = format!("must be {heads} in every layer");
            require(layer.len() == heads, "heads", layer.len(), &why)?;
            let blind = layer.contains(&HeadKind::Local { window: 0 });
            require(!blind, "window", 0, "must be at least 1")?;
        }
        require(self.d_head >= 1, "d_head", self.d_head, "must be at least 1")?;
        require(
            self.positions != Positions::Rope || self.d_head.is_multiple_of(2),
            "d_head",
            self.d_head,
            "must be even with positions = rope",
        )?;
        require(
            self.positions != Positions::Sinusoidal || self.d_model.is_multiple_of(2),
            "d_model",
            self.d_model,
            "must be even with positions = sinusoidal",
        )
    }
}

/// A named variable.
pub(in crate::lm) struct Weight {
    pub(in crate::lm) name: String,
    pub(in crate::lm) variable: Var,
}

/// Initial values of a weight.
enum Start {
    Normal { deviation: f32 },
    Ones,
    Values(Vec<f32>),
}

/// Name, dimensions and initial values of a weight.
struct Plan {
    name: String,
    dimensions: Vec<usize>,
    start: Start,
}

impl Plan {
    fn holding(self, data: Vec<f32>) -> Result<Weight, LmError> {
        let variable = Var::from_vec(data, self.dimensions, &Device::Cpu)?;
        Ok(Weight { name: self.name, variable })
    }
}

/// The matrices of a block: name, inputs and outputs. The heads have H·D channels together.
fn matrices(shape: &ModelShape) -> [(&'static str, usize, usize); 6] {
    let c = shape.d_model;
    let of_heads = shape.d_head * shape.heads.first().map_or(0, Vec::len);
    [
        ("attention.query", c, of_heads),
        ("attention.key", c, of_heads),
        ("attention.value", c, of_heads),
        ("attention.output", of_heads, c),
        ("mlp.input", c, 4 * c),
        ("mlp.output", 4 * c, c),
    ]
}

/// All trained weights of a model, in the order in which their initial values are drawn; normal values have the
/// standard deviation `normal`. Matrices are stored as inputs × outputs.
fn plan(shape: &ModelShape, normal: f32) -> Vec<Plan> {
    let c = shape.d_model;
    // As in GPT-2, the projections that end on the residual stream are divided by the square root of
    // their number.
    let residual = normal / (2.0 * shape.layers() as f32).sqrt();
    let matrix = |name: String, rows: usize, columns: usize, deviation: f32| Plan {
        name,
        dimensions: vec![rows, columns],
        start: Start::Normal { deviation },
    };
    let gain =
        |name: String, size: usize| Plan { name, dimensions: vec![size], start: Start::Ones };
    let mut all = vec![matrix("token_embedding".into(), shape.vocabulary_size, c, normal)];
    if shape.positions == Positions::Learned {
        all.push(matrix("position_embedding".into(), shape.context, c, normal));
    }
    for layer in 0..shape.layers() {
        let name = |part: &str| format!("layers.{layer}.{part}");
        all.extend([gain(name("attention.norm"), c), gain(name("mlp.norm"), c)]);
        if shape.qk_norm {
            let d = shape.d_head;
            all.extend([
                gain(name("attention.query_norm"), d),
                gain(name("attention.key_norm"), d),
            ]);
        }
        if shape.slopes == Slopes::Learned {
            let heads = shape.heads[layer].len();
            all.push(Plan {
                name: name("attention.slopes"),
                dimensions: vec![heads],
                start: Start::Values(Slopes::of_alibi(heads)),
            });
        }
        for (part, inputs, outputs) in matrices(shape) {
            let deviation = if part.ends_with("output") { residual } else { normal };
            all.push(matrix(name(part), inputs, outputs, deviation));
            if shape.sigma_reparam {
                all.push(gain(name(&format!("{part}.gain")), 1));
            }
        }
    }
    all.push(gain("norm".into(), c));
    all
}

/// A vector v that is part of a model's state but not trained: power iteration on it gives
/// the spectral norm ‖Wv‖ of a matrix.
pub(super) struct SingularVector {
    /// The matrix's name.
    pub(super) of: String,
    pub(super) vector: Weight,
}

/// The singular vectors of a model of `shape`, with the elements that `data` returns for the name and the length of each.
fn vectors(
    shape: &ModelShape,
    mut data: impl FnMut(&str, usize) -> Result<Vec<f32>, LmError>,
) -> Result<Vec<SingularVector>, LmError> {
    let mut all = Vec::new();
    for layer in 0..if shape.sigma_reparam { shape.layers() } else { 0 } {
        for (part, _, outputs) in matrices(shape) {
            let of = format!("layers.{layer}.{part}");
            let name = format!("{of}.singular_vector");
            let variable = Var::from_vec(data(&name, outputs)?, outputs, &Device::Cpu)?;
            all.push(SingularVector { of, vector: Weight { name, variable } });
        }
    }
    Ok(all)
}

/// Draws the initial weights of a model from `seed`; normal values have the standard deviation `deviation`.
pub(super) fn initial(
    shape: &ModelShape,
    deviation: f64,
    seed: u64,
) -> Result<Vec<Weight>, LmError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = |deviation: f32| -> f32 {
        let x: f32 = StandardNormal.sample(&mut rng);
        x * deviation
    };
    let mut start = |plan: Plan| {
        let count = plan.dimensions.iter().product();
        let data = match &plan.start {
            Start::Ones => vec![1.0; count],
            Start::Values(values) => values.clone(),
            Start::Normal { deviation } => (0..count).map(|_| normal(*deviation)).collect(),
        };
        plan.holding(data)
    };
    plan(shape, deviation as f32).into_iter().map(&mut start).collect()
}

/// The singular vectors of a new model before any iteration: constant unit vectors.
pub(super) fn initial_vectors(shape: &ModelShape) -> Result<Vec<SingularVector>, LmError> {
    vectors(shape, |_, outputs| Ok(vec![1.0 / (outputs as f32).sqrt(); outputs]))
}

/// Reads the singular vectors of a model of `shape` from a file.
pub(super) fn vectors_from_file(
    shape: &ModelShape,
    file: &mut TensorFile,
) -> Result<Vec<SingularVector>, LmError> {
    vectors(shape, |name, outputs| file.take(name, &[outputs]))
}

/// The weights as named tensors.
pub(super) fn named<'a>(
    weights: impl IntoIterator<Item = &'a Weight>,
) -> Result<Vec<Named>, LmError> {
    weights
        .into_iter()
        .map(|weight| {
            Ok(Named {
                name: weight.name.clone(),
                dimensions: weight.variable.dims().to_vec(),
                data: weight.variable.flatten_all()?.to_vec1()?,
            })
        })
        .collect()
}

/// Reads the weights of a model of `shape` from a file.
pub(super) fn from_file(shape: &ModelShape, file: &mut TensorFile) -> Result<Vec<Weight>, LmError> {
    // Only names and dimensions are used; no initial values are drawn.
    let mut read = |plan: Plan| {
        let data = file.take(&plan.name, &plan.dimensions)?;
        plan.holding(data)
    };
    plan(shape, 0.0).into_iter().map(&mut read).collect()
}

/// A model's tensors by name.
pub(super) struct Tensors<'a> {
    pub(super) parameters: HashMap<&'a str, Parameter>,
    pub(super) vectors: HashMap<&'a str, Tensor>,
}

impl Tensors<'_> {
    /// The weight of this name; fails if it is missing.
    pub(super) fn parameter(&self, name: &str) -> candle_core::Result<Parameter> {
        match self.parameters.get(name) {
            Some(parameter) => Ok(parameter.clone()),
            None => bail!("the model has no weight {name}"),
        }
    }

    /// The singular vector of this name; fails if it is missing.
    pub(super) fn vector(&self, name: &str) -> candle_core::Result<Tensor> {
        match self.vectors.get(name) {
            Some(vector) => Ok(vector.clone()),
            None => bail!("the model has no {name}"),
        }
    }
}

/// A weight and its index among the model's weights.
#[derive(Clone)]
pub(super) struct Parameter {
    pub(super) index: usize,
    /// Shares its storage with the variable that the optimiser updates.
    pub(super) tensor: Tensor,
}

/// Values that are trained in some models and fixed in others.
pub(super) enum Values {
    Trained(Parameter),
    Fixed(Tensor),
}

impl Values {
    pub(super) fn tensor(&self) -> &Tensor {
        let (Self::Trained(Parameter { tensor, .. }) | Self::Fixed(tensor)) = self;
        tensor
    }

    /// The weight, if it is trained.
    pub(super) fn trained(&self) -> Option<&Parameter> {
        match self {
            Self::Trained(parameter) => Some(parameter),
            Self::Fixed(_) => None,
        }
    }
}

/// The gradients of a model's weights computed so far.
pub(super) struct Gradients {
    pub(super) by_weight: Vec<Option<Tensor>>,
}

impl Gradients {
    /// Adds to the gradient of a weight.
    pub(super) fn add(&mut self, of: &Parameter, gradient: Tensor) -> candle_core::Result<()> {
        let gradient = gradient.to_dtype(DType::F32)?;
        let so_far = &mut self.by_weight[of.index];
        *so_far = Some(plus(so_far.take(), gradient)?);
        Ok(())
    }
}
