//! A decoder with its weights: initialisation, reading, writing, and moving to a device.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Result, Tensor, Var};

use super::decoder::{Decoder, Forward};
use super::recursion::Purpose;
use super::weights::{self, ModelShape, SINGULAR_VECTOR, Tensors, Weight};
use crate::lm::operators::power_iteration;
use crate::lm::tensor_file::{self, SafetensorsFile};
use crate::lm::{Device, LmError};

/// Steps of power iteration on the singular vectors of a new model.
const FIRST_ITERATIONS: usize = 100;

/// A decoder and its weights.
pub struct Model {
    pub(super) shape: ModelShape,
    pub(super) weights: Vec<Weight>,
    /// One vector for each matrix that is divided by its spectral norm.
    pub(super) vectors: Vec<Weight>,
    pub(super) decoder: Decoder,
}

impl Model {
    /// A newly initialised model. All weights are drawn from `seed`: normal with standard deviation
    /// `deviation` (0.02 in GPT-2), or deviation/√(2·layers) for the two projections of a block that end on the
    /// residual stream; gains are 1.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub fn new(shape: ModelShape, deviation: f64, seed: u64) -> std::result::Result<Self, LmError> {
        let weights = weights::initial(&shape, deviation, seed)?;
        let model = Self::with_weights(shape, weights)?;
        for _ in 0..FIRST_ITERATIONS {
            model.track_spectral_norms()?;
        }
        Ok(model)
    }

    /// Reads a model that [`Self::save`] wrote.
    ///
    /// # Errors
    /// A file that cannot be read, is not safetensors, or lacks a weight of this shape.
    pub fn load(shape: ModelShape, path: &Path) -> std::result::Result<Self, LmError> {
        Self::from_file(shape, &SafetensorsFile::open_unchanged(path)?)
    }

    /// Reads a model from a file that may contain other tensors.
    pub(in crate::lm) fn from_file(
        shape: ModelShape,
        file: &SafetensorsFile,
    ) -> std::result::Result<Self, LmError> {
        let weights = weights::from_file(&shape, file)?;
        Self::with_weights(shape, weights)
    }

    pub(super) fn with_weights(
        shape: ModelShape,
        [weights, vectors]: [Vec<Weight>; 2],
    ) -> std::result::Result<Self, LmError> {
        let decoder = Decoder::new(&shape, &Tensors { weights: &weights, vectors: &vectors })?;
        Ok(Self { shape, weights, vectors, decoder })
    }

    /// Moves the model to another device.
    ///
    /// # Errors
    /// A device that this build or machine lacks, or too little memory there.
    pub fn on(self, device: Device) -> std::result::Result<Self, LmError> {
        let device = device.open()?;
        if self.device().same_device(&device) {
            return Ok(self);
        }
        let moved = |weight: Weight| -> Result<Weight> {
            let variable = Var::from_tensor(&weight.variable.to_device(&device)?)?;
            Ok(Weight { variable, ..weight })
        };
        let weights = self.weights.into_iter().map(moved).collect::<Result<_>>()?;
        let vectors = self.vectors.into_iter().map(moved).collect::<Result<_>>()?;
        Self::with_weights(self.shape, [weights, vectors])
    }

    /// The device of the weights.
    pub(in crate::lm) fn device(&self) -> &candle_core::Device {
        self.weights[0].variable.device()
    }

    /// Writes the weights atomically as safetensors: `token_embedding` (V, C),
    /// `position_embedding` (context, C); for each layer `layers.N.attention.` + `norm` (C), `query`,
    /// `key`, `value`, `output` (C, C) and `layers.N.mlp.` + `norm` (C), `input` (C, 4C), `output`
    /// (4C, C); then `norm` (C). Matrices are inputs × outputs, so y = x W. The outputs of
    /// `query`, `key` and `value` are ordered by head. With qk-norm there are also `query_norm` and `key_norm`
    /// (D) beside `query`; with sigma-reparam, each matrix's name followed by `.gain` (1) and
    /// `.singular_vector` (number of outputs); with learned slopes, `slopes` (H) beside `query`. `position_embedding` exists
    /// only if positions are learned, and `router` (C, recursions) only with a router.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self, path: &Path) -> std::result::Result<(), LmError> {
        tensor_file::write(path, &self.named(), HashMap::new())
    }

    /// All tensors that [`Self::from_file`] reads.
    pub(in crate::lm) fn named(&self) -> Vec<(String, Tensor)> {
        let named = |weight: &Weight| (weight.name.clone(), weight.variable.as_detached_tensor());
        self.weights.iter().chain(&self.vectors).map(named).collect()
    }

    /// The model's shape.
    pub fn shape(&self) -> &ModelShape {
        &self.shape
    }

    /// The number of trained parameters.
    pub fn parameters(&self) -> usize {
        self.weights.iter().map(|weight| weight.variable.elem_count()).sum()
    }

    /// The weights, for the optimiser.
    pub(in crate::lm) fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// Runs a forward pass on `ids`, (B, T) of uint32.
    ///
    /// # Errors
    /// T above the context, or an id that is not below V.
    pub fn predict(&self, ids: &Tensor) -> Result<Forward> {
        let (decoder, sizes) = (&self.decoder, ids.dims2()?);
        let (mut x, _) = decoder.embed(ids, 0)?;
        let mut statistics = Vec::new();
        for stage in &decoder.stages {
            let pass = stage.forward(&x, sizes, Purpose::Evaluation)?;
            statistics.extend(pass.statistics);
            x = pass.x;
        }
        let (hidden, _) = decoder.after_blocks(&x)?;
        Ok(Forward { hidden, embedding: decoder.output_embedding()?, statistics })
    }

    /// Runs one step of power iteration for each matrix that is divided by its spectral norm.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub(in crate::lm) fn track_spectral_norms(&self) -> Result<()> {
        for Weight { name, variable } in &self.vectors {
            power_iteration(self.matrix(name.trim_end_matches(SINGULAR_VECTOR))?, variable)?;
        }
        Ok(())
    }

    /// The weight of this name.
    pub(super) fn matrix(&self, name: &str) -> Result<&Var> {
        weights::find(&self.weights, name)
    }
}
