//! A target that a file holds: a matrix, or one of a stack; of attention, or of logits.

use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayView1};

use super::format::read_matrix;
use super::problem::Problem;
use crate::targets::matrix::ROW_SUM_TOLERANCE;
use crate::targets::{Target, TargetError, Visibility};

/// How far rows of half-precision numbers may be from summing to 1: bfloat16 rounds each entry by a share of up to
/// 2⁻⁹, of which this is twice.
const HALF_PRECISION: f64 = 1.0 / 256.0;
/// Rows further than this from summing to 1 are of no attention, whatever its precision.
const NO_ROW_OF_ATTENTION: f64 = 0.01;

/// Where a target is, and what stands there.
#[derive(Clone, Debug)]
pub struct TargetFile {
    /// The file, by extension `.npy` (float64, float32, float16, bfloat16 as ml_dtypes saves it, int32, int8 or uint8),
    /// `.csv` (a line a row; a first line without any number is a header), `.parquet` (one numeric column a matrix
    /// column; with the feature `parquet`), `.safetensors` (its one tensor of two dimensions or more, or the one named
    /// as in `heads.safetensors#layer0`; F64, F32, F16 or BF16).
    pub path: PathBuf,
    /// Which matrix of a stack of shape (heads, n, n), from 0.
    pub head: Option<usize>,
    /// Whether the entries are logits z, of which A = softmax(z) is the target, row by row over the pairs that the
    /// visibility shows.
    pub logits: bool,
}

/// A target as it was read.
#[derive(Clone, Debug)]
pub struct TargetRead {
    /// The target.
    pub target: Target,
    /// How far from 1 its rows summed at most, where they were divided by their sums as rounded to half precision.
    pub rescaled: Option<f64>,
}

impl TargetFile {
    /// A matrix of attention at `path`.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), head: None, logits: false }
    }

    /// The matrix as it stands, whatever it is of.
    ///
    /// # Errors
    /// As [`Self::read`], but for what is checked row by row.
    pub fn matrix(&self) -> Result<Array2<f64>, TargetError> {
        read_matrix(&self.path, self.head).map_err(|problem| match problem {
            Problem::Unreadable(why) => TargetError::File { path: self.path.clone(), why },
            Problem::Unfit(problem) => self.unfit(problem),
        })
    }

    fn unfit(&self, problem: TargetError) -> TargetError {
        TargetError::InFile { path: self.path.clone(), problem: Box::new(problem) }
    }

    /// Reads the matrix and checks it row by row. Rows that miss 1 by no more than the rounding of half precision are
    /// divided by their sums.
    ///
    /// # Errors
    /// `File` where the file is missing, cut off, of an unknown kind or holds no such matrix of numbers; `InFile`
    /// around what [`Target::from_rows`] finds wrong, or around `NotSquare`, `Logits` or `NoLogits`.
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
    /// Reads a square row-stochastic matrix and checks it row by row: [`TargetFile::read`] of a file with one.
    ///
    /// # Errors
    /// As [`TargetFile::read`].
    pub fn read(path: &Path, visibility: Visibility) -> Result<Self, TargetError> {
        Ok(TargetFile::at(path).read(visibility)?.target)
    }
}

fn from_dense(dense: &Array2<f64>, visibility: Visibility) -> Result<Target, TargetError> {
    // NaN is not equal to 0, so it stays and is found by the check.
    let entries = |row: ArrayView1<'_, f64>| {
        row.iter().copied().enumerate().filter(|&(_, p)| p != 0.0).collect()
    };
    Target::from_rows(dense.outer_iter().map(entries).collect(), visibility)
}

/// Logits into attention: exp(z − max z) / Σ over what a row sees, and 0 elsewhere.
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

/// Divides every row by its sum where all of them are as near to 1 as half precision brings them, and not all nearer
/// than single precision does; then says how far the furthest was.
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

/// That a matrix which is no attention looks like logits: rows that are none of attention, of finite numbers some of
/// which no probability can be.
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
