//! The tensors of one layer of a file of exported heads, with checks of their shapes.

use std::ops::Range;

use ndarray::Array2;

use crate::lm::LmError;
use crate::lm::pretrained::{SafetensorsFile, TensorSource as _};

/// Access to the tensors of one layer.
pub(super) struct Tensors<'f> {
    file: &'f SafetensorsFile,
    layer: usize,
}

impl<'f> Tensors<'f> {
    pub(super) fn new(file: &'f SafetensorsFile, layer: usize) -> Self {
        Self { file, layer }
    }

    fn name(&self, of: &str) -> String {
        format!("layers.{}.{of}", self.layer)
    }

    pub(super) fn wrong(&self, what: &str) -> LmError {
        self.file.wrong(format!("layer {} has {what}", self.layer))
    }

    pub(super) fn has(&self, of: &str) -> bool {
        self.file.dimensions(&self.name(of)).is_some()
    }

    /// The dimensions of a tensor. Fails if it is missing or differs from a dimension that is `known`.
    pub(super) fn shape<const N: usize>(
        &self,
        of: &str,
        known: [Option<usize>; N],
    ) -> Result<[usize; N], LmError> {
        let name = self.name(of);
        let Some(found) = self.file.dimensions(&name) else {
            let why =
                format!("has no tensor {name} of float32, float16 or bfloat16; export it again");
            return Err(self.file.wrong(why));
        };
        let fits = |found: &[usize; N]| {
            known.iter().zip(found).all(|(known, found)| known.is_none_or(|known| known == *found))
        };
        found.try_into().ok().filter(fits).ok_or_else(|| {
            let known =
                known.map(|known| known.map_or("any".to_owned(), |known| known.to_string()));
            let known = known.join(", ");
            self.file
                .wrong(format!("{name} is {found:?}, but [{known}] is needed; export it again"))
        })
    }

    /// The elements at `places` along a tensor's first axis. Fails if one is not finite.
    pub(super) fn numbers(&self, of: &str, places: Range<usize>) -> Result<Vec<f32>, LmError> {
        let numbers = self.file.read(&self.name(of), places)?;
        match numbers.iter().all(|v| v.is_finite()) {
            true => Ok(numbers),
            false => Err(self.file.wrong(format!(
                "{} has values that are NaN or infinite; export an earlier step, or use float32",
                self.name(of)
            ))),
        }
    }

    pub(super) fn matrix(&self, of: &str, shape: [usize; 2]) -> Result<Array2<f32>, LmError> {
        self.shape(of, shape.map(Some))?;
        matrix(self.numbers(of, 0..shape[0])?, shape)
    }
}

pub(super) fn matrix(data: Vec<f32>, shape: [usize; 2]) -> Result<Array2<f32>, LmError> {
    Ok(Array2::from_shape_vec(shape, data).map_err(candle_core::Error::wrap)?)
}
