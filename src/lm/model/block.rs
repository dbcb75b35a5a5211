//! One decoder block: attention, then an MLP, each after a norm and added to the residual stream.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor};

use super::ModelShape;
use super::decoder::Tensors;
use crate::lm::attention::{Heads, attention};
use crate::lm::operators::{
    Rotation, Stored, layer_norm, linear, mlp, rotate, spectrally_normalised,
};

pub(super) struct Block {
    /// Of what goes into a product and comes out of it; the residual stream is float32.
    dtype: DType,
    attention_norm: Tensor,
    query: Projection,
    key: Projection,
    value: Projection,
    attention_output: Projection,
    /// The gains of queries and keys, (D) each, where they are normalised.
    query_key_norms: Option<[Tensor; 2]>,
    rotation: Option<Arc<Rotation>>,
    mlp_norm: Tensor,
    mlp_input: Projection,
    mlp_output: Projection,
    pub(super) heads: Heads,
}

impl Block {
    /// Block `layer` of a model.
    pub(super) fn new(
        shape: &ModelShape,
        layer: usize,
        tensors: &Tensors,
        rotation: Option<Arc<Rotation>>,
    ) -> Result<Self> {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let get = |part: &str| tensors.get(&name(part));
        let projection = |part: &str| Projection::new(shape, &name(part), tensors);
        let norms =
            || -> Result<_> { Ok([get("attention.query_norm")?, get("attention.key_norm")?]) };
        let dtype = shape.dtype.of_tensors();
        Ok(Self {
            dtype,
            attention_norm: get("attention.norm")?,
            query: projection("attention.query")?,
            key: projection("attention.key")?,
            value: projection("attention.value")?,
            attention_output: projection("attention.output")?,
            query_key_norms: shape.qk_norm.then(norms).transpose()?,
            rotation,
            mlp_norm: get("mlp.norm")?,
            mlp_input: projection("mlp.input")?,
            mlp_output: projection("mlp.output")?,
            heads: Heads { kinds: shape.heads[layer].as_slice().into(), softcap: shape.softcap },
        })
    }

    /// The residual stream after the block, and its heads' statistics, (H, 3).
    pub(super) fn forward(&self, x: &Tensor, sizes: (usize, usize)) -> Result<(Tensor, Tensor)> {
        let [q, k, v] = self.heads_of(x, sizes, 0)?;
        let (attended, statistics) = attention(&q, &k, &v, &self.heads)?;
        Ok((self.after_attention(x, &attended)?, statistics))
    }

    /// Queries, keys and values as attention gets them, (B, T, H, D) each, of sequences that begin at
    /// position `first`.
    pub(super) fn heads_of(
        &self,
        x: &Tensor,
        (b, t): (usize, usize),
        first: usize,
    ) -> Result<[Tensor; 3]> {
        let (bt, c) = x.dims2()?;
        let h = self.heads.kinds.len();
        let d = c / h;
        let x = layer_norm(x, &self.attention_norm, self.dtype)?;
        let [mut q, mut k] = [self.query.apply(&x)?, self.key.apply(&x)?];
        if let Some([query_gain, key_gain]) = &self.query_key_norms {
            q = layer_norm(&q.reshape((bt * h, d))?, query_gain, self.dtype)?;
            k = layer_norm(&k.reshape((bt * h, d))?, key_gain, self.dtype)?;
        }
        let by_head = |x: Tensor| x.reshape((b, t, h, d));
        let [mut q, mut k, v] = [by_head(q)?, by_head(k)?, by_head(self.value.apply(&x)?)?];
        if let Some(rotation) = &self.rotation {
            q = rotate(&q, rotation, first)?;
            k = rotate(&k, rotation, first)?;
        }
        Ok([q, k, v])
    }

    /// The residual stream after the block: before it `x`, and of its heads the outputs, with B·T·C
    /// elements.
    pub(super) fn after_attention(&self, x: &Tensor, attended: &Tensor) -> Result<Tensor> {
        let attended = self.attention_output.apply(&attended.reshape(x.dims2()?)?)?;
        let x = (x + attended.to_dtype(x.dtype())?)?;
        &x + self.think(&x)?.to_dtype(x.dtype())?
    }

    /// What the MLP adds to the residual stream.
    fn think(&self, x: &Tensor) -> Result<Tensor> {
        let x = layer_norm(x, &self.mlp_norm, self.dtype)?;
        mlp(&x, &self.mlp_input.matrix()?, &self.mlp_output.matrix()?)
    }
}

/// A matrix, inputs × outputs, that activations are multiplied by.
struct Projection {
    dtype: DType,
    weight: Tensor,
    /// The gain γ and the singular vector, where the product is with γ/σ(W) · W.
    spectral: Option<(Tensor, Tensor)>,
}

impl Projection {
    fn new(shape: &ModelShape, name: &str, tensors: &Tensors) -> Result<Self> {
        let spectral = || -> Result<_> {
            let vector = tensors.get(&format!("{name}.singular_vector"))?;
            Ok((tensors.get(&format!("{name}.gain"))?, vector.detach()))
        };
        Ok(Self {
            dtype: shape.dtype.of_tensors(),
            weight: tensors.get(name)?,
            spectral: shape.sigma_reparam.then(spectral).transpose()?,
        })
    }

    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        linear(x, &self.matrix()?, Stored::InputsByOutputs)
    }

    /// What activations are multiplied by.
    fn matrix(&self) -> Result<Tensor> {
        match &self.spectral {
            None => self.weight.to_dtype(self.dtype),
            Some((gain, vector)) => {
                spectrally_normalised(&self.weight, gain, vector)?.to_dtype(self.dtype)
            }
        }
    }
}
