//! Targets in files: reads and writes them in the format that the file's extension names.

use std::fs;
use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayView1, s};

#[cfg(feature = "parquet")]
use super::parquet;
use super::stack::{Problem, StackIndex, matrix_of};
use super::{csv, npy, npz, padding, safetensors};
use crate::system::write_whole_with;
use crate::targets::matrix::ROW_SUM_TOLERANCE;
use crate::targets::{Target, TargetError, Visibility};

/// Largest deviation of a row sum from 1 that half precision explains. bfloat16 rounds each entry by a relative error of up to
/// 2⁻⁹; this is twice that.
const HALF_PRECISION: f64 = 1.0 / 256.0;
/// A row whose sum is further from 1 than this is not attention, whatever its precision.
const NO_ROW_OF_ATTENTION: f64 = 0.01;
/// Least share of zeros that dropout leaves, ...
const LEAST_DROPPED: f64 = 0.02;
/// ... and how far from 1 the mean row sum may then be.
const MEAN_AFTER_DROPOUT: f64 = 0.25;

/// The location of a target and how to read it.
#[derive(Clone, Debug, Default)]
pub struct TargetFile {
    /// The file. Its extension gives the format: `.npy` (float64, float32, float16, bfloat16 as ml_dtypes saves it, int32, int8
    /// or uint8), `.npz` (such arrays; the only one, or the one named as in `heads.npz#layer0`), `.csv`, `.tsv` or `.txt` (one line
    /// per row, separated by commas, semicolons, tabs or spaces; a header and an index are left out), `.parquet` (one numeric
    /// column per matrix column, an index of pandas left out; needs the feature `parquet`) or `.safetensors` (F64, F32, F16 or
    /// BF16; the only tensor of two or more dimensions, or the one named as in `heads.safetensors#layer0`).
    pub path: PathBuf,
    /// The matrix of a stack.
    pub index: StackIndex,
    /// Whether the entries are logits z. The target is then A = softmax(z), row by row over the pairs that the mask allows.
    pub logits: bool,
    /// Whether tokens at either end are left out whose row or column is zero (−∞ in logits), as padding leaves them.
    pub trim_padding: bool,
}

/// A target that was read from a file.
#[derive(Clone, Debug)]
pub struct TargetRead {
    /// The target.
    pub target: Target,
    /// Largest deviation of a row sum from 1, if the rows were rescaled because half precision had rounded them.
    pub rescaled: Option<f64>,
    /// What was left out of the file: a header, an index, tokens of padding.
    pub left_out: Vec<String>,
}

impl TargetFile {
    /// The file `path`, which holds one attention matrix.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }

    /// Reads the matrix without checking its entries.
    ///
    /// # Errors
    /// As [`Self::read`], except for the checks of entries and rows.
    pub fn matrix(&self) -> Result<Array2<f64>, TargetError> {
        Ok(self.matrix_and_left_out()?.0)
    }

    fn matrix_and_left_out(&self) -> Result<(Array2<f64>, Vec<&'static str>), TargetError> {
        read_matrix(&self.path, self.index).map_err(|problem| match problem {
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
    /// error of [`TargetRead::of_matrix`].
    pub fn read(&self, visibility: Visibility) -> Result<TargetRead, TargetError> {
        let (mut matrix, left_out) = self.matrix_and_left_out()?;
        let mut left_out: Vec<String> = left_out.into_iter().map(ToOwned::to_owned).collect();
        if self.trim_padding {
            let (n, kept) = (matrix.nrows(), padding::tokens(&matrix, self.logits));
            matrix = matrix.slice_move(s![kept.clone(), kept.clone()]);
            let trimmed = n - matrix.nrows();
            if trimmed > 0 {
                let (first, last) = (kept.start, kept.end - 1);
                left_out.push(format!(
                    "{trimmed} of {n} tokens of padding; {first} to {last} are kept"
                ));
            }
        }
        let read = TargetRead::of_matrix(matrix, self.logits, visibility);
        Ok(TargetRead { left_out, ..read.map_err(|problem| self.unfit(problem))? })
    }
}

impl TargetRead {
    /// Checks a matrix row by row. If row sums differ from 1 by no more than half-precision rounding, each row is divided by
    /// its sum. `logits` applies a softmax to the allowed part of each row first.
    ///
    /// # Errors
    /// As [`Target::from_rows`], or `NotSquare`, `Logits`, `NoLogits`, `Padding` or `Dropout`.
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
            Ok(target) => Ok(Self { target, rescaled, left_out: Vec::new() }),
            Err(error) => Err(padding::rows_of(&dense)
                .or_else(|| dropout_in(&dense, visibility))
                .or_else(|| logits_in(&dense, visibility))
                .unwrap_or(error)),
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

/// Returns `Dropout` if the matrix looks like attention after dropout with rescaling: none of its entries is negative, some are
/// zero, more than half of the rows do not sum to 1, and the mean row does.
fn dropout_in(dense: &Array2<f64>, visibility: Visibility) -> Option<TargetError> {
    let n = dense.nrows();
    let seen = |row: usize| dense.row(row).slice_move(s![visibility.columns(row, n)]);
    let sums: Vec<f64> = (0..n).map(|row| seen(row).sum()).collect();
    let count: usize = (0..n).map(|row| seen(row).len()).sum();
    let zeros = (0..n).flat_map(seen).filter(|p| **p == 0.0).count() as f64 / count as f64;
    let mean = sums.iter().sum::<f64>() / n as f64;
    let off = sums.iter().filter(|sum| (*sum - 1.0).abs() > NO_ROW_OF_ATTENTION).count();
    let is_so = dense.iter().all(|p| *p >= 0.0 && p.is_finite())
        && zeros > LEAST_DROPPED
        && (mean - 1.0).abs() < MEAN_AFTER_DROPOUT
        && 2 * off > n;
    let [least, greatest] = [f64::min, f64::max].map(|of| sums.iter().copied().reduce(of));
    is_so.then_some(TargetError::Dropout { zeros, least: least?, greatest: greatest? })
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

const EXTENSIONS: &str = ".npy, .npz, .csv, .tsv, .txt, .parquet or .safetensors";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Npy,
    Npz,
    Csv,
    /// `.tsv` and `.txt`, which are read as `.csv` is.
    Text,
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
            Some("npz") => Ok(Self::Npz),
            Some("csv") => Ok(Self::Csv),
            Some("tsv" | "txt") => Ok(Self::Text),
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Self::Parquet),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => Err(
                "this build cannot read .parquet; build it with the feature parquet, or use .npy, \
                         .csv or .safetensors"
                    .to_owned(),
            ),
            Some("safetensors") => Ok(Self::Safetensors),
            Some(other) => Err(format!("unknown extension .{other}; use {EXTENSIONS}")),
            None => Err(format!("no extension; use {EXTENSIONS}")),
        }
    }
}

/// Reads the matrix of a file, or one of a stack, and says what beside it was left out.
fn read_matrix(
    path: &Path,
    index: StackIndex,
) -> Result<(Array2<f64>, Vec<&'static str>), Problem> {
    let (file, name) = split_name(path);
    let name = name.as_deref();
    let format = Format::of(&file)?;
    let bytes = bytes(&file)?;
    let of_table = |(matrix, left_out): (Array2<f64>, _)| (matrix.into_dyn(), left_out);
    let (array, left_out) = match format {
        Format::Npy => (npy::read(&bytes)?, Vec::new()),
        Format::Npz => (npz::read(&bytes, name)?, Vec::new()),
        Format::Safetensors => (safetensors::read(&bytes, name)?, Vec::new()),
        Format::Csv | Format::Text => of_table(csv::read(&bytes)?),
        #[cfg(feature = "parquet")]
        Format::Parquet => of_table(parquet::read(&bytes)?),
    };
    Ok((matrix_of(array, index)?, left_out))
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
            Format::Npz | Format::Text => {
                Err("it can be read, not written; use .npy, .csv, .parquet or .safetensors"
                    .to_owned())
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => parquet::write(matrix, file),
            Format::Safetensors => safetensors::write(matrix, TENSOR_NAME, file),
        }
        .map_err(std::io::Error::other)
    })
    .map_err(|error| wrong(error.to_string()))
}

/// Splits `file.safetensors#name` or `file.npz#name` into file and name. An existing file with # in its own name is not split.
fn split_name(path: &Path) -> (PathBuf, Option<String>) {
    if !path.exists()
        && let Some((file, tensor)) = path.to_string_lossy().rsplit_once('#')
        && matches!(Format::of(Path::new(file)), Ok(Format::Safetensors | Format::Npz))
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
