//! Dimensions of a model.

use candle_core::{Device, Tensor};

use crate::lm::error::require;
use crate::lm::{Dtype, LmError, Positions, Slopes, Stabiliser, TrainDefinition};
use crate::targets::HeadKind;

/// The sizes and components of a model. The names and shapes of its weights and its computation depend on nothing
/// else.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// Number of symbols V.
    pub vocabulary_size: usize,
    /// The longest sequence.
    pub context: usize,
    /// Channels of the residual stream: C.
    pub d_model: usize,
    /// Channels of one head: D.
    pub d_head: usize,
    /// What each head sees: one entry a decoder block, with as many heads in every one.
    pub heads: Vec<Vec<HeadKind>>,
    /// Position encoding.
    pub positions: Positions,
    /// Linear position bias of each head.
    pub slopes: Slopes,
    /// Root mean square of the channels of a sinusoidal position vector.
    pub sinusoid: f32,
    /// Whether queries and keys are normalised: [`Stabiliser::QkNorm`].
    pub qk_norm: bool,
    /// Whether a block's matrices are divided by their spectral norm: [`Stabiliser::SigmaReparam`].
    pub sigma_reparam: bool,
    /// The softcap c of attention logits c tanh(z/c): [`Stabiliser::Softcap`].
    pub softcap: Option<f32>,
    /// Precision of products and attention.
    pub dtype: Dtype,
}

impl ModelShape {
    /// The shape for a definition and a text whose vocabulary has `vocabulary_size` symbols.
    pub fn new(definition: &TrainDefinition, vocabulary_size: usize) -> Self {
        let softcap = definition.softcap as f32;
        Self {
            vocabulary_size,
            context: definition.context,
            d_model: definition.d_model,
            d_head: definition.head_dimension(),
            heads: definition.head_kinds(),
            positions: definition.positions,
            slopes: definition.slopes,
            sinusoid: definition.initial_deviation as f32,
            qk_norm: definition.has(Stabiliser::QkNorm),
            sigma_reparam: definition.has(Stabiliser::SigmaReparam),
            softcap: definition.has(Stabiliser::Softcap).then_some(softcap),
            dtype: definition.dtype,
        }
    }

    /// Number of blocks.
    pub fn layers(&self) -> usize {
        self.heads.len()
    }

    /// The fixed position vectors, (context, C), for [`Positions::Sinusoidal`]; `None` otherwise.
    pub(super) fn sinusoids(&self, device: &Device) -> candle_core::Result<Option<Tensor>> {
        if self.positions != Positions::Sinusoidal {
            return Ok(None);
        }
        let amplitude = f64::from(self.sinusoid) * std::f64::consts::SQRT_2;
        let value = |at: usize| {
            let (t, channel) = (at / self.d_model, at % self.d_model);
            let exponent = (channel / 2 * 2) as f64 / self.d_model as f64;
            let (sin, cos) = (t as f64 * 10_000f64.powf(-exponent)).sin_cos();
            (amplitude * if channel.is_multiple_of(2) { sin } else { cos }) as f32
        };
        let values: Vec<f32> = (0..self.context * self.d_model).map(value).collect();
        Tensor::from_vec(values, (self.context, self.d_model), device).map(Some)
    }

    /// Refuses sizes with which attention cannot be computed.
    pub(super) fn check(&self) -> Result<(), LmError> {
        require(self.layers() >= 1, "layers", self.layers(), "must be at least 1")?;
        let heads = self.heads[0].len();
        for layer in &self.heads {
            require(!layer.is_empty(), "heads", layer.len(), "must be at least 1")?;
            let why = format!("must be {heads} in every layer");
            require(layer.len() == heads, "heads", layer.len(), &why)?;
            let blind = layer.contains(&HeadKind::Local { window: 0 });
            require(!blind, "window", 0, "must be at least 1")?;
        }
        require(self.d_head >= 1, "d_head", self.d_head, "must be at least 1")?;
        require(
            self.positions != Positions::Rope || self.d_head.is_multiple_of(2),
            "d_head",
            self.d_head,
            "must be even with positions = rope",
        )?;
        require(
            self.positions != Positions::Sinusoidal || self.d_model.is_multiple_of(2),
            "d_model",
            self.d_model,
            "must be even with positions = sinusoidal",
        )
    }
}
