//! Reads and writes factors as NumPy files.

use std::io;
use std::path::{Path, PathBuf};

use ndarray::{Array, Array1, Array3, Dimension};
use ndarray_npy::WriteNpyExt as _;

use super::factors::{Factors, FactorsError};
use crate::system::{FileError, write_whole};
use crate::targets::read_npy;

/// An error while factors are read or written.
#[derive(Debug, thiserror::Error)]
pub enum FactorsFileError {
    /// A file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Arrays that are not valid factors.
    #[error(transparent)]
    Factors(#[from] FactorsError),
}

/// Reads factors that [`write_factors`] wrote; without a `weights.npy` the weights are equal.
///
/// # Errors
/// A file cannot be read, or holds no factors.
pub fn read_factors(folder: &Path) -> Result<Factors, FactorsFileError> {
    fn npy<D: Dimension>(path: PathBuf) -> Result<Array<f64, D>, FactorsFileError> {
        let array = read_npy(&path).map_err(|e| FileError::read(&path, e))?;
        let array = array.into_dimensionality();
        Ok(array.map_err(|e| FileError::read(&path, io::Error::other(e)))?)
    }
    let queries: Array3<f64> = npy(folder.join("q.npy"))?;
    let keys = npy(folder.join("k.npy"))?;
    let weights = folder.join("weights.npy");
    let heads = queries.dim().0;
    let weights = match weights.exists() {
        true => npy(weights)?,
        false => Array1::from_elem(heads, 1.0 / heads as f64),
    };
    Ok(Factors::new(queries, keys, weights)?)
}

/// Writes factors as `q.npy` and `k.npy`, (heads, n, rank), and `weights.npy`, (heads), in float64, into `folder`, which is
/// created if it is missing.
///
/// # Errors
/// A file cannot be written.
pub fn write_factors(folder: &Path, factors: &Factors) -> Result<(), FactorsFileError> {
    fn npy<D: Dimension>(path: PathBuf, array: &Array<f64, D>) -> Result<(), FileError> {
        let mut bytes = Vec::new();
        array
            .write_npy(&mut bytes)
            .map_err(io::Error::other)
            .and_then(|()| write_whole(&path, &bytes))
            .map_err(|source| FileError::write(&path, source))
    }
    npy(folder.join("q.npy"), factors.queries())?;
    npy(folder.join("k.npy"), factors.keys())?;
    Ok(npy(folder.join("weights.npy"), factors.weights())?)
}
