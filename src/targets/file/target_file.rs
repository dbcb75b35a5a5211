//! Targets in files: reads and writes them in the format that the file's extension names.

use std::fs;
use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayView1};

#[cfg(feature = "parquet")]
use super::parquet;
use super::stack::{Problem, matrix_of};
use super::{csv, npy, safetensors};
use crate::system::write_whole_with;
use crate::targets::matrix::ROW_SUM_TOLERANCE;
use crate::targets::{Target, TargetError, Visibility};

/// Largest deviation of a row sum from 1 that half precision explains. bfloat16 rounds each entry by a relative error of up to
/// 2⁻⁹; this is twice that.
const HALF_PRECISION: f64 = 1.0 / 256.0;
/// A row whose sum is further from 1 than this is not attention, whatever its precision.
const NO_ROW_OF_ATTENTION: f64 = 0.01;

/// The location of a target and how to read it.
#[derive(Clone, Debug)]
pub struct TargetFile {
    /// The file. Its extension gives the format: `.npy` (float64, float32, float16, bfloat16 as ml_dtypes saves it, int32, int8
    /// or uint8), `.csv` (one line per row; a first line without numbers is a header), `.parquet` (one numeric column per
    /// matrix column; needs the feature `parquet`) or `.safetensors` (F64, F32, F16 or BF16; the only tensor of two or more
    /// dimensions, or the one named as in `heads.safetensors#layer0`).
    pub path: PathBuf,
    /// Index of the matrix in a stack of shape (heads, n, n), from 0.
    pub head: Option<usize>,
    /// Whether the entries are logits z. The target is then A = softmax(z), row by row over the pairs that the mask allows.
    pub logits: bool,
}

/// A target that was read from a file.
#[derive(Clone, Debug)]
pub struct TargetRead {
    /// The target.
    pub target: Target,
    /// Largest deviation of a row sum from 1, if the rows were rescaled because half precision had rounded them.
    pub rescaled: Option<f64>,
}

impl TargetFile {
    /// The file `path`, which holds one attention matrix.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), head: None, logits: false }
    }

    /// Reads the matrix without checking its entries.
    ///
    /// # Errors
    /// As [`Self::read`], except for the checks of entries and rows.
    pub fn matrix(&self) -> Result<Array2<f64>, TargetError> {
        read_matrix(&self.path, self.head).map_err(|problem| match problem {
            Problem::Unreadable(why) => TargetError::File { path: self.path.clone(), why },
            Problem::Unfit(problem) => self.unfit(problem),
        })
    }

    fn unfit(&self, problem: TargetError) -> TargetError {
        TargetError::InFile { path: self.path.clone(), problem: Box::new(problem) }
    }

    /// Reads the matrix and checks it row by row. If row sums differ from 1 by no more than half-precision rounding, each row
    /// is divided by its sum.
    ///
    /// # Errors
    /// `File` if the file is missing, cut off, of an unknown format or holds no such matrix of numbers; `InFile` around an
    /// error of [`Target::from_rows`], or around `NotSquare`, `Logits` or `NoLogits`.
    pub fn read(&self, visibility: Visibility) -> Result<TargetRead, TargetError> {
        let matrix = self.matrix()?;
        TargetRead::of_matrix(matrix, self.logits, visibility)
            .map_err(|problem| self.unfit(problem))
    }
}

impl TargetRead {
    /// Checks a matrix row by row. If row sums differ from 1 by no more than half-precision rounding, each row is divided by
    /// its sum. `logits` applies a softmax to the allowed part of each row first.
    ///
    /// # Errors
    /// As [`Target::from_rows`], or `NotSquare`, `Logits` or `NoLogits`.
    pub fn of_matrix(
        mut dense: Array2<f64>,
        logits: bool,
        visibility: Visibility,
    ) -> Result<Self, TargetError> {
        let (rows, columns) = dense.dim();
        if rows != columns {
            return Err(TargetError::NotSquare { rows, columns });
        }
        if logits {
            softmax(&mut dense, visibility)?;
        }
        let rescaled = rescale(&mut dense);
        match from_dense(&dense, visibility) {
            Ok(target) => Ok(Self { target, rescaled }),
            Err(error) => Err(logits_in(&dense, visibility).unwrap_or(error)),
        }
    }
}

impl Target {
    /// Reads a square row-stochastic matrix and checks it row by row. Calls [`TargetFile::read`] with a file of one matrix.
    ///
    /// # Errors
    /// As [`TargetFile::read`].
    pub fn read(path: &Path, visibility: Visibility) -> Result<Self, TargetError> {
        Ok(TargetFile::at(path).read(visibility)?.target)
    }

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

fn from_dense(dense: &Array2<f64>, visibility: Visibility) -> Result<Target, TargetError> {
    // NaN is not equal to 0, so it is kept and the check of the row finds it.
    let entries = |row: ArrayView1<'_, f64>| {
        row.iter().copied().enumerate().filter(|&(_, p)| p != 0.0).collect()
    };
    Target::from_rows(dense.outer_iter().map(entries).collect(), visibility)
}

/// Replaces logits by attention: exp(z − max z) / Σ over the columns that the mask allows, and 0 elsewhere.
fn softmax(logits: &mut Array2<f64>, visibility: Visibility) -> Result<(), TargetError> {
    let n = logits.nrows();
    for (row, mut z) in logits.outer_iter_mut().enumerate() {
        let seen = visibility.columns(row, n).end;
        let wrong =
            z.iter().enumerate().take(seen).find(|(_, z)| z.is_nan() || **z == f64::INFINITY);
        if let Some((column, &value)) = wrong {
            return Err(TargetError::NoLogits { row, column, value });
        }
        let most = z.iter().take(seen).copied().fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return Err(TargetError::NoLogits { row, column: 0, value: most });
        }
        z.indexed_iter_mut().for_each(|(column, z)| {
            *z = if column < seen { (*z - most).exp() } else { 0.0 };
        });
        let sum = z.sum();
        z /= sum;
    }
    Ok(())
}

/// Divides every row by its sum if the largest deviation from 1 is explained by half precision but not by single precision.
/// Returns that deviation, or `None` if the rows are unchanged.
fn rescale(dense: &mut Array2<f64>) -> Option<f64> {
    let furthest = dense.outer_iter().map(|row| (row.sum() - 1.0).abs()).fold(0.0, f64::max);
    if !(ROW_SUM_TOLERANCE..=HALF_PRECISION).contains(&furthest) {
        return None;
    }
    for mut row in dense.outer_iter_mut() {
        let sum = row.sum();
        row /= sum;
    }
    Some(furthest)
}

/// Returns `Logits` if the matrix looks like logits: more than half of the rows do not sum to 1, and some finite entry is not a
/// probability.
fn logits_in(dense: &Array2<f64>, visibility: Visibility) -> Option<TargetError> {
    let n = dense.nrows();
    let seen =
        |row: usize| dense.row(row).into_iter().take(visibility.columns(row, n).end).copied();
    let finite = || (0..n).flat_map(seen).filter(|z| z.is_finite());
    let least = finite().fold(f64::INFINITY, f64::min);
    let greatest = finite().fold(f64::NEG_INFINITY, f64::max);
    let no_rows = (0..n).filter(|&row| (seen(row).sum::<f64>() - 1.0).abs() > NO_ROW_OF_ATTENTION);
    let is_so = (least < 0.0 || greatest > 1.0) && 2 * no_rows.count() > n;
    is_so.then_some(TargetError::Logits { least, greatest })
}

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
fn read_matrix(path: &Path, head: Option<usize>) -> Result<Array2<f64>, Problem> {
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
