//! What GPT-2-type and BERT-type models have in common, and the pass that probes their heads.

use std::sync::Arc;

use ndarray::{Array2, Axis, s, stack};

use super::arithmetic::{Activation, Linear, Norm, attend, with_ones};
use crate::lm::{HeadInputs, HeadProbe, LmError};
use crate::pattern::{HeadKind, Visibility};

/// A transformer of C channels with learned positions.
pub(super) struct Transformer {
    /// Embeddings by token, (V, C).
    pub(super) tokens: Array2<f32>,
    /// What is added by position, (context, C).
    pub(super) positions: Array2<f32>,
    /// The norm of their sum, where there is one.
    pub(super) norm: Option<Norm>,
    pub(super) blocks: Vec<Block>,
    /// Whether attention and MLP read the normalised stream and add to the one that is not. Otherwise they read
    /// the stream, and what they have added to is normalised.
    pub(super) norm_first: bool,
    /// Heads of a block.
    pub(super) heads: usize,
    pub(super) activation: Activation,
    pub(super) visibility: Visibility,
}

/// Attention and MLP.
pub(super) struct Block {
    /// To queries, keys and values, C × C each.
    pub(super) projections: [Linear; 3],
    /// From what the heads gathered, C × C.
    pub(super) output: Linear,
    pub(super) mlp: [Linear; 2],
    /// Those of attention and of the MLP.
    pub(super) norms: [Norm; 2],
}

impl Transformer {
    pub(super) fn context(&self) -> usize {
        self.positions.nrows()
    }

    pub(super) fn probe(&self, tokens: &[u32]) -> Result<Vec<HeadProbe>, LmError> {
        let mut x = self.embed(tokens)?;
        let mut probes = Vec::new();
        for (layer, block) in self.blocks.iter().enumerate() {
            let [attention_norm, mlp_norm] = &block.norms;
            let input = if self.norm_first { attention_norm.of(x.clone()) } else { x.clone() };
            let (heads, gathered) = self.attention(layer, block, &input);
            probes.extend(heads);
            x += &gathered;
            if self.norm_first {
                x += &self.mlp(block, &mlp_norm.of(x.clone()));
            } else {
                x = attention_norm.of(x);
                x += &self.mlp(block, &x);
                x = mlp_norm.of(x);
            }
        }
        Ok(probes)
    }

    /// The stream before the first block, (T, C).
    fn embed(&self, tokens: &[u32]) -> Result<Array2<f32>, LmError> {
        let (t, size) = (tokens.len(), self.tokens.nrows());
        if t == 0 || t > self.context() {
            return Err(LmError::PassageLength { found: t, context: self.context() });
        }
        let row = |&token: &u32| match usize::try_from(token) {
            Ok(place) if place < size => Ok(self.tokens.row(place)),
            _ => Err(LmError::UnknownToken { found: token, size }),
        };
        let rows = tokens.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        let x = stack(Axis(0), &rows).map_err(candle_core::Error::wrap)?;
        let x = x + self.positions.slice(s![..t, ..]);
        Ok(match &self.norm {
            Some(norm) => norm.of(x),
            None => x,
        })
    }

    /// The probes of a block's heads, and what its attention adds to the stream.
    fn attention(
        &self,
        layer: usize,
        block: &Block,
        input: &Array2<f32>,
    ) -> (Vec<HeadProbe>, Array2<f32>) {
        let projected = block.projections.each_ref().map(|projection| projection.of(input));
        let stream = Arc::new(with_ones(input));
        let mut gathered = Array2::zeros(input.dim());
        let d = input.ncols() / self.heads;
        let probe = |head: usize| {
            let own = s![.., head * d..(head + 1) * d];
            let [queries, keys, values] = projected.each_ref().map(|x| x.slice(own));
            gathered.slice_mut(own).assign(&attend([queries, keys, values], self.visibility));
            let [queries, keys] = [queries, keys].map(|x| x.to_owned());
            HeadProbe {
                layer,
                head,
                visibility: self.visibility,
                kind: HeadKind::Global,
                queries: queries.clone(),
                keys: keys.clone(),
                softcap: None,
                slope: None,
                inputs: HeadInputs {
                    stream: stream.clone(),
                    projected: [queries, keys],
                    normalised: None,
                    turns: None,
                },
            }
        };
        let probes = (0..self.heads).map(probe).collect();
        (probes, block.output.of(&gathered))
    }

    fn mlp(&self, block: &Block, x: &Array2<f32>) -> Array2<f32> {
        let [input, output] = &block.mlp;
        output.of(&self.activation.of(input.of(x)))
    }
}
