//! The sizes of a model, and its trained parameters: names, shapes and initial values.

use candle_core::{DType, Device, Tensor, Var, bail};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::lm::operators::plus;
use crate::lm::tensor_file::SafetensorsFile;
use crate::lm::{
    Arm, Dtype, LmError, Positions, RecursionKeys, Router, Slopes, Stabiliser, TrainDefinition,
};
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
    /// Whether a block's matrices have only the values −γ, 0 and γ.
    pub ternary: bool,
    /// Slots of the memory that takes the place of attention, if it does: [`Arm::Gam`](crate::lm::Arm::Gam).
    pub memory_slots: Option<usize>,
    /// How the blocks between the first and the last one are repeated, if they are.
    pub recursion: Option<RecursionShape>,
    /// The softcap c of attention logits c tanh(z/c): [`Stabiliser::Softcap`].
    pub softcap: Option<f32>,
    /// Precision of products and attention.
    pub dtype: Dtype,
}

/// How the middle blocks of a model are repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct RecursionShape {
    /// Number of recursions R.
    pub recursions: usize,
    /// Which tokens take part.
    pub router: Router,
    /// Factor α of the gates.
    pub scale: f64,
    /// Coefficient of the router's loss.
    pub loss: f64,
    /// The keys and values to which they attend.
    pub keys: RecursionKeys,
    /// Whether the choice of tokens depends on no later token outside training.
    pub causal_validation: bool,
}

impl ModelShape {
    /// The name of the router's weights.
    pub(super) const ROUTER: &str = "router";

    /// The shape for a definition and a text whose vocabulary has `vocabulary_size` symbols.
    pub fn new(definition: &TrainDefinition, vocabulary_size: usize) -> Self {
        let softcap = definition.softcap as f32;
        let [scale, loss] = definition.router_scale_and_loss();
        let recursion = RecursionShape {
            recursions: definition.recursions,
            router: definition.router,
            scale,
            loss,
            keys: definition.recursion_keys,
            causal_validation: definition.causal_validation,
        };
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
            ternary: definition.ternary,
            memory_slots: (definition.arm == Arm::Gam).then_some(definition.memory_slots),
            recursion: (definition.recursions > 1).then_some(recursion),
            softcap: definition.has(Stabiliser::Softcap).then_some(softcap),
            dtype: definition.dtype,
        }
    }

    /// Number of blocks.
    pub fn layers(&self) -> usize {
        self.heads.len()
    }

    /// The block of each layer of the log of heads, in which a recursion of a block counts as a layer.
    pub(in crate::lm) fn logged_layers(&self) -> Vec<usize> {
        let repeats = self.recursion.as_ref().map_or(1, |recursion| recursion.recursions);
        let last = self.layers() - 1;
        let middle = (0..repeats).flat_map(|_| 1..last);
        std::iter::once(0).chain(middle).chain((last > 0).then_some(last)).collect()
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
}

/// A named variable.
pub(in crate::lm) struct Weight {
    pub(in crate::lm) name: String,
    pub(in crate::lm) variable: Var,
}

/// Initial values of a weight.
enum Start {
    Normal { deviation: f32 },
    Values(Vec<f32>),
}

/// Name, dimensions and initial values of a weight.
struct Plan {
    name: String,
    dimensions: Vec<usize>,
    start: Start,
}

/// Tokens that the convolution of a gated memory reads, its own included.
pub(super) const TAPS: usize = 3;

/// The matrices of a block: name, inputs and outputs. The heads have H·D channels together.
fn matrices(shape: &ModelShape) -> Vec<(&'static str, usize, usize)> {
    let c = shape.d_model;
    let of_heads = shape.d_head * shape.heads.first().map_or(0, Vec::len);
    let mixer = match shape.memory_slots {
        Some(slots) => vec![
            ("attention.convolution", TAPS, c),
            ("attention.memory", slots, c),
            ("attention.gate", c, 2 * c),
        ],
        None => vec![
            ("attention.query", c, of_heads),
            ("attention.key", c, of_heads),
            ("attention.value", c, of_heads),
            ("attention.output", of_heads, c),
        ],
    };
    [mixer, vec![("mlp.input", c, 4 * c), ("mlp.output", 4 * c, c)]].concat()
}

/// Deviation of the initial taps of a convolution of K tokens per channel: that of PyTorch, uniform within ±1/√K.
fn of_taps() -> f32 {
    1.0 / (3.0 * TAPS as f32).sqrt()
}

/// Ends the name of a vector v that is part of a model's state but not trained: power iteration on it gives the spectral norm
/// ‖Wv‖ of the matrix named before it.
pub(super) const SINGULAR_VECTOR: &str = ".singular_vector";

/// All weights and singular vectors of a model, in the order in which their initial values are drawn; normal values have
/// the standard deviation `normal`. Matrices are stored as inputs × outputs. Singular vectors start constant, of length 1.
fn plan(shape: &ModelShape, normal: f32) -> Vec<Plan> {
    let c = shape.d_model;
    // As in GPT-2, the projections that end on the residual stream are divided by the square root of
    // their number.
    let residual = normal / (2.0 * shape.logged_layers().len() as f32).sqrt();
    let matrix = |name: String, rows: usize, columns: usize, deviation: f32| Plan {
        name,
        dimensions: vec![rows, columns],
        start: Start::Normal { deviation },
    };
    let vector = |name: String, values: Vec<f32>| Plan {
        name,
        dimensions: vec![values.len()],
        start: Start::Values(values),
    };
    let gain = |name: String, size: usize| vector(name, vec![1.0; size]);
    let mut all = vec![matrix("token_embedding".into(), shape.vocabulary_size, c, normal)];
    if shape.positions == Positions::Learned {
        all.push(matrix("position_embedding".into(), shape.context, c, normal));
    }
    for layer in 0..shape.layers() {
        let name = |part: &str| format!("layers.{layer}.{part}");
        all.extend([gain(name("attention.norm"), c), gain(name("mlp.norm"), c)]);
        if shape.qk_norm {
            let norms = ["attention.query_norm", "attention.key_norm"];
            all.extend(norms.map(|norm| gain(name(norm), shape.d_head)));
        }
        if shape.slopes == Slopes::Learned {
            let slopes = Slopes::of_alibi(shape.heads[layer].len());
            all.push(vector(name("attention.slopes"), slopes));
        }
        for (part, inputs, outputs) in matrices(shape) {
            let deviation = match part {
                "attention.output" | "mlp.output" => residual,
                "attention.convolution" => of_taps(),
                _ => normal,
            };
            all.push(matrix(name(part), inputs, outputs, deviation));
            if shape.sigma_reparam {
                all.push(gain(name(&format!("{part}.gain")), 1));
                let unit = vec![1.0 / (outputs as f32).sqrt(); outputs];
                all.push(vector(name(&format!("{part}{SINGULAR_VECTOR}")), unit));
            }
        }
    }
    if let Some(of) = shape.recursion.as_ref().filter(|of| of.router != Router::None) {
        all.push(matrix(ModelShape::ROUTER.into(), c, of.recursions, normal));
    }
    all.push(gain("norm".into(), c));
    all
}

/// The trained weights of a model and, apart from them, its singular vectors, with the elements that `data` returns.
fn filled(
    shape: &ModelShape,
    deviation: f32,
    mut data: impl FnMut(&Plan) -> Result<Vec<f32>, LmError>,
) -> Result<[Vec<Weight>; 2], LmError> {
    let [mut weights, mut vectors] = [const { Vec::new() }; 2];
    for plan in plan(shape, deviation) {
        let variable = Var::from_vec(data(&plan)?, plan.dimensions, &Device::Cpu)?;
        let into = match plan.name.ends_with(SINGULAR_VECTOR) {
            true => &mut vectors,
            false => &mut weights,
        };
        into.push(Weight { name: plan.name, variable });
    }
    Ok([weights, vectors])
}

/// Draws the initial weights of a model from `seed`; normal values have the standard deviation `deviation`.
pub(super) fn initial(
    shape: &ModelShape,
    deviation: f64,
    seed: u64,
) -> Result<[Vec<Weight>; 2], LmError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    filled(shape, deviation as f32, |plan| {
        let mut normal = |deviation: f32| -> f32 {
            let x: f32 = StandardNormal.sample(&mut rng);
            x * deviation
        };
        Ok(match &plan.start {
            Start::Values(values) => values.clone(),
            Start::Normal { deviation } => {
                let count = plan.dimensions.iter().product();
                (0..count).map(|_| normal(*deviation)).collect()
            }
        })
    })
}

/// Reads the weights of a model of `shape` from a file.
pub(super) fn from_file(
    shape: &ModelShape,
    file: &SafetensorsFile,
) -> Result<[Vec<Weight>; 2], LmError> {
    // Only names and dimensions are used; no initial values are drawn.
    filled(shape, 0.0, |plan| file.tensor(&plan.name, &plan.dimensions))
}

/// The weight of this name.
pub(super) fn find<'w>(weights: &'w [Weight], name: &str) -> candle_core::Result<&'w Var> {
    match weights.iter().find(|weight| weight.name == name) {
        Some(weight) => Ok(&weight.variable),
        None => bail!("the model has no {name}"),
    }
}

/// A model's tensors by name.
pub(super) struct Tensors<'a> {
    pub(super) weights: &'a [Weight],
    pub(super) vectors: &'a [Weight],
}

impl Tensors<'_> {
    /// The weight of this name; fails if it is missing.
    pub(super) fn parameter(&self, name: &str) -> candle_core::Result<Parameter> {
        let index = self.weights.iter().position(|weight| weight.name == name);
        // Detached, so that the tensor library records no computations on it.
        Ok(Parameter { index, tensor: find(self.weights, name)?.as_detached_tensor() })
    }

    /// The singular vector of this name; fails if it is missing.
    pub(super) fn vector(&self, name: &str) -> candle_core::Result<Tensor> {
        Ok(find(self.vectors, name)?.as_detached_tensor())
    }
}

/// A weight that is trained, or fixed values in its place.
#[derive(Clone)]
pub(super) struct Parameter {
    /// The index among the model's weights; `None` if the values are fixed.
    pub(super) index: Option<usize>,
    /// Shares its storage with the variable that the optimiser updates.
    pub(super) tensor: Tensor,
}

/// The gradients of a model's weights computed so far.
pub(super) struct Gradients {
    pub(super) by_weight: Vec<Option<Tensor>>,
}

impl Gradients {
    /// Adds to the gradient of a weight; fixed values have none.
    pub(super) fn add(&mut self, of: &Parameter, gradient: Tensor) -> candle_core::Result<()> {
        let Some(index) = of.index else { return Ok(()) };
        let gradient = gradient.to_dtype(DType::F32)?;
        let so_far = &mut self.by_weight[index];
        *so_far = Some(plus(so_far.take(), gradient)?);
        Ok(())
    }
}

/// The backward pass of a block or of a part of it: maps the gradient of the residual stream after it to the gradient
/// before it. Gradients of weights are added to those passed in.
pub(super) type BlockPullback<'b> =
    Box<dyn FnOnce(Tensor, &mut Gradients) -> candle_core::Result<Tensor> + 'b>;

/// The forward pass of a block, of its mixer, or of the recursions of blocks.
pub(super) struct BlockPass {
    /// The residual stream after it.
    pub(super) x: Tensor,
    /// Statistics of its heads, (H, 3), by layer of the log.
    pub(super) statistics: Vec<Tensor>,
    pub(super) pullback: BlockPullback<'static>,
}
