//! The language model: a GPT-2-style decoder without biases.
//!
//! Shapes: B sequences of T tokens, V symbols, C = d_model channels, H heads of D = C/H channels.
//! Activations are (B·T, C) matrices throughout.

mod probe;
#[cfg(test)]
mod tests;

pub use probe::HeadProbe;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use candle_core::{Result, Tensor, bail};

use super::attention::attention;
use super::definition::require;
use super::operators::{Stored, cross_entropy, embed, gelu, layer_norm, linear};
use super::tensor_file::{self, TensorFile};
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

    /// Refuses sizes that no attention can be computed with.
    fn check(&self) -> std::result::Result<(), LmError> {
        let heads = self.heads.len();
        require(heads >= 1, "heads", heads, "must be at least 1")?;
        let why = format!("must be a multiple of heads = {heads}");
        require(self.d_model.is_multiple_of(heads), "d_model", self.d_model, &why)?;
        let blind = self.heads.contains(&HeadKind::Local { window: 0 });
        require(!blind, "window", 0, "must be at least 1")
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
    /// No heads, a head that sees nothing, or a d_model that the heads do not divide.
    pub fn new(shape: ModelShape, deviation: f64, seed: u64) -> std::result::Result<Self, LmError> {
        shape.check()?;
        let weights = weights::initial(&shape, deviation, seed)?;
        Self::with_weights(shape, weights)
    }

    /// Reads a model that [`Self::save`] wrote.
    ///
    /// # Errors
    /// A file that cannot be read, is not safetensors, or lacks a weight of this shape.
    pub fn load(shape: ModelShape, path: &Path) -> std::result::Result<Self, LmError> {
        Self::from_file(shape, &mut TensorFile::read(path)?)
    }

    /// A model out of a file that may hold more.
    pub(super) fn from_file(
        shape: ModelShape,
        file: &mut TensorFile,
    ) -> std::result::Result<Self, LmError> {
        shape.check()?;
        let weights = weights::from_file(&shape, file)?;
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
        tensor_file::write(path, &weights::named(&self.weights)?, HashMap::new())
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

    fn embed(&self, ids: &Tensor) -> Result<Tensor> {
        embed(&self.token_embedding, &self.position_embedding, ids)
    }

    fn forward(&self, ids: &Tensor) -> Result<Forward> {
        let sizes = ids.dims2()?;
        let mut x = self.embed(ids)?;
        let mut heads = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let (after, statistics) = block.forward(&x, sizes)?;
            heads.push(statistics);
            x = after;
        }
        let x = layer_norm(&x, &self.norm)?;
        // The output embedding is the token embedding: logits = x Eᵀ.
        let logits = linear(&x, &self.token_embedding, Stored::OutputsByInputs)?;
        Ok(Forward { logits, heads })
    }
}

impl Block {
    /// The residual stream after the block, and its heads' statistics.
    fn forward(&self, x: &Tensor, sizes: (usize, usize)) -> Result<(Tensor, Vec<HeadStatistics>)> {
        let (attended, statistics) = self.attend(x, sizes)?;
        let x = (x + attended)?;
        Ok(((&x + self.think(&x)?)?, statistics))
    }

    /// Queries, keys and values, (B, T, H, D) each.
    fn heads_of(&self, x: &Tensor, (b, t): (usize, usize)) -> Result<[Tensor; 3]> {
        let (_, c) = x.dims2()?;
        let h = self.heads.len();
        let x = layer_norm(x, &self.attention_norm)?;
        let by_head = |weight: &Tensor| project(&x, weight)?.reshape((b, t, h, c / h));
        Ok([by_head(&self.query)?, by_head(&self.key)?, by_head(&self.value)?])
    }

    /// What attention adds to the residual stream, and its heads' statistics.
    fn attend(&self, x: &Tensor, (b, t): (usize, usize)) -> Result<(Tensor, Vec<HeadStatistics>)> {
        let (bt, c) = x.dims2()?;
        let [q, k, v] = self.heads_of(x, (b, t))?;
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
