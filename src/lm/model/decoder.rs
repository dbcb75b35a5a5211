//! The computation of a whole model.

use candle_core::{DType, Result, Tensor, bail};

use super::block::Block;
use super::forward::Forward;
use super::parameters::{Gradients, Parameter, Tensors, Values};
use super::shape::ModelShape;
use crate::lm::Positions;
use crate::lm::operators::{NormPullback, Rotation, add_positions, embed, layer_norm};

/// Token and position, the blocks, the last norm.
pub(super) struct Decoder {
    context: usize,
    pub(super) token_embedding: Parameter,
    /// What is added to the tokens' vectors, (context, C).
    positions: Option<Values>,
    pub(super) blocks: Vec<Block>,
    pub(super) norm: Parameter,
    dtype: DType,
}

/// From the gradient of the first residual stream to those of the embeddings.
pub(super) type EmbeddingPullback = Box<dyn FnOnce(&Tensor, &mut Gradients) -> Result<()>>;

impl Decoder {
    pub(super) fn new(shape: &ModelShape, tensors: &Tensors) -> Result<Self> {
        let learned = shape.positions == Positions::Learned;
        let rotation = (shape.positions == Positions::Rope)
            .then(|| Rotation::new(shape.context, shape.d_head()));
        let block = |layer: usize| Block::new(shape, layer, tensors, rotation.clone());
        let token_embedding = tensors.parameter("token_embedding")?;
        let fixed = shape.sinusoids(token_embedding.tensor.device())?;
        let positions = match learned {
            true => Some(Values::Trained(tensors.parameter("position_embedding")?)),
            false => fixed.map(Values::Fixed),
        };
        Ok(Self {
            context: shape.context,
            token_embedding,
            positions,
            blocks: (0..shape.layers()).map(block).collect::<Result<_>>()?,
            norm: tensors.parameter("norm")?,
            dtype: shape.dtype.of_tensors(),
        })
    }

    /// The residual stream before the first block, (B·T, C), for ids (B, T) of sequences that begin
    /// at position `first`; the way back is for those that begin at 0.
    pub(super) fn embed(&self, ids: &Tensor, first: usize) -> Result<(Tensor, EmbeddingPullback)> {
        let (_, time) = ids.dims2()?;
        if first + time > self.context {
            let tokens = first + time;
            bail!("a window of {tokens} tokens, but the model has {} positions", self.context);
        }
        let token = self.token_embedding.clone();
        let (mut x, to_token) = embed(&token.tensor, ids)?;
        let mut to_position = None;
        if let Some(positions) = &self.positions {
            let here = positions.tensor().narrow(0, first, self.context - first)?;
            let (y, back) = add_positions(&x, &here, time)?;
            to_position = positions.trained().map(|position| (position.clone(), back));
            x = y;
        }
        let back = move |gradient: &Tensor, gradients: &mut Gradients| {
            if let Some((position, to_position)) = to_position {
                let [d_position] = to_position(gradient)?;
                gradients.add(&position, d_position)?;
            }
            let [d_token] = to_token(gradient)?;
            gradients.add(&token, d_token)
        };
        Ok((x, Box::new(back)))
    }

    pub(super) fn forward(&self, ids: &Tensor) -> Result<Forward> {
        let sizes = ids.dims2()?;
        let (mut x, _) = self.embed(ids, 0)?;
        let mut statistics = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let pass = block.forward(&x, sizes)?;
            statistics.push(pass.statistics);
            x = pass.x;
        }
        let (hidden, _) = self.after_blocks(&x)?;
        Ok(Forward { hidden, embedding: self.output_embedding()?, statistics })
    }

    /// The hidden state that the residual stream after the last block gives, (B·T, C), and the way back, to the
    /// gradients of the stream and of the norm's gain.
    pub(super) fn after_blocks(&self, x: &Tensor) -> Result<(Tensor, NormPullback)> {
        layer_norm(x, &self.norm.tensor, self.dtype)
    }

    /// The output embedding, which is the token embedding: logits = hidden Eᵀ.
    pub(super) fn output_embedding(&self) -> Result<Tensor> {
        self.token_embedding.tensor.to_dtype(self.dtype)
    }
}
