//! Common parts of all published models, and the forward pass that probes their heads.

use std::ops::{ControlFlow, Range};

use ndarray::{Array1, Array2, Ix2, s};

use super::attention::Attention;
use super::layers::{Mlp, Norm};
use super::stored::Stored;
use crate::lm::{Attend, HeadsOfLayer, LmError};
use crate::numerics::product;

/// A transformer of C channels.
pub(super) struct Transformer {
    pub(super) embedding: Embedding,
    pub(super) blocks: Vec<Block>,
    /// The longest supported passage.
    pub(super) context: usize,
    /// The output layer; `None` if the files have none.
    pub(super) output: Option<Output>,
}

/// The logits of the next token: s N(x) Eᵀ for the residual stream x after the last block, then c tanh(·/c) with a softcap c.
pub(super) struct Output {
    /// N.
    pub(super) norm: Norm,
    /// E, (V, C).
    pub(super) weights: Stored,
    /// s.
    pub(super) scale: f32,
    /// c.
    pub(super) softcap: Option<f32>,
}

/// Embeddings at the start of the residual stream.
pub(super) struct Embedding {
    /// Token embeddings, (V, C).
    pub(super) tokens: Stored,
    /// Factor of the token embeddings.
    pub(super) scale: f32,
    /// Learned position embeddings, (·, C), if any, and the row of the first token.
    pub(super) positions: Option<(Stored, usize)>,
    /// A vector added at every position, if any.
    pub(super) shift: Option<Array1<f32>>,
    /// The norm of the sum, if any.
    pub(super) norm: Option<Norm>,
}

/// Attention A, MLP M and their norms.
pub(super) struct Block {
    pub(super) attention: Attention,
    pub(super) mlp: Mlp,
    pub(super) norms: [Norms; 2],
    /// Whether the MLP reads the same residual stream as attention rather than the stream after attention.
    pub(super) parallel: bool,
    /// Factor of what attention and MLP add to the residual stream.
    pub(super) residual: f32,
}

/// Norms of a part f of a block with residual stream x: x ← of_sum(x + after(f(before(x)))); each is optional.
#[derive(Default)]
pub(super) struct Norms {
    pub(super) before: Option<Norm>,
    pub(super) after: Option<Norm>,
    pub(super) of_sum: Option<Norm>,
}

fn normed(norm: Option<&Norm>, x: Array2<f32>) -> Array2<f32> {
    match norm {
        Some(norm) => norm.of(x),
        None => x,
    }
}

impl Transformer {
    /// Number of token embeddings.
    pub(super) fn vocabulary(&self) -> usize {
        self.embedding.tokens.dimensions()[0]
    }

    /// Mean cross-entropy in nats of a passage's tokens after the first; see [`Probed`](crate::lm::Probed).
    pub(super) fn passage_loss(
        &self,
        passage: &[u32],
        attend: &mut Attend<'_>,
    ) -> Result<f64, LmError> {
        let Some(next @ [_, ..]) = passage.get(1..) else {
            return Err(LmError::too_few("the passage", passage.len(), 2, "tokens"));
        };
        let output = self.output.as_ref().ok_or_else(LmError::no_loss)?;
        // One layer more than there are, so that no layer is the last.
        let layers = 0..self.blocks.len() + 1;
        let all = &mut |_| ControlFlow::Continue(());
        let x = self.probe(&[passage.to_vec()], layers, attend, all)?;
        let hidden = output.norm.of(x.slice(s![..next.len(), ..]).to_owned());
        let mut z = product(hidden.view(), output.weights.whole::<Ix2>()?.t()) * output.scale;
        if let Some(cap) = output.softcap {
            z.mapv_inplace(|z| cap * (z / cap).tanh());
        }
        let losses = z.rows().into_iter().zip(next).map(|(z, &token)| {
            let most = z.fold(f32::NEG_INFINITY, |most, &z| most.max(z));
            let sum: f64 = z.iter().map(|&z| f64::from(z - most).exp()).sum();
            sum.ln() - f64::from(z[token as usize] - most)
        });
        Ok(losses.sum::<f64>() / next.len() as f64)
    }

    /// Probes the heads of some layers, whose attention `attend` may replace; see [`Probed`](crate::lm::Probed). Returns the
    /// residual stream where it ended, with the rows of all passages concatenated.
    pub(super) fn probe(
        &self,
        passages: &[Vec<u32>],
        layers: Range<usize>,
        attend: &mut Attend<'_>,
        each: &mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>,
    ) -> Result<Array2<f32>, LmError> {
        let lengths: Vec<usize> = passages.iter().map(Vec::len).collect();
        if let Some(&found) = lengths.iter().find(|&&t| t == 0 || t > self.context) {
            return Err(LmError::Refused(format!(
                "the passage has {found} tokens; it must have 1 to {}, the model's context",
                self.context
            )));
        }
        let mut x = self.embed(passages)?;
        for (layer, block) in self.blocks.iter().enumerate().take(layers.end) {
            let [of_attention, of_mlp] = &block.norms;
            let input = normed(of_attention.before.as_ref(), x.clone());
            let probed = layers.contains(&layer);
            let (added, probes) = block.attention.of(layer, &input, &lengths, probed, attend)?;
            if probed && each(probes).is_break() || layer + 1 == layers.end {
                return Ok(x);
            }
            let read_by_both = block.parallel.then(|| x.clone());
            x += &(normed(of_attention.after.as_ref(), added) * block.residual);
            x = normed(of_attention.of_sum.as_ref(), x);
            let read = read_by_both.unwrap_or_else(|| x.clone());
            let added = block.mlp.of(&normed(of_mlp.before.as_ref(), read))?;
            x += &(normed(of_mlp.after.as_ref(), added) * block.residual);
            x = normed(of_mlp.of_sum.as_ref(), x);
        }
        Ok(x)
    }

    /// The residual stream before the first block, with the rows of all passages concatenated.
    fn embed(&self, passages: &[Vec<u32>]) -> Result<Array2<f32>, LmError> {
        let Embedding { tokens, scale, positions, shift, norm } = &self.embedding;
        let size = self.vocabulary();
        let row = |&token: &u32| match usize::try_from(token) {
            Ok(place) if place < size => Ok(place),
            _ => Err(LmError::Refused(format!(
                "token {token} is outside the model's vocabulary of {size}; use the tokenizer.json published \
                 with the model"
            ))),
        };
        let rows = passages.iter().flatten().map(row).collect::<Result<Vec<_>, _>>()?;
        let mut x = tokens.rows(&rows)? * *scale;
        if let Some((positions, skipped)) = positions {
            let positions = positions.whole::<Ix2>()?;
            let positions = positions.slice(s![*skipped.., ..]);
            let mut first = 0;
            for passage in passages {
                let t = passage.len();
                let mut of_passage = x.slice_mut(s![first..first + t, ..]);
                of_passage += &positions.slice(s![..t, ..]);
                first += t;
            }
        }
        if let Some(shift) = shift {
            x += shift;
        }
        Ok(normed(norm.as_ref(), x))
    }
}
