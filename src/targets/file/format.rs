//! Reads and writes a target in the format that the file's extension names.

use std::fs;
use std::path::{Path, PathBuf};

use ndarray::Array2;

#[cfg(feature = "parquet")]
use super::parquet;
use super::problem::Problem;
use super::stack::matrix_of;
use super::{csv, npy, safetensors};
use crate::system::write_whole_with;
use crate::targets::{Target, TargetError};

/// The name of the tensor that is written to a .safetensors file.
const TENSOR_NAME: &str = "target";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Npy,
    Csv,
    #[cfg(feature = "parquet")]
    Parquet,
    Safetensors,
}

impl Format {
    /// Chooses the format by the extension, regardless of case.
    fn of(path: &Path) -> Result<Self, String> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("npy") => Ok(Self::Npy),
            Some("csv") => Ok(Self::Csv),
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Self::Parquet),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => Err(
                "this build cannot read .parquet; build it with the feature parquet, or use .npy, \
                         .csv or .safetensors"
                    .to_owned(),
            ),
            Some("safetensors") => Ok(Self::Safetensors),
            Some(other) => {
                Err(format!("unknown extension .{other}; use .npy, .csv, .parquet or .safetensors"))
            }
            None => Err("no extension; use .npy, .csv, .parquet or .safetensors".to_owned()),
        }
    }
}

/// Reads the matrix of a file, or one head of a stack.
pub(super) fn read_matrix(path: &Path, head: Option<usize>) -> Result<Array2<f64>, Problem> {
    let (file, tensor) = split_tensor_name(path);
    let format = Format::of(&file)?;
    let array = match format {
        Format::Npy => npy::read(&bytes(&file)?)?,
        Format::Csv => csv::read(&bytes(&file)?)?.into_dyn(),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::read(&bytes(&file)?)?.into_dyn(),
        Format::Safetensors => safetensors::read(&bytes(&file)?, tensor.as_deref())?,
    };
    matrix_of(array, head)
}

impl Target {
    /// Writes the matrix, dense and in float64, in the format that the extension names.
    ///
    /// The file is written under a temporary name and renamed, so it is never partial. A `.safetensors` file gets one tensor,
    /// named `target`.
    ///
    /// # Errors
    /// `Write` for an unknown extension, a missing folder or a full disk.
    pub fn write(&self, path: &Path) -> Result<(), TargetError> {
        write_matrix(&self.dense(), path)
    }
}

/// Writes any matrix as [`Target::write`] does.
///
/// # Errors
/// As [`Target::write`].
pub fn write_matrix(matrix: &Array2<f64>, path: &Path) -> Result<(), TargetError> {
    let wrong = |why: String| TargetError::Write { path: path.to_owned(), why };
    let format = Format::of(path).map_err(wrong)?;
    write_whole_with(path, |file| {
        match format {
            Format::Npy => npy::write(matrix, file),
            Format::Csv => csv::write(matrix, file),
            #[cfg(feature = "parquet")]
            Format::Parquet => parquet::write(matrix, file),
            Format::Safetensors => safetensors::write(matrix, TENSOR_NAME, file),
        }
        .map_err(std::io::Error::other)
    })
    .map_err(|error| wrong(error.to_string()))
}

/// Splits `file.safetensors#name` into file and tensor name. An existing file with # in its own name is not split.
fn split_tensor_name(path: &Path) -> (PathBuf, Option<String>) {
    if !path.exists()
        && let Some((file, tensor)) = path.to_string_lossy().rsplit_once('#')
        && Format::of(Path::new(file)) == Ok(Format::Safetensors)
    {
        return (PathBuf::from(file), Some(tensor.to_owned()));
    }
    (path.to_owned(), None)
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    if path.is_dir() {
        return Err("it is a folder; name a file".to_owned());
    }
    fs::read(path).map_err(|error| error.to_string())
}
