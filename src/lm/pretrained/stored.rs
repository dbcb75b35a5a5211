//! Tensors of a model's files, read on demand, so that memory use does not grow with the model.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};
use ndarray::{Array, Array2, ArrayD, Axis, Dimension, Ix2, concatenate};

use crate::lm::LmError;
use crate::lm::tensor_file::TensorSource;

/// A reference to a tensor in a file.
#[derive(Clone)]
pub(super) struct Stored {
    source: Arc<dyn TensorSource>,
    name: String,
    dimensions: Vec<usize>,
}

impl Stored {
    /// The tensor of this name; `None` if there is none.
    pub(super) fn find(source: &Arc<dyn TensorSource>, name: &str) -> Option<Self> {
        let dimensions = source.dimensions(name)?.to_vec();
        Some(Self { source: source.clone(), name: name.to_owned(), dimensions })
    }

    pub(super) fn dimensions(&self) -> &[usize] {
        &self.dimensions
    }

    /// The error that the tensor's file is wrong, with the reason.
    pub(super) fn wrong(&self, why: String) -> LmError {
        self.source.wrong(why)
    }

    /// Reads the whole tensor as a vector or a matrix.
    pub(super) fn whole<D: Dimension>(&self) -> Result<Array<f32, D>, LmError> {
        self.places(0..self.dimensions[0], &self.dimensions)
    }

    /// Reads rows of a matrix, in the order of `rows`.
    pub(super) fn rows(&self, rows: &[usize]) -> Result<Array2<f32>, LmError> {
        let one = |&row: &usize| self.places::<Ix2>(row..row + 1, &[1, self.dimensions[1]]);
        let found = rows.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let views: Vec<_> = found.iter().map(|row| row.view()).collect();
        Ok(concatenate(Axis(0), &views).map_err(candle_core::Error::wrap)?)
    }

    /// Reads one index of the first axis: a matrix from three dimensions, a vector from two.
    pub(super) fn at<D: Dimension>(&self, place: usize) -> Result<Array<f32, D>, LmError> {
        self.places(place..place + 1, &self.dimensions[1..])
    }

    fn places<D: Dimension>(
        &self,
        places: Range<usize>,
        shape: &[usize],
    ) -> Result<Array<f32, D>, LmError> {
        let data = self.source.read(&self.name, places)?;
        let all = ArrayD::from_shape_vec(shape, data).and_then(ArrayD::into_dimensionality);
        Ok(all.map_err(candle_core::Error::wrap)?)
    }
}

pub(super) struct GgufFile {
    path: PathBuf,
    content: Content,
}

impl GgufFile {
    /// Reads the header and checks it against the file's length.
    pub(super) fn open(path: &Path) -> Result<Self, LmError> {
        let failed = LmError::io(path);
        let wrong = |why: String| LmError::file(path, why);
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
        Ok(Self { path: path.to_owned(), content })
    }

    /// The metadata under a key.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.content.metadata.get(key)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.content.tensor_infos.keys().map(String::as_str)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl TensorSource for GgufFile {
    fn dimensions(&self, name: &str) -> Option<&[usize]> {
        self.content.tensor_infos.get(name).map(|info| info.shape.dims())
    }

    fn read(&self, name: &str, places: Range<usize>) -> Result<Vec<f32>, LmError> {
        let failed = LmError::io(&self.path);
        let mut file = File::open(&self.path).map_err(failed)?;
        let info = self.content.tensor_infos.get(name);
        let info = info.ok_or_else(|| self.wrong(format!("has no tensor {name}")))?;
        // A row is a whole number of blocks, so a range of rows can be read as a tensor.
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
        LmError::file(&self.path, why)
    }
}

/// The first line of an error; further lines may be a backtrace of a library.
fn one_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
