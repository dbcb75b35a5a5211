//! A `.gguf` file of weights, most of them quantised: each is read and made numbers of when it is asked for.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};

use super::TensorSource;
use crate::lm::LmError;

pub(in crate::lm::foreign) struct GgufFile {
    path: PathBuf,
    content: Content,
    /// Dimensions by name.
    dimensions: HashMap<String, Vec<usize>>,
}

impl GgufFile {
    /// Reads the header, and holds it to the file's length.
    pub(in crate::lm::foreign) fn open(path: &Path) -> Result<Self, LmError> {
        let failed = |source| LmError::Io { path: path.to_owned(), source };
        let wrong = |why: String| LmError::File { path: path.to_owned(), why };
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let content = Content::read(&mut BufReader::new(file)).map_err(|e| {
            wrong(format!("has a header that cannot be read: {}; download it again", one_line(&e)))
        })?;
        for (name, info) in &content.tensor_infos {
            let blocks = info.shape.elem_count() / info.ggml_dtype.block_size();
            let end = (blocks as u64)
                .saturating_mul(info.ggml_dtype.type_size() as u64)
                .saturating_add(content.tensor_data_offset)
                .saturating_add(info.offset);
            if end > length {
                return Err(wrong(format!(
                    "is cut off: {name} ends at byte {end}, the file has {length}; download it again"
                )));
            }
        }
        let dimensions = content.tensor_infos.iter();
        let dimensions =
            dimensions.map(|(name, info)| (name.clone(), info.shape.dims().to_vec())).collect();
        Ok(Self { path: path.to_owned(), content, dimensions })
    }

    /// What the file says beside its tensors.
    pub(in crate::lm::foreign) fn value(&self, key: &str) -> Option<&Value> {
        self.content.metadata.get(key)
    }

    pub(in crate::lm::foreign) fn names(&self) -> impl Iterator<Item = &str> {
        self.dimensions.keys().map(String::as_str)
    }

    pub(in crate::lm::foreign) fn path(&self) -> &Path {
        &self.path
    }
}

impl TensorSource for GgufFile {
    fn dimensions(&self, name: &str) -> Option<&[usize]> {
        self.dimensions.get(name).map(Vec::as_slice)
    }

    fn read(&self, name: &str, places: Range<usize>) -> Result<Vec<f32>, LmError> {
        let failed = |source| LmError::Io { path: self.path.clone(), source };
        let mut file = File::open(&self.path).map_err(failed)?;
        let info = self.content.tensor_infos.get(name);
        let info = info.ok_or_else(|| self.wrong(format!("has no tensor {name}")))?;
        // Rows are whole numbers of blocks: some of them are a tensor of their own.
        let mut part = TensorInfo {
            ggml_dtype: info.ggml_dtype,
            shape: info.shape.clone(),
            offset: info.offset,
        };
        let dimensions = info.shape.dims();
        let of_one: usize = dimensions[1..].iter().product();
        let block = info.ggml_dtype.block_size();
        let is_whole = dimensions.len() > 1 && of_one.is_multiple_of(block);
        if is_whole {
            let mut shape = dimensions.to_vec();
            shape[0] = places.len();
            part.shape = shape.into();
            let bytes = of_one / block * info.ggml_dtype.type_size();
            part.offset += (places.start * bytes) as u64;
        }
        let tensor = part.read(&mut file, self.content.tensor_data_offset, &Device::Cpu)?;
        let numbers = tensor.dequantize(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>()?;
        Ok(match is_whole {
            true => numbers,
            false => numbers[places.start * of_one..places.end * of_one].to_vec(),
        })
    }

    fn wrong(&self, why: String) -> LmError {
        LmError::File { path: self.path.clone(), why }
    }
}

/// The first line of an error: what follows may be where in a library it arose.
fn one_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
