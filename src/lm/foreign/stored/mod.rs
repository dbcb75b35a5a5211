//! The tensors of a model's files, each read when it is asked for: what is in memory does not grow with the model.

mod gguf;
mod safetensors_file;

use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayD, Axis, Ix1, Ix2, IxDyn, concatenate};

pub(super) use gguf::GgufFile;
pub(in crate::lm) use safetensors_file::SafetensorsFile;

use crate::lm::LmError;

/// A file of tensors.
pub(in crate::lm) trait TensorSource: Send + Sync {
    /// The dimensions of a tensor of numbers that can be read; none where there is no such.
    fn dimensions(&self, name: &str) -> Option<&[usize]>;

    /// The elements of some of a tensor's places along its first axis, one after another.
    ///
    /// # Errors
    /// A file that cannot be read any more.
    fn read(&self, name: &str, places: Range<usize>) -> Result<Vec<f32>, LmError>;

    /// That the file is wrong, and why.
    fn wrong(&self, why: String) -> LmError;
}

/// A tensor, where it lies.
#[derive(Clone)]
pub(super) struct Stored {
    source: Arc<dyn TensorSource>,
    name: String,
    dimensions: Vec<usize>,
}

impl Stored {
    /// The tensor of a name; none where there is no such.
    pub(super) fn find(source: &Arc<dyn TensorSource>, name: &str) -> Option<Self> {
        let dimensions = source.dimensions(name)?.to_vec();
        Some(Self { source: source.clone(), name: name.to_owned(), dimensions })
    }

    pub(super) fn dimensions(&self) -> &[usize] {
        &self.dimensions
    }

    /// That its file is wrong, and why.
    pub(super) fn wrong(&self, why: String) -> LmError {
        self.source.wrong(why)
    }

    /// All of a vector.
    pub(super) fn vector(&self) -> Result<Array1<f32>, LmError> {
        let all = self.places(0..self.dimensions[0], &self.dimensions)?;
        Ok(all.into_dimensionality::<Ix1>().map_err(candle_core::Error::wrap)?)
    }

    /// All of a matrix.
    pub(super) fn matrix(&self) -> Result<Array2<f32>, LmError> {
        let all = self.places(0..self.dimensions[0], &self.dimensions)?;
        Ok(all.into_dimensionality::<Ix2>().map_err(candle_core::Error::wrap)?)
    }

    /// Some rows of a matrix, in the order asked for.
    pub(super) fn rows(&self, rows: &[usize]) -> Result<Array2<f32>, LmError> {
        let mut sorted = rows.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let one = |&row: &usize| self.places(row..row + 1, &[1, self.dimensions[1]]);
        let found = sorted.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let views: Vec<_> = found.iter().map(|row| row.view()).collect();
        let distinct = concatenate(Axis(0), &views)
            .and_then(|all| all.into_dimensionality::<Ix2>())
            .map_err(candle_core::Error::wrap)?;
        let place = |row| sorted.binary_search(row).expect("every row asked for was read");
        Ok(distinct.select(Axis(0), &rows.iter().map(place).collect::<Vec<_>>()))
    }

    /// One place of the first axis: a matrix of three, a vector of two.
    pub(super) fn at(&self, place: usize) -> Result<ArrayD<f32>, LmError> {
        self.places(place..place + 1, &self.dimensions[1..])
    }

    fn places(&self, places: Range<usize>, shape: &[usize]) -> Result<ArrayD<f32>, LmError> {
        let data = self.source.read(&self.name, places)?;
        Ok(ArrayD::from_shape_vec(IxDyn(shape), data).map_err(candle_core::Error::wrap)?)
    }
}
