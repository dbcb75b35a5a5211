//! One decoder block: a mixer of tokens, then an MLP, each after a norm and added to the residual stream.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor, bail};

use super::gated_memory::GatedMemory;
use super::projection::Projection;
use super::self_attention::SelfAttention;
use super::weights::{BlockPass, BlockPullback, Gradients, ModelShape, Parameter, Tensors};
use crate::lm::operators::{Rotation, add_mlp, layer_norm};

pub(super) struct Block {
    /// Dtype of the inputs and outputs of products; the residual stream is float32.
    dtype: DType,
    pub(super) mixer: Mixer,
    norm: Parameter,
    mlp_input: Projection,
    mlp_output: Projection,
}

/// What moves information between tokens.
pub(super) enum Mixer {
    Attention(Box<SelfAttention>),
    GatedMemory(GatedMemory),
}

impl Block {
    /// Block `layer` of a model.
    pub(super) fn new(
        shape: &ModelShape,
        layer: usize,
        tensors: &Tensors,
        rotation: Option<Arc<Rotation>>,
    ) -> Result<Self> {
        let projection =
            |part: &str| Projection::new(shape, &format!("layers.{layer}.mlp.{part}"), tensors);
        let mixer = match shape.memory_slots {
            Some(_) => Mixer::GatedMemory(GatedMemory::new(shape, layer, tensors)?),
            None => {
                let attention = SelfAttention::new(shape, layer, tensors, rotation)?;
                Mixer::Attention(Box::new(attention))
            }
        };
        Ok(Self {
            dtype: shape.dtype.of_tensors(),
            mixer,
            norm: tensors.parameter(&format!("layers.{layer}.mlp.norm"))?,
            mlp_input: projection("input")?,
            mlp_output: projection("output")?,
        })
    }

    /// The block's attention.
    ///
    /// # Errors
    /// Another mixer.
    pub(super) fn attention(&self) -> Result<&SelfAttention> {
        match &self.mixer {
            Mixer::Attention(attention) => Ok(attention),
            Mixer::GatedMemory(_) => bail!("a model of arm gam has no queries and keys"),
        }
    }

    /// The forward pass of a block, with the pass back.
    pub(super) fn forward(&self, x: &Tensor, sizes: (usize, usize)) -> Result<BlockPass> {
        self.then_mlp(match &self.mixer {
            Mixer::Attention(attention) => attention.forward(x, sizes)?,
            Mixer::GatedMemory(memory) => memory.forward(x, sizes)?,
        })
    }

    /// The forward pass of a block whose mixer has been applied.
    pub(super) fn then_mlp(&self, mixed: BlockPass) -> Result<BlockPass> {
        let BlockPass { x, statistics, pullback } = mixed;
        let (x, to_mixed) = self.add_mlp(&x)?;
        let back = move |gradient: Tensor, gradients: &mut Gradients| {
            pullback(to_mixed(gradient, gradients)?, gradients)
        };
        Ok(BlockPass { x, statistics, pullback: Box::new(back) })
    }

    /// The residual stream after the block, given the stream `x` after its mixer. Also returns the backward pass.
    pub(super) fn add_mlp(&self, x: &Tensor) -> Result<(Tensor, BlockPullback<'static>)> {
        let (gain, dtype) = (self.norm.clone(), self.dtype);
        let (normed, to_norm) = layer_norm(x, &gain.tensor, dtype)?;
        let (input, output) = (self.mlp_input.factor()?, self.mlp_output.factor()?);
        let (x, to_mlp) = add_mlp(x, &normed, &input.matrix, &output.matrix)?;
        let back = move |gradient: Tensor, gradients: &mut Gradients| {
            let [d_normed, d_input, d_output] = to_mlp(&gradient.to_dtype(dtype)?)?;
            (input.pullback)(d_input, gradients)?;
            (output.pullback)(d_output, gradients)?;
            // The residual stream also bypasses the MLP.
            let [gradient, d_gain] = to_norm(&d_normed, Some(&gradient))?;
            gradients.add(&gain, d_gain)?;
            Ok(gradient)
        };
        Ok((x, Box::new(back)))
    }
}
