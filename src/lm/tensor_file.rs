//! Named float32 tensors in a safetensors file, whole or not at all.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::LmError;
use crate::files::write_whole;

/// A tensor to be written.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) dimensions: Vec<usize>,
    pub(super) data: Vec<f32>,
}

/// Writes tensors and notes beside `path` first and then renames the file onto it, so that a file
/// of that name is always whole.
pub(super) fn write(
    path: &Path,
    tensors: &[Named],
    notes: HashMap<String, String>,
) -> Result<(), LmError> {
    let wrong = |e: safetensors::SafeTensorError| LmError::Weights {
        path: path.to_owned(),
        why: e.to_string(),
    };
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|tensor| tensor.data.iter().flat_map(|x| x.to_le_bytes()).collect())
        .collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|(tensor, bytes)| {
            let view = TensorView::new(Dtype::F32, tensor.dimensions.clone(), bytes)?;
            Ok((tensor.name.as_str(), view))
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(wrong)?;
    let file = safetensors::serialize(views, Some(notes)).map_err(wrong)?;
    write_whole(path, &file).map_err(|source| LmError::Io { path: path.to_owned(), source })
}

/// A file that was read.
pub(super) struct TensorFile {
    path: PathBuf,
    tensors: HashMap<String, (Vec<usize>, Vec<f32>)>,
    notes: HashMap<String, String>,
}

impl TensorFile {
    /// Reads every float32 tensor of a file.
    pub(super) fn read(path: &Path) -> Result<Self, LmError> {
        let path = path.to_owned();
        let wrong = |e: safetensors::SafeTensorError| LmError::Weights {
            path: path.clone(),
            why: e.to_string(),
        };
        let bytes =
            std::fs::read(&path).map_err(|source| LmError::Io { path: path.clone(), source })?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(wrong)?;
        let notes = header.metadata().clone().unwrap_or_default();
        let file = SafeTensors::deserialize(&bytes).map_err(wrong)?;
        let floats = file.tensors().into_iter().filter(|(_, view)| view.dtype() == Dtype::F32);
        let tensors = floats
            .map(|(name, view)| {
                let (words, _) = view.data().as_chunks::<4>();
                let data = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
                (name, (view.shape().to_vec(), data))
            })
            .collect();
        Ok(Self { path, tensors, notes })
    }

    /// The elements of a tensor that must have these dimensions.
    pub(super) fn take(&mut self, name: &str, dimensions: &[usize]) -> Result<Vec<f32>, LmError> {
        match self.tensors.remove(name) {
            Some((found, data)) if found == dimensions => Ok(data),
            Some((found, _)) => {
                Err(self.wrong(format!("{name} is {found:?}, the model's is {dimensions:?}")))
            }
            None => Err(self.wrong(format!("has no float32 tensor {name}"))),
        }
    }

    /// A note that must be there.
    pub(super) fn note<T: FromStr>(&self, key: &str) -> Result<T, LmError> {
        self.notes
            .get(key)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.wrong(format!("has no valid {key}; it is not a checkpoint")))
    }

    fn wrong(&self, why: String) -> LmError {
        LmError::Weights { path: self.path.clone(), why }
    }
}
