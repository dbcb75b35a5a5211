//! The language model: a GPT-2-style decoder without biases.
//!
//! Shapes: B sequences of T tokens, V symbols, C = d_model channels, H heads of D = C/H channels.
//! Activations are (B·T, C) matrices throughout.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use candle_core::{Result, Tensor, bail};

use super::attention::attention;
use super::operators::{Stored, cross_entropy, embed, gelu, layer_norm, linear};
use super::weights::{self, Weight};
use super::{LmError, TrainDefinition};
use crate::blas::single_threaded_blas;
use crate::target::HeadKind;

/// The sizes of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelShape {
    /// Symbols: V.
    pub vocabulary_size: usize,
    /// The longest sequence: the model has so many positions.
    pub context: usize,
    /// Decoder blocks.
    pub layers: usize,
    /// Channels: C, a multiple of the number of heads.
    pub d_model: usize,
    /// What each head of a layer sees; the same in every layer.
    pub heads: Vec<HeadKind>,
}

impl ModelShape {
    /// The shape that a definition asks for, with a vocabulary of `vocabulary_size` symbols.
    pub fn new(definition: &TrainDefinition, vocabulary_size: usize) -> Self {
        Self {
            vocabulary_size,
            context: definition.context,
            layers: definition.layers,
            d_model: definition.d_model,
            heads: definition.head_kinds(),
        }
    }
}

/// One head's logits in one forward pass, over the batch and all visible pairs; logits are taken
/// after the 1/√d and are in nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadStatistics {
    /// The largest logit.
    pub max_logit: f32,
    /// The smallest logit.
    pub min_logit: f32,
    /// Mean over rows of −Σ p ln p, in nats.
    pub entropy_nats: f32,
}

impl HeadStatistics {
    /// The statistics of no pairs at all.
    pub(super) const EMPTY: Self =
        Self { max_logit: f32::NEG_INFINITY, min_logit: f32::INFINITY, entropy_nats: 0.0 };

    /// The largest absolute logit.
    pub fn max_abs_logit(&self) -> f32 {
        self.max_logit.max(-self.min_logit)
    }
}

/// What a forward pass gives.
pub struct Forward {
    /// Logits of the next token, (B·T, V).
    pub logits: Tensor,
    /// Each layer's heads.
    pub heads: Vec<Vec<HeadStatistics>>,
}

impl Forward {
    /// The mean cross-entropy against the tokens that came next, (B·T) of uint32, in nats.
    ///
    /// # Errors
    /// A number of targets other than B·T, or a target of V or more.
    pub fn loss(&self, targets: &Tensor) -> Result<Tensor> {
        cross_entropy(&self.logits, &targets.flatten_all()?)
    }
}

/// A decoder and its weights.
pub struct Model {
    shape: ModelShape,
    weights: Vec<Weight>,
    decoder: Decoder,
    /// The same weights without a record of what is computed from them.
    frozen: Decoder,
}

impl Model {
    /// A model at its start, every weight drawn from `seed`: normal with standard deviation
    /// `deviation` (0.02 in GPT-2), the two projections of a block that end on the residual stream
    /// with deviation/√(2·layers), gains 1.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn new(shape: ModelShape, deviation: f64, seed: u64) -> std::result::Result<Self, LmError> {
        let weights = weights::initial(&shape, deviation, seed)?;
        Self::with_weights(shape, weights)
    }

    /// Reads a model that [`Self::save`] wrote.
    ///
    /// # Errors
    /// A file that cannot be read, is not safetensors, or lacks a weight of this shape.
    pub fn load(shape: ModelShape, path: &Path) -> std::result::Result<Self, LmError> {
        let weights = weights::load(&shape, path)?;
        Self::with_weights(shape, weights)
    }

    fn with_weights(shape: ModelShape, weights: Vec<Weight>) -> std::result::Result<Self, LmError> {
        single_threaded_blas();
        let tracked = weights.iter().map(|weight| (&*weight.name, weight.variable.as_tensor()));
        let tracked: HashMap<&str, Tensor> = tracked.map(|(name, x)| (name, x.clone())).collect();
        let detached = tracked.iter().map(|(name, x)| (*name, x.detach())).collect();
        let decoder = Decoder::new(&shape, &tracked)?;
        let frozen = Decoder::new(&shape, &detached)?;
        Ok(Self { shape, weights, decoder, frozen })
    }

    /// Writes the weights as safetensors, whole or not at all: `token_embedding` (V, C),
    /// `position_embedding` (context, C), for each layer `layers.N.attention.` `norm` (C), `query`,
    /// `key`, `value`, `output` (C, C) and `layers.N.mlp.` `norm` (C), `input` (C, 4C), `output`
    /// (4C, C), then `norm` (C). Matrices are inputs × outputs, so y = x W; heads lie side by side
    /// in the outputs of `query`, `key` and `value`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self, path: &Path) -> std::result::Result<(), LmError> {
        weights::save(&self.weights, path)
    }

    /// The model's sizes.
    pub fn shape(&self) -> &ModelShape {
        &self.shape
    }

    /// The model's trained numbers.
    pub fn parameters(&self) -> usize {
        self.weights.iter().map(|weight| weight.variable.elem_count()).sum()
    }

    /// The weights, for the optimiser.
    pub(super) fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// Next-token logits for `ids`, (B, T) of uint32, with gradients to the weights.
    ///
    /// # Errors
    /// T above the context, or an id of V or more.
    pub fn forward(&self, ids: &Tensor) -> Result<Forward> {
        self.decoder.forward(ids)
    }

    /// As [`Self::forward`], without gradients and what they cost.
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub fn predict(&self, ids: &Tensor) -> Result<Forward> {
        self.frozen.forward(ids)
    }
}

/// The computation, over weights that are variables or not.
struct Decoder {
    token_embedding: Tensor,
    position_embedding: Tensor,
    blocks: Vec<Block>,
    norm: Tensor,
}

struct Block {
    attention_norm: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_output: Tensor,
    mlp_norm: Tensor,
    mlp_input: Tensor,
    mlp_output: Tensor,
    heads: Arc<[HeadKind]>,
}

impl Decoder {
    fn new(shape: &ModelShape, weights: &HashMap<&str, Tensor>) -> Result<Self> {
        let get = |name: String| match weights.get(&*name) {
            Some(tensor) => Ok(tensor.clone()),
            None => bail!("the model has no weight {name}"),
        };
        let heads: Arc<[HeadKind]> = shape.heads.as_slice().into();
        let block = |layer: usize| {
            let get = |part: &str| get(format!("layers.{layer}.{part}"));
            Ok(Block {
                attention_norm: get("attention.norm")?,
                query: get("attention.query")?,
                key: get("attention.key")?,
                value: get("attention.value")?,
                attention_output: get("attention.output")?,
                mlp_norm: get("mlp.norm")?,
                mlp_input: get("mlp.input")?,
                mlp_output: get("mlp.output")?,
                heads: heads.clone(),
            })
        };
        Ok(Self {
            token_embedding: get("token_embedding".into())?,
            position_embedding: get("position_embedding".into())?,
            blocks: (0..shape.layers).map(block).collect::<Result<_>>()?,
            norm: get("norm".into())?,
        })
    }

    fn forward(&self, ids: &Tensor) -> Result<Forward> {
        let (b, t) = ids.dims2()?;
        let mut x = embed(&self.token_embedding, &self.position_embedding, ids)?;
        let mut heads = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let (attended, statistics) = block.attend(&x, (b, t))?;
            heads.push(statistics);
            x = (x + attended)?;
            x = (&x + block.think(&x)?)?;
        }
        let x = layer_norm(&x, &self.norm)?;
        // The output embedding is the token embedding: logits = x Eᵀ.
        let logits = linear(&x, &self.token_embedding, Stored::OutputsByInputs)?;
        Ok(Forward { logits, heads })
    }
}

impl Block {
    /// What attention adds to the residual stream, and its heads' statistics.
    fn attend(&self, x: &Tensor, (b, t): (usize, usize)) -> Result<(Tensor, Vec<HeadStatistics>)> {
        let (bt, c) = x.dims2()?;
        let h = self.heads.len();
        let x = layer_norm(x, &self.attention_norm)?;
        let by_head = |weight: &Tensor| project(&x, weight)?.reshape((b, t, h, c / h));
        let (q, k, v) = (by_head(&self.query)?, by_head(&self.key)?, by_head(&self.value)?);
        let (y, statistics) = attention(&q, &k, &v, &self.heads)?;
        Ok((project(&y.reshape((bt, c))?, &self.attention_output)?, statistics))
    }

    /// What the MLP adds to the residual stream.
    fn think(&self, x: &Tensor) -> Result<Tensor> {
        let hidden = project(&layer_norm(x, &self.mlp_norm)?, &self.mlp_input)?;
        project(&gelu(&hidden)?, &self.mlp_output)
    }
}

/// x W.
fn project(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    linear(x, weight, Stored::InputsByOutputs)
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    fn small() -> Model {
        let shape = ModelShape {
            vocabulary_size: 19,
            context: 40,
            layers: 2,
            d_model: 24,
            heads: vec![HeadKind::Global, HeadKind::Local { window: 5 }, HeadKind::Global],
        };
        Model::new(shape, 0.02, 7).unwrap()
    }

    fn text(model: &Model) -> (Tensor, Tensor) {
        let (b, t, v) = (3, model.shape.context, model.shape.vocabulary_size as u32);
        let tokens = |shift: u32| (0..(b * t) as u32).map(|i| (i * i + shift) % v).collect();
        (
            Tensor::from_vec(tokens(0), (b, t), &Device::Cpu).unwrap(),
            Tensor::from_vec(tokens(5), b * t, &Device::Cpu).unwrap(),
        )
    }

    #[test]
    fn every_weight_gets_a_gradient() {
        let model = small();
        let (ids, targets) = text(&model);
        let loss = model.forward(&ids).unwrap().loss(&targets).unwrap();
        let gradients = loss.backward().unwrap();
        for weight in &model.weights {
            let gradient = gradients.get(&weight.variable).expect(&weight.name);
            let size = gradient.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
            assert!(size > 0.0, "{} has a gradient of zero", weight.name);
        }
    }

    #[test]
    fn the_gradient_of_each_weight_is_the_slope_of_the_loss() {
        let model = small();
        let (ids, targets) = text(&model);
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        // At the start most gradients are tiny; larger weights make slopes that float32 resolves.
        for weight in &model.weights {
            let scaled = (weight.variable.as_tensor() * 4.0).unwrap();
            weight.variable.set(&scaled).unwrap();
        }
        let gradients = model.forward(&ids).unwrap().loss(&targets).unwrap().backward().unwrap();
        for weight in &model.weights {
            let start = weight.variable.copy().unwrap();
            let normals: Vec<f32> =
                (0..start.elem_count()).map(|_| StandardNormal.sample(&mut rng)).collect();
            let direction = Tensor::from_vec(normals, start.shape(), &Device::Cpu).unwrap();
            let gradient = gradients.get(&weight.variable).unwrap();
            // Along the gradient the slope is its own norm; the random part tests the rest.
            let norm = |x: &Tensor| {
                f64::from(x.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap()).sqrt()
            };
            let along = (gradient * (1.0 / norm(gradient))).unwrap();
            let aside = (&direction * (0.5 / norm(&direction))).unwrap();
            let direction = (along + aside).unwrap();
            // A change of the loss by a few thousandths: small against its curvature, large
            // against float32's rounding.
            let step = 4e-3 / norm(gradient);
            let loss_at = |step: f64| {
                weight.variable.set(&(&start + (&direction * step).unwrap()).unwrap()).unwrap();
                let loss = model.predict(&ids).unwrap().loss(&targets).unwrap();
                f64::from(loss.to_scalar::<f32>().unwrap())
            };
            let slope = (loss_at(step) - loss_at(-step)) / (2.0 * step);
            weight.variable.set(&start).unwrap();
            let product = (gradient * &direction).unwrap().sum_all().unwrap();
            let product = f64::from(product.to_scalar::<f32>().unwrap());
            assert!(
                (slope - product).abs() < 0.02 * product.abs() + 2e-4,
                "{}: {slope} against {product}",
                weight.name
            );
        }
    }

    #[test]
    fn a_token_does_not_see_the_ones_after_it() {
        let model = small();
        let (ids, _) = text(&model);
        let (b, t) = ids.dims2().unwrap();
        let changed: Vec<u32> = ids
            .flatten_all()
            .unwrap()
            .to_vec1::<u32>()
            .unwrap()
            .into_iter()
            .enumerate()
            .map(|(i, id)| if i % t >= 30 { (id + 1) % 19 } else { id })
            .collect();
        let changed = Tensor::from_vec(changed, (b, t), &Device::Cpu).unwrap();
        let logits = |ids: &Tensor| {
            let logits = model.predict(ids).unwrap().logits.reshape((b, t, 19)).unwrap();
            logits.narrow(1, 0, 30).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        assert!(logits(&ids) == logits(&changed), "an earlier token's logits changed");
    }

    #[test]
    fn a_saved_model_reads_back_and_another_shape_is_refused() {
        let model = small();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        model.save(&path).unwrap();
        let (ids, _) = text(&model);
        let logits = |model: &Model| {
            model.predict(&ids).unwrap().logits.flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        let again = Model::load(model.shape.clone(), &path).unwrap();
        assert_eq!(logits(&again), logits(&model));
        let other = ModelShape { d_model: 48, ..model.shape.clone() };
        let Err(error) = Model::load(other, &path) else { panic!("another shape was accepted") };
        assert!(error.to_string().contains("token_embedding"), "{error}");
        assert!(Model::load(model.shape.clone(), &folder.path().join("none")).is_err());
    }
}
