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

    /// Checks that a model of this shape can start with the weights of a model of shape `there`.
    ///
    /// # Errors
    /// `Reparametrised` if either model uses sigma-reparam; `OtherShape` with the first key
    /// that differs.
    pub fn check_start(&self, there: &Self) -> Result<(), LmError> {
        if self.sigma_reparam || there.sigma_reparam {
            return Err(LmError::Reparametrised);
        }
        let differs = self.described().into_iter().zip(there.described());
        match differs.into_iter().find(|((_, here), (_, there))| here != there) {
            None => Ok(()),
            Some(((key, here), (_, there))) => Err(LmError::OtherShape { key, here, there }),
        }
    }

    /// All that models of one shape have in common, by the keys of a definition.
    fn described(&self) -> [(&'static str, String); 12] {
        let kinds = |layer: &Vec<HeadKind>| {
            layer.iter().map(HeadKind::to_string).collect::<Vec<_>>().join("+")
        };
        let seen: Vec<String> = self.heads.iter().map(kinds).collect();
        // After initialisation only sinusoidal positions depend on it.
        let deviation = (self.positions == Positions::Sinusoidal).then_some(self.sinusoid);
        [
            ("layers", self.layers().to_string()),
            ("d_model", self.d_model.to_string()),
            ("heads", self.heads.first().map_or(0, Vec::len).to_string()),
            ("d_head", self.d_head.to_string()),
            ("what heads see (arm, global_heads, window)", seen.join(", ")),
            ("context", self.context.to_string()),
            ("vocabulary", format!("{} symbols", self.vocabulary_size)),
            ("positions", self.positions.name().to_owned()),
            ("slopes", self.slopes.name().to_owned()),
            ("initial_deviation", format!("{deviation:?}")),
            ("stabilisers", format!("qk-norm {}, softcap {:?}", self.qk_norm, self.softcap)),
            ("dtype", self.dtype.name().to_owned()),
        ]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_another_shape_are_no_start_and_the_key_that_differs_is_named() {
        let of = |sets: &[(&str, &str)]| {
            let mut definition = TrainDefinition { window: 4, ..TrainDefinition::default() };
            for (key, value) in sets {
                definition.set(key, value).unwrap();
            }
            ModelShape::new(&definition, 40)
        };
        let base = of(&[]);
        base.check_start(&base.clone()).unwrap();
        // Differences in training settings do not change the shape.
        base.check_start(&of(&[("steps", "7"), ("initial_deviation", "0.3"), ("seed", "4")]))
            .unwrap();
        let refused = |here: &ModelShape, there: &ModelShape, said: &str| {
            let error = here.check_start(there).unwrap_err();
            assert!(matches!(error, LmError::OtherShape { .. }), "{error}");
            let error = error.to_string();
            assert!(error.starts_with(said), "{error}");
            assert_ne!(
                here.check_start(there).unwrap_err().to_string(),
                there.check_start(here).unwrap_err().to_string()
            );
        };
        for (key, value, said) in [
            ("layers", "9", "layers is 9, but "),
            ("heads", "1", "heads is 1, but "),
            ("context", "32", "context is 32, but "),
            ("arm", "ls", "what heads see (arm, global_heads, window) is global+local:4"),
            ("positions", "rope", "positions is rope, but the starting weights have learned"),
            ("slopes", "learned", "slopes is learned, but the starting weights have none"),
            (
                "arm",
                "qk-norm",
                "stabilisers is qk-norm true, softcap None, but the starting weights have qk-norm false",
            ),
            ("arm", "softcap", "stabilisers is qk-norm false, softcap Some("),
            ("dtype", "bfloat16", "dtype is bfloat16, but the starting weights have float32"),
        ] {
            refused(&of(&[(key, value)]), &base, said);
        }
        let wider = of(&[("d_model", "48"), ("heads", "2")]);
        refused(
            &wider,
            &of(&[("d_model", "32"), ("heads", "2")]),
            "d_model is 48, but the starting weights have 32",
        );
        refused(
            &ModelShape::new(&TrainDefinition::default(), 41),
            &base,
            "vocabulary is 41 symbols, but the starting weights have 40 symbols",
        );
        let sinusoids =
            |deviation| of(&[("positions", "sinusoidal"), ("initial_deviation", deviation)]);
        refused(&sinusoids("0.3"), &sinusoids("0.2"), "initial_deviation is ");
        let divided = of(&[("arm", "sigma-reparam")]);
        for (here, there) in [(&divided, &base), (&base, &divided), (&divided, &divided)] {
            assert!(matches!(here.check_start(there), Err(LmError::Reparametrised)));
        }
    }
}
