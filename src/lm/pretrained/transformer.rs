//! Common parts of all published models, and the forward pass that probes their heads.

use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

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
    pub(super) kept: Kept,
}

/// Residual streams where the last probes of some passages began, so that the probes of a later layer need not compute all blocks
/// before it: the heads of a model are probed layer by layer, in time linear in the number of layers.
#[derive(Default)]
pub(super) struct Kept(Mutex<Vec<KeptStream>>);

struct KeptStream {
    passages: Vec<Vec<u32>>,
    /// The block that reads it.
    layer: usize,
    stream: Array2<f32>,
}

/// The most numbers that all kept streams hold: 256 MiB.
const MOST_KEPT: usize = 1 << 26;

impl Kept {
    /// The stream of `passages` closest before block `layer`, and the block that reads it.
    fn before(&self, layer: usize, passages: &[Vec<u32>]) -> Option<(usize, Array2<f32>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|kept| kept.passages == passages && kept.layer <= layer)?;
        Some((found.layer, found.stream.clone()))
    }

    /// Keeps a stream in place of the one of the same passages, and drops the oldest of others above [`MOST_KEPT`].
    fn put(&self, layer: usize, passages: &[Vec<u32>], stream: &Array2<f32>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|kept| kept.passages != passages);
        all.push(KeptStream { passages: passages.to_vec(), layer, stream: stream.clone() });
        while all.iter().map(|kept| kept.stream.len()).sum::<usize>() > MOST_KEPT {
            all.remove(0);
        }
    }
}

/// What a pass through blocks does at their heads.
enum AtHeads<'a, 'b> {
    Nothing,
    /// Replaces attention.
    Attend(&'a mut Attend<'b>),
    /// Reads them, and ends after those of the last block or a break.
    Probe(&'a mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>),
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
        let passages = [passage.to_vec()];
        let (lengths, blocks) = (self.lengths(&passages)?, 0..self.blocks.len());
        let x = self.embed(&passages)?;
        let x = self.through(blocks, x, &lengths, AtHeads::Attend(attend))?;
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

    /// Probes the heads of some layers; see [`Probed`](crate::lm::Probed).
    pub(super) fn probe(
        &self,
        passages: &[Vec<u32>],
        layers: Range<usize>,
        each: &mut dyn FnMut(HeadsOfLayer) -> ControlFlow<()>,
    ) -> Result<(), LmError> {
        let lengths = self.lengths(passages)?;
        if layers.start >= self.blocks.len() {
            return Ok(());
        }
        let (first, x) = match self.kept.before(layers.start, passages) {
            Some(kept) => kept,
            None => (0, self.embed(passages)?),
        };
        let x = self.through(first..layers.start, x, &lengths, AtHeads::Nothing)?;
        self.kept.put(layers.start, passages, &x);
        self.through(layers, x, &lengths, AtHeads::Probe(each)).map(drop)
    }

    /// The number of tokens of each passage.
    fn lengths(&self, passages: &[Vec<u32>]) -> Result<Vec<usize>, LmError> {
        let lengths: Vec<usize> = passages.iter().map(Vec::len).collect();
        match lengths.iter().find(|&&t| t == 0 || t > self.context) {
            None => Ok(lengths),
            Some(&found) => Err(LmError::Refused(format!(
                "the passage has {found} tokens; it must have 1 to {}, the model's context",
                self.context
            ))),
        }
    }

    /// The residual stream after some blocks, from that before them, with the rows of passages of `lengths` concatenated.
    fn through(
        &self,
        layers: Range<usize>,
        mut x: Array2<f32>,
        lengths: &[usize],
        mut at_heads: AtHeads<'_, '_>,
    ) -> Result<Array2<f32>, LmError> {
        let own: &mut Attend<'_> = &mut |_| Ok(None);
        for layer in layers.start..layers.end.min(self.blocks.len()) {
            let block = &self.blocks[layer];
            let [of_attention, of_mlp] = &block.norms;
            let input = normed(of_attention.before.as_ref(), x.clone());
            let made = |attend, probed| block.attention.of(layer, &input, lengths, probed, attend);
            let added = match &mut at_heads {
                AtHeads::Nothing => made(Some(own), false)?.0,
                AtHeads::Attend(attend) => made(Some(attend), true)?.0,
                AtHeads::Probe(each) => {
                    let goes_on = layer + 1 < layers.end;
                    let (added, probes) = made(goes_on.then_some(&mut *own), true)?;
                    let is_broken = each(probes).is_break();
                    added.filter(|_| !is_broken)
                }
            };
            let Some(added) = added else { return Ok(x) };
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
