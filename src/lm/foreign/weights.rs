//! `model.safetensors`: a published model's weights, by name.

use std::path::Path;

use ndarray::{Array1, Array2};

use super::arithmetic::{Linear, Norm};
use crate::lm::LmError;
use crate::lm::tensor_file::TensorFile;

const WEIGHTS: &str = "model.safetensors";
const SHARDS: &str = "model.safetensors.index.json";

/// The weights of a file, whose names all begin with one prefix or none.
pub(super) struct Weights {
    file: TensorFile,
    prefix: &'static str,
}

impl Weights {
    /// The weights of a folder. Their names have `prefix` where the one called `first` has it: a model with a head
    /// for some task is saved with it, the bare model without.
    pub(super) fn read(folder: &Path, prefix: &'static str, first: &str) -> Result<Self, LmError> {
        let path = folder.join(WEIGHTS);
        if !path.exists() {
            let instead = match folder.join(SHARDS).exists() {
                true => format!("{SHARDS} names shards, which are not read"),
                false => "is not there".to_owned(),
            };
            let why = format!("{instead}: save the weights as this one file");
            return Err(LmError::File { path, why });
        }
        let file = TensorFile::read(&path)?;
        let prefix = if file.has(&format!("{prefix}{first}")) { prefix } else { "" };
        Ok(Self { file, prefix })
    }

    /// A matrix as it is stored.
    pub(super) fn matrix(&mut self, name: &str, shape: [usize; 2]) -> Result<Array2<f32>, LmError> {
        let data = self.take(name, &shape)?;
        Ok(Array2::from_shape_vec(shape, data).map_err(candle_core::Error::wrap)?)
    }

    pub(super) fn vector(&mut self, name: &str, length: usize) -> Result<Array1<f32>, LmError> {
        Ok(self.take(name, &[length])?.into())
    }

    /// A projection that is stored as inputs × outputs.
    pub(super) fn linear(
        &mut self,
        name: &str,
        [inputs, outputs]: [usize; 2],
    ) -> Result<Linear, LmError> {
        Ok(Linear {
            weights: self.matrix(&format!("{name}.weight"), [inputs, outputs])?,
            bias: self.vector(&format!("{name}.bias"), outputs)?,
        })
    }

    /// A projection that is stored as outputs × inputs.
    pub(super) fn transposed_linear(
        &mut self,
        name: &str,
        [inputs, outputs]: [usize; 2],
    ) -> Result<Linear, LmError> {
        Ok(Linear {
            weights: self.matrix(&format!("{name}.weight"), [outputs, inputs])?.reversed_axes(),
            bias: self.vector(&format!("{name}.bias"), outputs)?,
        })
    }

    /// A layer norm. Models converted from TensorFlow have `gamma` and `beta` in place of `weight` and `bias`.
    pub(super) fn norm(
        &mut self,
        name: &str,
        channels: usize,
        epsilon: f32,
    ) -> Result<Norm, LmError> {
        let old = self.file.has(&format!("{}{name}.gamma", self.prefix));
        let [gain, bias] = if old { ["gamma", "beta"] } else { ["weight", "bias"] };
        Ok(Norm {
            gain: self.vector(&format!("{name}.{gain}"), channels)?,
            bias: self.vector(&format!("{name}.{bias}"), channels)?,
            epsilon,
        })
    }

    fn take(&mut self, name: &str, dimensions: &[usize]) -> Result<Vec<f32>, LmError> {
        let name = format!("{}{name}", self.prefix);
        self.file.take(&name, dimensions).map_err(|e| match e {
            LmError::File { path, why } => LmError::File {
                path,
                why: format!("{why}; take it and config.json from one published model"),
            },
            other => other,
        })
    }
}
