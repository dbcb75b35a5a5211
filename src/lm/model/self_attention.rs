//! Self-attention of a block with its norm and output projection, added to the residual stream.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor, bail};

use super::projection::Projection;
use super::weights::{BlockPass, BlockPullback, Gradients, ModelShape, Parameter, Tensors};
use crate::lm::Slopes;
use crate::lm::attention::{Attended, AttentionGradients, Heads, attention};
use crate::lm::operators::{Rotation, add_linear, layer_norm, linear, rotate};

/// Self-attention of one block.
pub(super) struct SelfAttention {
    dtype: DType,
    norm: Parameter,
    query: Projection,
    key: Projection,
    value: Projection,
    output: Projection,
    /// The gains of queries and keys, (D) each, if they are normalised.
    query_key_norms: Option<[Parameter; 2]>,
    /// The rotary angles of queries and keys, if the model uses RoPE.
    pub(super) rotation: Option<Arc<Rotation>>,
    pub(super) heads: Heads,
    /// Slopes of the linear position bias, (H), if any.
    pub(super) slopes: Option<Parameter>,
}

/// Maps the gradients of queries, keys and values, and that of the residual stream after attention, to the gradient of
/// the stream before the block.
pub(super) type HeadsPullback =
    Box<dyn FnOnce([Tensor; 3], Tensor, &mut Gradients) -> Result<Tensor>>;

/// Maps the gradient of the residual stream after attention to that of the heads' outputs; that of the stream beside
/// them is the same.
pub(super) type OutputPullback = Box<dyn FnOnce(&Tensor, &mut Gradients) -> Result<Tensor>>;

impl SelfAttention {
    /// Attention of block `layer` of a model.
    pub(super) fn new(
        shape: &ModelShape,
        layer: usize,
        tensors: &Tensors,
        rotation: Option<Arc<Rotation>>,
    ) -> Result<Self> {
        let name = |part: &str| format!("layers.{layer}.attention.{part}");
        let get = |part: &str| tensors.parameter(&name(part));
        let projection = |part: &str| Projection::new(shape, &name(part), tensors);
        let norms = || -> Result<_> { Ok([get("query_norm")?, get("key_norm")?]) };
        let query = projection("query")?;
        let slopes = match shape.slopes {
            Slopes::None => None,
            Slopes::Alibi => {
                let slopes = Slopes::of_alibi(shape.heads[layer].len());
                let tensor = Tensor::new(slopes, query.weight.tensor.device())?;
                Some(Parameter { index: None, tensor })
            }
            Slopes::Learned => Some(get("slopes")?),
        };
        Ok(Self {
            dtype: shape.dtype.of_tensors(),
            norm: get("norm")?,
            query,
            key: projection("key")?,
            value: projection("value")?,
            output: projection("output")?,
            query_key_norms: shape.qk_norm.then(norms).transpose()?,
            rotation,
            heads: Heads::new(&shape.heads[layer], shape.softcap),
            slopes,
        })
    }

    /// The residual stream after attention, with the pass back.
    pub(super) fn forward(&self, x: &Tensor, sizes: (usize, usize)) -> Result<BlockPass> {
        let ([q, k, v], to_stream) = self.heads_of(x, sizes, self.turns(0))?;
        let Attended { output, statistics, pullback } =
            attention(&q, &k, &v, self.slopes(), &self.heads)?;
        let (x, to_attended) = self.add_output(x, &output)?;
        let own_slopes = self.slopes.clone();
        let back = move |gradient: Tensor, gradients: &mut Gradients| {
            let d_attended = to_attended(&gradient, gradients)?;
            let AttentionGradients { heads: [dq, dk, dv], slopes } = pullback(&d_attended)?;
            if let Some((of, slopes)) = own_slopes.zip(slopes) {
                gradients.add(&of, slopes)?;
            }
            to_stream([dq, dk, dv], gradient, gradients)
        };
        Ok(BlockPass { x, statistics: vec![statistics], pullback: Box::new(back) })
    }

    /// The rotary angles, if any, of sequences that start at position `first`.
    pub(super) fn turns(&self, first: usize) -> Option<(&Arc<Rotation>, usize)> {
        self.rotation.as_ref().map(|rotation| (rotation, first))
    }

    /// Queries, keys and values as attention receives them, (B, T, H, D) each, for sequences that start at a position of
    /// some `turns`; and the backward pass from their gradients to that of the residual stream.
    pub(super) fn heads_of(
        &self,
        x: &Tensor,
        sizes: (usize, usize),
        turns: Option<(&Arc<Rotation>, usize)>,
    ) -> Result<([Tensor; 3], HeadsPullback)> {
        let gain = self.norm.clone();
        let (x, to_norm) = layer_norm(x, &gain.tensor, self.dtype)?;
        let [query, key, value] = [&self.query, &self.key, &self.value].map(Projection::factor);
        let factors = [query?, key?, value?];
        let (projected, to_linear) = linear(&x, &factors.each_ref().map(|factor| &factor.matrix))?;
        let [q, k, v] = &projected[..] else {
            bail!("three projections gave {} products", projected.len());
        };
        let (q, to_q) = self.query_or_key(q, 0, sizes, turns)?;
        let (k, to_k) = self.query_or_key(k, 1, sizes, turns)?;
        let flat = v.dims2()?;
        let v = v.reshape(q.shape())?;
        let back = move |d_heads: [Tensor; 3], gradient: Tensor, gradients: &mut Gradients| {
            let [dq, dk, dv] = d_heads;
            let [dq, dk] = [to_q(dq, gradients)?, to_k(dk, gradients)?];
            let (dx, d_matrices) = to_linear(&[&dq, &dk, &dv.reshape(flat)?])?;
            for (factor, d_matrix) in factors.into_iter().zip(d_matrices) {
                (factor.pullback)(d_matrix, gradients)?;
            }
            // The residual stream also bypasses attention.
            let [gradient, d_gain] = to_norm(&dx, Some(&gradient))?;
            gradients.add(&gain, d_gain)?;
            Ok(gradient)
        };
        Ok(([q, k, v], Box::new(back)))
    }

    /// The inputs of queries and keys, for a probe: the normalised layer input, (B·T, C), and its projections
    /// before any normalisation or rotation, (B·T, C) each.
    pub(super) fn projected(&self, x: &Tensor) -> Result<[Tensor; 3]> {
        let (x, _) = layer_norm(x, &self.norm.tensor, self.dtype)?;
        let [query, key] = [&self.query, &self.key].map(|projection| projection.factor());
        let (q, _) = linear(&x, &[&query?.matrix])?;
        let (k, _) = linear(&x, &[&key?.matrix])?;
        match (&q[..], &k[..]) {
            ([q], [k]) => Ok([x, q.clone(), k.clone()]),
            _ => bail!("one projection gave several products"),
        }
    }

    /// The slopes of the linear position bias, (H), if there is one.
    pub(super) fn slopes(&self) -> Option<&Tensor> {
        self.slopes.as_ref().map(|slopes| &slopes.tensor)
    }

    /// The gains of queries and keys, (D) each, if they are normalised.
    pub(super) fn gains(&self) -> Result<Option<[Vec<f32>; 2]>> {
        let Some([query, key]) = &self.query_key_norms else { return Ok(None) };
        Ok(Some([query.tensor.to_vec1()?, key.tensor.to_vec1()?]))
    }

    /// Queries (`which` = 0) or keys (1) from their projection, (B·T, C): normalised and rotated if the model does so.
    fn query_or_key(
        &self,
        x: &Tensor,
        which: usize,
        (b, t): (usize, usize),
        turns: Option<(&Arc<Rotation>, usize)>,
    ) -> Result<(Tensor, BlockPullback<'static>)> {
        let (bt, c) = x.dims2()?;
        let h = self.heads.kinds.len();
        let d = c / h;
        let mut x = x.clone();
        let mut to_norm = None;
        if let Some(gains) = &self.query_key_norms {
            let gain = gains[which].clone();
            let (y, back) = layer_norm(&x.reshape((bt * h, d))?, &gain.tensor, self.dtype)?;
            to_norm = Some((gain, back));
            x = y;
        }
        x = x.reshape((b, t, h, d))?;
        let mut to_turn = None;
        if let Some((rotation, first)) = turns {
            let (y, back) = rotate(&x, rotation, first)?;
            to_turn = Some(back);
            x = y;
        }
        let back = move |mut gradient: Tensor, gradients: &mut Gradients| {
            if let Some(to_turn) = to_turn {
                [gradient] = to_turn(&gradient)?;
            }
            if let Some((gain, to_norm)) = to_norm {
                let [dx, d_gain] = to_norm(&gradient.reshape((bt * h, d))?, None)?;
                gradients.add(&gain, d_gain)?;
                gradient = dx;
            }
            gradient.reshape((bt, c))
        };
        Ok((x, Box::new(back)))
    }

    /// The residual stream after attention, given the stream `x` before it and the outputs of the heads, with B·T·H·D
    /// elements. Also returns the backward pass.
    pub(super) fn add_output(
        &self,
        x: &Tensor,
        attended: &Tensor,
    ) -> Result<(Tensor, OutputPullback)> {
        let projection = self.output.factor()?;
        let flat = attended.reshape((x.dim(0)?, ()))?;
        let (x, to_linear) = add_linear(x, &flat, &projection.matrix)?;
        let (dtype, shape) = (self.dtype, attended.shape().clone());
        let back = move |gradient: &Tensor, gradients: &mut Gradients| {
            let (d_attended, d_matrices) = to_linear(&[&gradient.to_dtype(dtype)?])?;
            for (factor, d_matrix) in [projection].into_iter().zip(d_matrices) {
                (factor.pullback)(d_matrix, gradients)?;
            }
            d_attended.reshape(shape)
        };
        Ok((x, Box::new(back)))
    }
}
