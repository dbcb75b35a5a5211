//! Named tensors in files; safetensors files are written in float32 and atomically.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use candle_core::Tensor;
use safetensors::tensor::{Dtype, Metadata};
use safetensors::{SafeTensorError, SafeTensors, View};
use sha2::{Digest, Sha256};

use super::LmError;
use crate::system::{hexadecimal, write_whole};
use crate::targets::short_floats;

/// The key of the metadata that holds the [`digest`] of the rest of a file written by [`write`].
const SHA256: &str = "sha256";

/// SHA-256 of names, dimensions, contents and notes, each sorted by name. Without it a bit flipped on disk would stay
/// unnoticed in a weight and, in a moment of the optimiser, affect all later steps.
fn digest(tensors: &[(String, impl View)], notes: &HashMap<String, String>) -> String {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let mut sorted: Vec<_> = tensors.iter().collect();
    sorted.sort_by_key(|(name, _)| name);
    for (name, view) in sorted {
        add(name.as_bytes());
        add(format!("{:?}", view.shape()).as_bytes());
        add(&view.data());
    }
    let mut notes: Vec<_> = notes.iter().filter(|(key, _)| *key != SHA256).collect();
    notes.sort();
    for (key, note) in notes {
        add(key.as_bytes());
        add(note.as_bytes());
    }
    hexadecimal(&hash.finalize())
}

/// Writes float32 tensors and notes to a temporary file and then renames it to `path`, so that a file
/// of that name is always complete.
pub(super) fn write(
    path: &Path,
    tensors: &[(String, Tensor)],
    mut notes: HashMap<String, String>,
) -> Result<(), LmError> {
    notes.insert(SHA256.to_owned(), digest(tensors, &notes));
    let named = tensors.iter().map(|(name, tensor)| (name, tensor));
    let file = safetensors::serialize(named, Some(notes))
        .map_err(|e| LmError::file(path, e.to_string()))?;
    write_whole(path, &file).map_err(LmError::io(path))
}

/// A file with tensors.
pub(super) trait TensorSource: Send + Sync {
    /// The dimensions of a tensor of a readable type; `None` if there is none of this name.
    fn dimensions(&self, name: &str) -> Option<&[usize]>;

    /// The elements at `places` along a tensor's first axis.
    ///
    /// # Errors
    /// A file that can no longer be read.
    fn read(&self, name: &str, places: Range<usize>) -> Result<Vec<f32>, LmError>;

    /// The error that the file is wrong, with the reason.
    fn wrong(&self, why: String) -> LmError;
}

/// Number of bytes of the header's length.
const LENGTH: usize = 8;
/// The longest header that is read, which is the limit of the format.
const LONGEST_HEADER: u64 = 100_000_000;

/// A safetensors file. It is read instead of mapped: if a mapped file became shorter, the process would be ended.
pub(super) struct SafetensorsFile {
    path: PathBuf,
    header: Metadata,
    /// Offset of the tensors in the file.
    first: usize,
}

impl SafetensorsFile {
    /// Reads the header and checks it against the file's length.
    pub(super) fn open(path: &Path) -> Result<Self, LmError> {
        let wrong = |why: String| LmError::file(path, why);
        let failed = LmError::io(path);
        let mut file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut prefix = [0; LENGTH];
        if length < LENGTH as u64 {
            return Err(wrong(format!(
                "is cut off: it has {length} bytes and no header; get a whole copy"
            )));
        }
        file.read_exact(&mut prefix).map_err(failed)?;
        let header = u64::from_le_bytes(prefix);
        if header > LONGEST_HEADER || header > length - LENGTH as u64 {
            return Err(wrong(format!(
                "is cut off or not a safetensors file: its header needs {header} bytes, the file has \
                 {length}; get a whole copy"
            )));
        }
        let mut text = vec![0; header as usize];
        file.read_exact(&mut text).map_err(failed)?;
        let header: Metadata = serde_json::from_slice(&text).map_err(|e| {
            wrong(format!("has a header that cannot be read: {e}; get a whole copy"))
        })?;
        let first = LENGTH + text.len();
        let end = (first + header.data_len()) as u64;
        if length != end {
            return Err(wrong(format!(
                "has {length} bytes, but its header announces {end}; get a whole copy"
            )));
        }
        Ok(Self { path: path.to_owned(), header, first })
    }

    /// Opens a file that [`write`] wrote.
    ///
    /// # Errors
    /// A file that cannot be read, or that has changed since.
    pub(super) fn open_unchanged(path: &Path) -> Result<Self, LmError> {
        let file = Self::open(path)?;
        // Files of other programs or of earlier versions of this one have no such note.
        if let Some(written) = file.note(SHA256) {
            let wrong = |e: SafeTensorError| LmError::file(path, e.to_string());
            let bytes = std::fs::read(path).map_err(LmError::io(path))?;
            let tensors = SafeTensors::deserialize(&bytes).map_err(wrong)?.tensors();
            let notes = file.header.metadata().clone().unwrap_or_default();
            if *written != digest(&tensors, &notes) {
                let why = "is damaged: a bit has changed since it was written; use another checkpoint, and \
                           check the disk";
                return Err(LmError::file(path, why));
            }
        }
        Ok(file)
    }

    /// The elements of a tensor; fails if it is missing or has other dimensions.
    pub(super) fn tensor(&self, name: &str, dimensions: &[usize]) -> Result<Vec<f32>, LmError> {
        match self.dimensions(name) {
            Some(found) if found == dimensions => self.read(name, 0..dimensions[0]),
            Some(found) => {
                Err(self.wrong(format!("{name} is {found:?}, but the model needs {dimensions:?}")))
            }
            None => {
                Err(self.wrong(format!("has no tensor {name} of float32, float16 or bfloat16")))
            }
        }
    }

    /// The note of a checkpoint under a key; fails if it is missing or cannot be parsed.
    pub(super) fn parsed_note<T: FromStr>(&self, key: &str) -> Result<T, LmError> {
        let parsed = self.note(key).and_then(|text| text.parse().ok());
        parsed.ok_or_else(|| self.wrong(format!("has no valid {key}, so it is not a checkpoint")))
    }

    /// The metadata under a key.
    pub(super) fn note(&self, key: &str) -> Option<&str> {
        Some(self.header.metadata().as_ref()?.get(key)?)
    }

    /// Whether the file has a tensor of this name, of any type.
    pub(super) fn has(&self, name: &str) -> bool {
        self.header.info(name).is_some()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.header.offset_keys()
    }
}

impl TensorSource for SafetensorsFile {
    fn dimensions(&self, name: &str) -> Option<&[usize]> {
        let info = self.header.info(name).filter(|info| is_read(info.dtype))?;
        Some(&info.shape)
    }

    fn read(&self, name: &str, places: Range<usize>) -> Result<Vec<f32>, LmError> {
        let Some(info) = self.header.info(name) else {
            return Err(self.wrong(format!("has no tensor {name}")));
        };
        let (from, to) = info.data_offsets;
        let of_one = (to - from) / info.shape.first().map_or(1, |&first| first.max(1));
        let failed = LmError::io(&self.path);
        let mut file = File::open(&self.path).map_err(failed)?;
        let first = self.first + from + places.start * of_one;
        file.seek(SeekFrom::Start(first as u64)).map_err(failed)?;
        let mut bytes = vec![0; places.len() * of_one];
        file.read_exact(&mut bytes).map_err(failed)?;
        // Four-bit weights are stored as bytes.
        let numbers = match info.dtype {
            Dtype::U8 => Some(bytes.into_iter().map(f32::from).collect()),
            dtype => short_floats(dtype, &bytes),
        };
        numbers.ok_or_else(|| self.wrong(format!("{name} has type {:?}", info.dtype)))
    }

    fn wrong(&self, why: String) -> LmError {
        LmError::file(&self.path, why)
    }
}

fn is_read(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16 | Dtype::U8)
}
