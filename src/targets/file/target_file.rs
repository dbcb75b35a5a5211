//! Reads a target from a file: a matrix of attention or logits, or one matrix of a stack.

use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayView1};

use super::format::read_matrix;
use super::problem::Problem;
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
        let mut dense = self.matrix()?;
        if self.logits {
            softmax(&mut dense, visibility).map_err(|problem| self.unfit(problem))?;
        }
        let rescaled = rescale(&mut dense);
        match from_dense(&dense, visibility) {
            Ok(target) => Ok(TargetRead { target, rescaled }),
            Err(error) => Err(self.unfit(logits_in(&dense, visibility).unwrap_or(error))),
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
