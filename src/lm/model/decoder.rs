//! The decoder: embeddings, blocks and the last norm.

use candle_core::{DType, Result, Tensor, bail};

use super::block::Block;
use super::recursion::{Purpose, Recursion};
use super::weights::{BlockPass, Gradients, ModelShape, Parameter, Tensors};
use crate::lm::Positions;
use crate::lm::attention::HeadStatistics;
use crate::lm::operators::{
    NormPullback, Objective, Rotation, add_positions, embed, layer_norm, output_loss, tied_logits,
};

/// Token and position embeddings, the blocks, and the last norm.
pub(super) struct Decoder {
    context: usize,
    pub(super) token_embedding: Parameter,
    /// Position vectors that are added to the token vectors, (context, C), if any.
    positions: Option<Parameter>,
    pub(super) stages: Vec<Stage>,
    pub(super) norm: Parameter,
    dtype: DType,
}

/// A part of the decoder that the residual stream passes.
pub(super) enum Stage {
    Block(Block),
    Recursion(Recursion),
}

impl Stage {
    /// The forward pass, with the pass back.
    pub(super) fn forward(
        &self,
        x: &Tensor,
        sizes: (usize, usize),
        purpose: Purpose,
    ) -> Result<BlockPass> {
        match self {
            Self::Block(block) => block.forward(x, sizes),
            Self::Recursion(recursion) => recursion.forward(x, sizes.1, purpose),
        }
    }

    /// The block.
    ///
    /// # Errors
    /// Recursions.
    pub(super) fn block(&self) -> Result<&Block> {
        match self {
            Self::Block(block) => Ok(block),
            Self::Recursion(_) => {
                bail!("a model with recursions can only be trained and evaluated; name another")
            }
        }
    }
}

/// Maps the gradient of the first residual stream to those of the embeddings.
pub(super) type EmbeddingPullback = Box<dyn FnOnce(&Tensor, &mut Gradients) -> Result<()>>;

impl Decoder {
    pub(super) fn new(shape: &ModelShape, tensors: &Tensors) -> Result<Self> {
        let learned = shape.positions == Positions::Learned;
        let rotation = (shape.positions == Positions::Rope)
            .then(|| Rotation::new(shape.context, shape.d_head));
        let block = |layer: usize| Block::new(shape, layer, tensors, rotation.clone());
        let token_embedding = tensors.parameter("token_embedding")?;
        let fixed = shape.sinusoids(token_embedding.tensor.device())?;
        let positions = match learned {
            true => Some(tensors.parameter("position_embedding")?),
            false => fixed.map(|tensor| Parameter { index: None, tensor }),
        };
        let last = shape.layers() - 1;
        let stages = match &shape.recursion {
            None => {
                (0..=last).map(|layer| block(layer).map(Stage::Block)).collect::<Result<_>>()?
            }
            Some(recursion) => {
                let middle = (1..last).map(block).collect::<Result<_>>()?;
                let middle = Stage::Recursion(Recursion::new(recursion, middle, tensors)?);
                vec![Stage::Block(block(0)?), middle, Stage::Block(block(last)?)]
            }
        };
        Ok(Self {
            context: shape.context,
            token_embedding,
            positions,
            stages,
            norm: tensors.parameter("norm")?,
            dtype: shape.dtype.of_tensors(),
        })
    }

    /// The residual stream before the first block, (B·T, C), for ids (B, T) of sequences that start
    /// at position `first`. The backward pass is valid for `first` = 0 only.
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
            let here = positions.tensor.narrow(0, first, self.context - first)?;
            let (y, back) = add_positions(&x, &here, time)?;
            to_position = positions.index.map(|_| (positions.clone(), back));
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

    /// The hidden state, (B·T, C), that the last norm computes from the residual stream after the last block. Also returns
    /// the backward pass to the gradients of the stream and of the norm's gain.
    pub(super) fn after_blocks(&self, x: &Tensor) -> Result<(Tensor, NormPullback)> {
        layer_norm(x, &self.norm.tensor, self.dtype)
    }

    /// The output embedding, which is the token embedding: logits = hidden Eᵀ.
    pub(super) fn output_embedding(&self) -> Result<Tensor> {
        self.token_embedding.tensor.to_dtype(self.dtype)
    }
}

/// Output of a forward pass: the hidden state, from which logits follow, and statistics of the heads.
pub struct Forward {
    /// The residual stream after the last norm, (B·T, C), in the model's dtype.
    pub(super) hidden: Tensor,
    /// The token embedding E, (V, C), in that dtype; it is also the output embedding.
    pub(super) embedding: Tensor,
    /// Statistics of each layer's heads, (H, 3), with a layer per recursion.
    pub(super) statistics: Vec<Tensor>,
}

impl Forward {
    /// Statistics of each layer's heads.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub fn heads(&self) -> Result<Vec<Vec<HeadStatistics>>> {
        HeadStatistics::of_layers(&self.statistics)
    }

    /// The mean cross-entropy, in nats, of the targets, (B·T) of uint32, of the ids that were read.
    pub(in crate::lm) fn loss_of(&self, targets: &Tensor) -> Result<f64> {
        let found =
            output_loss(&self.hidden, &self.embedding, targets, Objective::CROSS_ENTROPY, false)?;
        found.cross_entropy.to_dtype(DType::F64)?.to_scalar()
    }

    /// The mean over each sequence of `time` tokens of the hidden state, (B, C), float32.
    pub(in crate::lm) fn mean_hidden(&self, time: usize) -> Result<Tensor> {
        let (rows, channels) = self.hidden.dims2()?;
        self.hidden.to_dtype(DType::F32)?.reshape((rows / time, time, channels))?.mean(1)
    }

    /// Logits of the next token, (B·T, V), float32.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub fn logits(&self) -> Result<Tensor> {
        tied_logits(&self.hidden, &self.embedding)?.to_dtype(DType::F32)
    }
}
