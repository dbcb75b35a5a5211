//! Targets in files: reads and writes them in the format that the file's extension names.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ndarray::{Array2, ArrayView1, s};

#[cfg(feature = "parquet")]
use super::parquet;
use super::stack::{StackIndex, matrix_of};
#[cfg(feature = "lm")]
use super::torch;
use super::{csv, mistakes, npy, npz, safetensors};
use crate::system::write_whole_with;
use crate::targets::matrix::ROW_SUM_TOLERANCE;
use crate::targets::{Target, TargetError, Visibility};

/// Largest deviation of a row sum from 1 that half precision explains. bfloat16 rounds each entry by a relative error of up to
/// 2⁻⁹; this is twice that.
const HALF_PRECISION: f64 = 1.0 / 256.0;

/// The location of a target and how to read it.
#[derive(Clone, Debug, Default)]
pub struct TargetFile {
    /// The file. Its extension gives the format: `.npy` (float64, float32, float16, bfloat16 as ml_dtypes saves it, int32, int8
    /// or uint8), `.npz` (such arrays; the only one, or the one named as in `heads.npz#layer0`), `.pt` or `.pth` (float tensors of
    /// PyTorch, named as in `saved.pt#attentions.0`; need the feature `lm`), `.csv`, `.tsv` or `.txt` (one line
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

    /// Reads the matrix and checks it row by row. If row sums differ from 1 by no more than half-precision rounding, each row
    /// is divided by its sum.
    ///
    /// # Errors
    /// The file is missing, cut off, of an unknown format or holds no such matrix of numbers; those of
    /// [`TargetRead::of_matrix`].
    pub fn read(&self, visibility: Visibility) -> Result<TargetRead, TargetError> {
        let (mut matrix, left_out) =
            read_matrix(&self.path, self.index).map_err(|problem| in_file(&self.path, problem))?;
        let mut left_out: Vec<String> = left_out.into_iter().map(ToOwned::to_owned).collect();
        if self.trim_padding {
            let (n, kept) = (matrix.nrows(), mistakes::without_padding(&matrix, self.logits));
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
        Ok(TargetRead { left_out, ..read.map_err(|problem| in_file(&self.path, problem))? })
    }
}

fn in_file(path: &Path, problem: TargetError) -> TargetError {
    TargetError::Other(format!("{}: {problem}", path.display()))
}

impl TargetRead {
    /// Checks a matrix row by row. If row sums differ from 1 by no more than half-precision rounding, each row is divided by
    /// its sum. `logits` applies a softmax to the allowed part of each row first.
    ///
    /// # Errors
    /// As [`Target::from_rows`], or a matrix that is not square, has no logits, or seems to hold padding,
    /// dropout or logits.
    pub fn of_matrix(
        mut dense: Array2<f64>,
        logits: bool,
        visibility: Visibility,
    ) -> Result<Self, TargetError> {
        let (rows, columns) = dense.dim();
        if rows != columns {
            return Err(TargetError::not_square(rows, columns));
        }
        if logits {
            softmax(&mut dense, visibility)?;
        }
        let rescaled = rescale(&mut dense);
        // NaN is not equal to 0, so it is kept and the check of the row finds it.
        let entries = |row: ArrayView1<'_, f64>| {
            row.iter().copied().enumerate().filter(|&(_, p)| p != 0.0).collect()
        };
        match Target::from_rows(dense.outer_iter().map(entries).collect(), visibility) {
            Ok(target) => Ok(Self { target, rescaled, left_out: Vec::new() }),
            Err(error) => {
                Err(mistakes::why_no_attention(&dense, visibility)
                    .map_or(error, TargetError::Other))
            }
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
    /// An extension that is not written, a missing folder or a full disk.
    pub fn write(&self, path: &Path) -> Result<(), TargetError> {
        write_matrix(&self.dense(), path)
    }
}

/// Replaces logits by attention: exp(z − max z) / Σ over the columns that the mask allows, and 0 elsewhere.
fn softmax(logits: &mut Array2<f64>, visibility: Visibility) -> Result<(), TargetError> {
    let n = logits.nrows();
    let wrong = |row: usize, column: usize, value: f64| {
        TargetError::Other(format!(
            "logits row {row}, column {column} (from 0) is {value}; each row needs finite values, and −inf only \
             where masked"
        ))
    };
    for (row, mut z) in logits.outer_iter_mut().enumerate() {
        let seen = visibility.columns(row, n).end;
        let mut entries = z.iter().enumerate().take(seen);
        if let Some((column, &value)) = entries.find(|(_, z)| z.is_nan() || **z == f64::INFINITY) {
            return Err(wrong(row, column, value));
        }
        let most = z.iter().take(seen).copied().fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return Err(wrong(row, 0, most));
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

/// The name of the tensor that is written to a .safetensors file.
const TENSOR_NAME: &str = "target";

const READ: &str = match cfg!(all(feature = "lm", feature = "parquet")) {
    true => ".npy, .npz, .pt, .csv, .tsv, .txt, .parquet or .safetensors",
    false => ".npy, .npz, .csv, .tsv, .txt or .safetensors",
};

/// The extension, which names the format, in lower case.
fn extension(path: &Path) -> Result<String, String> {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    extension.ok_or_else(|| format!("no extension; use {READ}"))
}

/// Reads the matrix of a file, or one of a stack, and says what beside it was left out.
fn read_matrix(
    path: &Path,
    index: StackIndex,
) -> Result<(Array2<f64>, Vec<&'static str>), TargetError> {
    let (file, name) = split_name(path);
    let name = name.as_deref();
    let bytes = || match file.is_dir() {
        true => Err("it is a folder; name a file".to_owned()),
        false => fs::read(&file).map_err(|error| error.to_string()),
    };
    let of_table = |(matrix, left_out): (Array2<f64>, _)| (matrix.into_dyn(), left_out);
    let (array, left_out) = match extension(&file)?.as_str() {
        "npy" => (npy::read(&bytes()?)?, Vec::new()),
        "npz" => (npz::read(&bytes()?, name)?, Vec::new()),
        "safetensors" => (safetensors::read(&bytes()?, name)?, Vec::new()),
        #[cfg(feature = "lm")]
        "pt" | "pth" => (torch::read(&bytes()?, name)?, Vec::new()),
        "csv" | "tsv" | "txt" => of_table(csv::read(&bytes()?)?),
        #[cfg(feature = "parquet")]
        "parquet" => of_table(parquet::read(&bytes()?)?),
        other => return Err(format!("unknown extension .{other}; use {READ}").into()),
    };
    Ok((matrix_of(array, index)?, left_out))
}

/// Writes any matrix as [`Target::write`] does.
///
/// # Errors
/// As [`Target::write`].
pub fn write_matrix(matrix: &Array2<f64>, path: &Path) -> Result<(), TargetError> {
    write_whole_with(path, |file| match extension(path).map_err(io::Error::other)?.as_str() {
        "npy" => npy::write(matrix, file),
        "csv" => csv::write(matrix, file),
        "safetensors" => safetensors::write(matrix, TENSOR_NAME, file),
        #[cfg(feature = "parquet")]
        "parquet" => parquet::write(matrix, file),
        _ => Err(io::Error::other("use .npy, .csv, .parquet or .safetensors")),
    })
    .map_err(|why| format!("cannot write the target {}: {why}", path.display()).into())
}

/// Splits `file.safetensors#name`, `file.npz#name` or `file.pt#name` into file and name. An existing file with # in its own name is not split.
fn split_name(path: &Path) -> (PathBuf, Option<String>) {
    if !path.exists()
        && let Some((file, name)) = path.to_string_lossy().rsplit_once('#')
        && matches!(extension(Path::new(file)).as_deref(), Ok("safetensors" | "npz" | "pt" | "pth"))
    {
        return (PathBuf::from(file), Some(name.to_owned()));
    }
    (path.to_owned(), None)
}
