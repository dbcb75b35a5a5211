//! A decoder and its weights: how a model begins, is read and written, and moves to a device.

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Result, Tensor, Var};

use super::decoder::Decoder;
use super::decoder::Forward;
use super::shape::ModelShape;
use super::weights::{self, SingularVector, Weight};
use super::weights::{Parameter, Tensors};
use crate::lm::operators::power_iteration;
use crate::lm::tensor_file::{self, Named, TensorFile};
use crate::lm::{Device, LmError};

/// Steps of power iteration that a new model's singular vectors start from.
const FIRST_ITERATIONS: usize = 100;

/// A decoder and its weights.
pub struct Model {
    pub(super) shape: ModelShape,
    pub(super) weights: Vec<Weight>,
    /// One for each matrix that is divided by its spectral norm.
    pub(super) vectors: Vec<SingularVector>,
    pub(super) decoder: Decoder,
}

impl Model {
    /// A model at its start, every weight drawn from `seed`: normal with standard deviation
    /// `deviation` (0.02 in GPT-2), the two projections of a block that end on the residual stream
    /// with deviation/√(2·layers), gains 1.
    ///
    /// # Errors
    /// No heads, a head that sees nothing, or a d_model that the heads do not divide.
    pub fn new(shape: ModelShape, deviation: f64, seed: u64) -> std::result::Result<Self, LmError> {
        shape.check()?;
        let weights = weights::initial(&shape, deviation, seed)?;
        let vectors = weights::initial_vectors(&shape)?;
        let model = Self::with_weights(shape, weights, vectors)?;
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
        Self::from_file(shape, &mut TensorFile::read(path)?)
    }

    /// A model out of a file that may hold more.
    pub(in crate::lm) fn from_file(
        shape: ModelShape,
        file: &mut TensorFile,
    ) -> std::result::Result<Self, LmError> {
        shape.check()?;
        let weights = weights::from_file(&shape, file)?;
        let vectors = weights::vectors_from_file(&shape, file)?;
        Self::with_weights(shape, weights, vectors)
    }

    pub(super) fn with_weights(
        shape: ModelShape,
        weights: Vec<Weight>,
        vectors: Vec<SingularVector>,
    ) -> std::result::Result<Self, LmError> {
        // Detached, so that the tensor library keeps no record of what is computed from them.
        let parameter = |(index, weight): (usize, &Weight)| Parameter {
            index,
            tensor: weight.variable.as_detached_tensor(),
        };
        let named = weights.iter().map(|weight| &*weight.name);
        let parameters = named.zip(weights.iter().enumerate().map(parameter)).collect();
        let named = vectors.iter().map(|tracked| &tracked.vector);
        let vectors_by_name =
            named.map(|vector| (&*vector.name, vector.variable.as_detached_tensor())).collect();
        let decoder = Decoder::new(&shape, &Tensors { parameters, vectors: vectors_by_name })?;
        Ok(Self { shape, weights, vectors, decoder })
    }

    /// The same model on another device.
    ///
    /// # Errors
    /// A device that this build or machine does not have, too little memory there, or heads that it does not compute.
    pub fn on(self, device: Device) -> std::result::Result<Self, LmError> {
        if device == Device::Cuda {
            self.shape.check_on_cuda()?;
        }
        let device = device.open()?;
        if self.device().same_device(&device) {
            return Ok(self);
        }
        let moved = |weight: Weight| -> Result<Weight> {
            let variable = Var::from_tensor(&weight.variable.to_device(&device)?)?;
            Ok(Weight { variable, ..weight })
        };
        let weights = self.weights.into_iter().map(moved).collect::<Result<_>>()?;
        let vectors = self
            .vectors
            .into_iter()
            .map(|tracked| Ok(SingularVector { vector: moved(tracked.vector)?, ..tracked }));
        Self::with_weights(self.shape, weights, vectors.collect::<Result<_>>()?)
    }

    /// Where the weights are.
    pub(in crate::lm) fn device(&self) -> &candle_core::Device {
        self.weights[0].variable.device()
    }

    /// Takes over the weights of another model of this shape.
    ///
    /// # Errors
    /// As [`ModelShape::check_start`].
    pub(in crate::lm) fn set_weights(&self, of: &Self) -> std::result::Result<(), LmError> {
        self.shape.check_start(&of.shape)?;
        for weight in &self.weights {
            weight.variable.set(&of.matrix(&weight.name)?.to_device(self.device())?)?;
        }
        Ok(())
    }

    /// Writes the weights as safetensors, whole or not at all: `token_embedding` (V, C),
    /// `position_embedding` (context, C), for each layer `layers.N.attention.` `norm` (C), `query`,
    /// `key`, `value`, `output` (C, C) and `layers.N.mlp.` `norm` (C), `input` (C, 4C), `output`
    /// (4C, C), then `norm` (C). Matrices are inputs × outputs, so y = x W; heads lie side by side
    /// in the outputs of `query`, `key` and `value`. With qk-norm, also `query_norm` and `key_norm`
    /// (D) beside `query`; with sigma-reparam, after each matrix's name `.gain` (1) and
    /// `.singular_vector` (its outputs); with learned slopes `slopes` (H) beside `query`; `position_embedding` only where
    /// positions are learned.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self, path: &Path) -> std::result::Result<(), LmError> {
        tensor_file::write(path, &self.named()?, HashMap::new())
    }

    /// All that [`Self::from_file`] reads, ready to be written.
    pub(in crate::lm) fn named(&self) -> std::result::Result<Vec<Named>, LmError> {
        let vectors = self.vectors.iter().map(|tracked| &tracked.vector);
        weights::named(self.weights.iter().chain(vectors))
    }

    /// The model's sizes.
    pub fn shape(&self) -> &ModelShape {
        &self.shape
    }

    /// The model's trained numbers.
    pub fn parameters(&self) -> usize {
        self.weights.iter().map(|weight| weight.variable.elem_count()).sum()
    }

    /// The weights, for the optimiser.
    pub(in crate::lm) fn weights(&self) -> &[Weight] {
        &self.weights
    }

    /// Next-token logits for `ids`, (B, T) of uint32.
    ///
    /// # Errors
    /// T above the context, or an id of V or more.
    pub fn predict(&self, ids: &Tensor) -> Result<Forward> {
        self.decoder.forward(ids)
    }

    /// One step of power iteration for each matrix that is divided by its spectral norm.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub(in crate::lm) fn track_spectral_norms(&self) -> Result<()> {
        for tracked in &self.vectors {
            power_iteration(self.matrix(&tracked.of)?, &tracked.vector.variable)?;
        }
        Ok(())
    }

    /// A weight by name.
    pub(super) fn matrix(&self, name: &str) -> Result<&Var> {
        match self.weights.iter().find(|weight| weight.name == name) {
            Some(weight) => Ok(&weight.variable),
            None => candle_core::bail!("the model has no weight {name}"),
        }
    }
}
