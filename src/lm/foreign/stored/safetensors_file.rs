//! A `.safetensors` file of weights: its header is read at once, its tensors when they are asked for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata};

use super::TensorSource;
use crate::lm::LmError;
use crate::lm::tensor_file::float32;

/// Bytes that say how long the header is.
const LENGTH: usize = 8;
/// The longest header that is read, the format's own limit.
const LONGEST_HEADER: u64 = 100_000_000;

/// Not mapped into memory but read in place: where a file that is mapped becomes shorter, the process ends.
pub(in crate::lm) struct SafetensorsFile {
    path: PathBuf,
    /// What its writer says beside the tensors.
    notes: HashMap<String, String>,
    /// What can be read.
    tensors: HashMap<String, Place>,
}

/// Where a tensor lies.
struct Place {
    dtype: Dtype,
    dimensions: Vec<usize>,
    /// Its bytes in the file.
    bytes: Range<usize>,
}

impl SafetensorsFile {
    /// Reads the header, and holds it to the file's length.
    pub(in crate::lm) fn open(path: &Path) -> Result<Self, LmError> {
        let wrong = |why: String| LmError::File { path: path.to_owned(), why };
        let failed = |source| LmError::Io { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut prefix = [0; LENGTH];
        if length < LENGTH as u64 {
            return Err(wrong(format!(
                "is cut off: it has {length} bytes and no header; download it again"
            )));
        }
        file.read_exact(&mut prefix).map_err(failed)?;
        let header = u64::from_le_bytes(prefix);
        if header > LONGEST_HEADER || header > length - LENGTH as u64 {
            return Err(wrong(format!(
                "is cut off or not a safetensors file: its header needs {header} bytes, the file has \
                 {length}; download it again"
            )));
        }
        let mut text = vec![0; header as usize];
        file.read_exact(&mut text).map_err(failed)?;
        let metadata: Metadata = serde_json::from_slice(&text).map_err(|e| {
            wrong(format!("has a header that cannot be read: {e}; download it again"))
        })?;
        let first = LENGTH + text.len();
        let end = (first + metadata.data_len()) as u64;
        if length != end {
            return Err(wrong(format!(
                "has {length} bytes, but its header announces {end}; download it again"
            )));
        }
        let place = |(name, info): (String, &safetensors::tensor::TensorInfo)| {
            let (from, to) = info.data_offsets;
            let place = Place {
                dtype: info.dtype,
                dimensions: info.shape.clone(),
                bytes: first + from..first + to,
            };
            (name, place)
        };
        let tensors = metadata.tensors().into_iter().map(place);
        let notes = metadata.metadata().clone().unwrap_or_default();
        Ok(Self { path: path.to_owned(), notes, tensors: tensors.collect() })
    }

    /// What the file says of itself under a key.
    pub(in crate::lm) fn note(&self, key: &str) -> Option<&str> {
        self.notes.get(key).map(String::as_str)
    }

    /// Whether the file has a tensor of that name, of whatever type.
    pub(in crate::lm::foreign) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub(in crate::lm::foreign) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The type of a tensor that is not of numbers that can be read.
    pub(in crate::lm::foreign) fn unreadable(&self, name: &str) -> Option<Dtype> {
        self.tensors.get(name).map(|place| place.dtype).filter(|&dtype| !is_read(dtype))
    }
}

impl TensorSource for SafetensorsFile {
    fn dimensions(&self, name: &str) -> Option<&[usize]> {
        let place = self.tensors.get(name).filter(|place| is_read(place.dtype))?;
        Some(&place.dimensions)
    }

    fn read(&self, name: &str, places: Range<usize>) -> Result<Vec<f32>, LmError> {
        let Some(place) = self.tensors.get(name) else {
            return Err(self.wrong(format!("has no tensor {name}")));
        };
        let of_one = place.bytes.len() / place.dimensions.first().map_or(1, |&first| first.max(1));
        let failed = |source| LmError::Io { path: self.path.clone(), source };
        let mut file = File::open(&self.path).map_err(failed)?;
        let first = place.bytes.start + places.start * of_one;
        file.seek(SeekFrom::Start(first as u64)).map_err(failed)?;
        let mut bytes = vec![0; places.len() * of_one];
        file.read_exact(&mut bytes).map_err(failed)?;
        // Four-bit weights come as bytes.
        let numbers = match place.dtype {
            Dtype::U8 => Some(bytes.into_iter().map(f32::from).collect()),
            dtype => float32(dtype, &bytes),
        };
        numbers.ok_or_else(|| self.wrong(format!("{name} has type {:?}", place.dtype)))
    }

    fn wrong(&self, why: String) -> LmError {
        LmError::File { path: self.path.clone(), why }
    }
}

fn is_read(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16 | Dtype::U8)
}
