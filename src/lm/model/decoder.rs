//! The computation of a whole model, over weights that are variables or not.

use std::collections::HashMap;

use candle_core::{DType, Result, Tensor, bail};

use super::block::Block;
use super::{Forward, ModelShape};
use crate::lm::Positions;
use crate::lm::operators::{Rotation, add_positions, embed, layer_norm};

/// A model's tensors by name.
pub(super) struct Tensors<'a>(pub(super) HashMap<&'a str, Tensor>);

impl Tensors<'_> {
    /// A tensor that the model must have.
    pub(super) fn get(&self, name: &str) -> Result<Tensor> {
        match self.0.get(name) {
            Some(tensor) => Ok(tensor.clone()),
            None => bail!("the model has no weight {name}"),
        }
    }
}

/// Token and position, the blocks, the last norm.
pub(super) struct Decoder {
    context: usize,
    token_embedding: Tensor,
    position_embedding: Option<Tensor>,
    pub(super) blocks: Vec<Block>,
    norm: Tensor,
    dtype: DType,
}

impl Decoder {
    pub(super) fn new(shape: &ModelShape, tensors: &Tensors) -> Result<Self> {
        let learned = shape.positions == Positions::Learned;
        let rotation = (shape.positions == Positions::Rope)
            .then(|| Rotation::new(shape.context, shape.d_head()));
        let block = |layer: usize| Block::new(shape, layer, tensors, rotation.clone());
        Ok(Self {
            context: shape.context,
            token_embedding: tensors.get("token_embedding")?,
            position_embedding: learned.then(|| tensors.get("position_embedding")).transpose()?,
            blocks: (0..shape.layers()).map(block).collect::<Result<_>>()?,
            norm: tensors.get("norm")?,
            dtype: shape.dtype.of_tensors(),
        })
    }

    /// The residual stream before the first block, (B·T, C), for ids (B, T) of sequences that begin
    /// at position `first`.
    pub(super) fn embed(&self, ids: &Tensor, first: usize) -> Result<Tensor> {
        let (_, time) = ids.dims2()?;
        if first + time > self.context {
            let tokens = first + time;
            bail!("a window of {tokens} tokens, but the model has {} positions", self.context);
        }
        let x = embed(&self.token_embedding, ids)?;
        match &self.position_embedding {
            Some(positions) => add_positions(&x, &positions.narrow(0, first, time)?, time),
            None => Ok(x),
        }
    }

    pub(super) fn forward(&self, ids: &Tensor) -> Result<Forward> {
        let sizes = ids.dims2()?;
        let mut x = self.embed(ids, 0)?;
        let mut statistics = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let (after, heads) = block.forward(&x, sizes)?;
            statistics.push(heads);
            x = after;
        }
        self.after_blocks(&x, statistics)
    }

    /// What the residual stream after the last block, (B·T, C), gives.
    pub(super) fn after_blocks(&self, x: &Tensor, statistics: Vec<Tensor>) -> Result<Forward> {
        let hidden = layer_norm(x, &self.norm, self.dtype)?;
        // The output embedding is the token embedding: logits = x Eᵀ.
        Ok(Forward { hidden, embedding: self.token_embedding.clone(), statistics })
    }
}
