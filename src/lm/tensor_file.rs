//! Named tensors in safetensors files; written in float32 and atomically.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use half::{bf16, f16};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, SafeTensors};
use sha2::{Digest, Sha256};

use super::LmError;
use crate::system::{hexadecimal, write_whole};

/// The key of the metadata that holds the [`digest`] of the rest of a file written by [`write`].
const SHA256: &str = "sha256";

/// A named tensor to write.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) dimensions: Vec<usize>,
    pub(super) data: Vec<f32>,
}

/// SHA-256 of names, dimensions, contents and notes, each sorted by name. Without it a bit flipped on disk would stay
/// unnoticed in a weight and, in a moment of the optimiser, affect all later steps.
fn digest(
    tensors: &[(impl AsRef<str>, TensorView<'_>)],
    notes: &HashMap<String, String>,
) -> String {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let mut sorted: Vec<_> = tensors.iter().map(|(name, view)| (name.as_ref(), view)).collect();
    sorted.sort_by_key(|(name, _)| *name);
    for (name, view) in sorted {
        add(name.as_bytes());
        add(format!("{:?}", view.shape()).as_bytes());
        add(view.data());
    }
    let mut notes: Vec<_> = notes.iter().filter(|(key, _)| *key != SHA256).collect();
    notes.sort();
    for (key, note) in notes {
        add(key.as_bytes());
        add(note.as_bytes());
    }
    hexadecimal(&hash.finalize())
}

/// Writes tensors and notes to a temporary file and then renames it to `path`, so that a file
/// of that name is always complete.
pub(super) fn write(
    path: &Path,
    tensors: &[Named],
    mut notes: HashMap<String, String>,
) -> Result<(), LmError> {
    let wrong = |e: SafeTensorError| LmError::file(path, e.to_string());
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
    notes.insert(SHA256.to_owned(), digest(&views, &notes));
    let file = safetensors::serialize(views, Some(notes)).map_err(wrong)?;
    write_whole(path, &file).map_err(LmError::io(path))
}

/// The contents of a file.
pub(super) struct TensorFile {
    path: PathBuf,
    tensors: HashMap<String, (Vec<usize>, Vec<f32>)>,
    notes: HashMap<String, String>,
}

impl TensorFile {
    /// Reads all float32, float16 and bfloat16 tensors of a file as float32.
    ///
    /// # Errors
    /// A file that cannot be read, or that [`write`] wrote and that has changed since.
    pub(super) fn read(path: &Path) -> Result<Self, LmError> {
        let wrong = |e: SafeTensorError| LmError::file(path, e.to_string());
        let bytes = std::fs::read(path).map_err(LmError::io(path))?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(wrong)?;
        let notes = header.metadata().clone().unwrap_or_default();
        let file = SafeTensors::deserialize(&bytes).map_err(wrong)?;
        let tensors = file.tensors();
        // Files of other programs or of earlier versions of this one have no such note.
        if let Some(written) = notes.get(SHA256)
            && *written != digest(&tensors, &notes)
        {
            let why = "is damaged: a bit has changed since it was written; use another checkpoint, and \
                       check the disk";
            return Err(LmError::file(path, why));
        }
        let floats = tensors.into_iter().filter_map(|(name, view)| {
            let data = float32(view.dtype(), view.data())?;
            Some((name, (view.shape().to_vec(), data)))
        });
        let tensors = floats.collect();
        Ok(Self { path: path.to_owned(), tensors, notes })
    }

    /// Takes the elements of a tensor; fails if it is missing or has other dimensions.
    pub(super) fn take(&mut self, name: &str, dimensions: &[usize]) -> Result<Vec<f32>, LmError> {
        match self.tensors.remove(name) {
            Some((found, data)) if found == dimensions => Ok(data),
            Some((found, _)) => {
                Err(self.wrong(format!("{name} is {found:?}, but the model needs {dimensions:?}")))
            }
            None => {
                Err(self.wrong(format!("has no tensor {name} of float32, float16 or bfloat16")))
            }
        }
    }

    /// The note under a key; fails if it is missing or cannot be parsed.
    pub(super) fn note<T: FromStr>(&self, key: &str) -> Result<T, LmError> {
        self.notes
            .get(key)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.wrong(format!("has no valid {key}, so it is not a checkpoint")))
    }

    fn wrong(&self, why: String) -> LmError {
        LmError::file(&self.path, why)
    }
}

/// Converts floating-point elements to float32, which is exact; `None` for other types.
pub(super) fn float32(dtype: Dtype, data: &[u8]) -> Option<Vec<f32>> {
    match dtype {
        Dtype::F32 => Some(numbers(data, f32::from_le_bytes)),
        Dtype::F16 => Some(numbers(data, |bytes| f16::from_le_bytes(bytes).to_f32())),
        Dtype::BF16 => Some(numbers(data, |bytes| bf16::from_le_bytes(bytes).to_f32())),
        _ => None,
    }
}

fn numbers<const WIDTH: usize>(data: &[u8], number: impl Fn([u8; WIDTH]) -> f32) -> Vec<f32> {
    data.as_chunks::<WIDTH>().0.iter().map(|&bytes| number(bytes)).collect()
}
