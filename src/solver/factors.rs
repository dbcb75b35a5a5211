//! Low-rank queries and keys, one pair per head, the weights of their mixture, and their NumPy files.

use std::io;
use std::path::{Path, PathBuf};

use ndarray::{Array, Array1, Array2, Array3, ArrayView2, Dimension, s};
use ndarray_npy::WriteNpyExt as _;

use super::error::FitError;
use crate::numerics::product;
use crate::system::{FileError, write_whole};
use crate::targets::read_npy;

/// Factors Q, K of shape (heads, n, rank) and head weights π on the simplex, all finite.
///
/// They define logits Zₕ = QₕKₕᵀ/√rank and attention P = Σₕ πₕ softmax(Zₕ).
#[derive(Clone, Debug, PartialEq)]
pub struct Factors {
    queries: Array3<f64>,
    keys: Array3<f64>,
    weights: Array1<f64>,
}

impl Factors {
    /// Checks shapes and values and builds factors.
    ///
    /// # Errors
    /// The three shapes do not fit together, a value is not finite, or the weights are not a distribution.
    pub fn new(
        queries: Array3<f64>,
        keys: Array3<f64>,
        weights: Array1<f64>,
    ) -> Result<Self, FitError> {
        let (heads, n, rank) = queries.dim();
        let wrong = |why: String| Err(FitError::Other(format!("factors {why}")));
        if keys.dim() != (heads, n, rank) || weights.len() != heads || heads * n * rank == 0 {
            return wrong(format!(
                "have shapes {:?} (queries), {:?} (keys) and {} (weights); they must be (heads, n, rank) twice and \
                 (heads)",
                queries.dim(),
                keys.dim(),
                weights.len()
            ));
        }
        if !queries.iter().chain(&keys).all(|v| v.is_finite()) {
            return wrong("have a query or key that is NaN or infinite".to_owned());
        }
        if !weights.iter().all(|&w| (0.0..=1.0 + 1e-12).contains(&w))
            || (weights.sum() - 1.0).abs() > 1e-9
        {
            return wrong("have head weights that are not on the simplex".to_owned());
        }
        Ok(Self { queries, keys, weights })
    }

    /// The number of heads.
    pub fn heads(&self) -> usize {
        self.queries.dim().0
    }

    /// The sequence length.
    pub fn n(&self) -> usize {
        self.queries.dim().1
    }

    /// The head dimension.
    pub fn rank(&self) -> usize {
        self.queries.dim().2
    }

    /// Queries, (heads, n, rank).
    pub fn queries(&self) -> &Array3<f64> {
        &self.queries
    }

    /// Keys, (heads, n, rank).
    pub fn keys(&self) -> &Array3<f64> {
        &self.keys
    }

    /// Head weights π, (heads).
    pub fn weights(&self) -> &Array1<f64> {
        &self.weights
    }

    /// Queries and keys of one head, each (n, rank).
    pub(super) fn head(&self, head: usize) -> (ArrayView2<'_, f64>, ArrayView2<'_, f64>) {
        (self.queries.slice(s![head, .., ..]), self.keys.slice(s![head, .., ..]))
    }

    /// Multiplies every head's logits by `scale` > 0, with factors √scale on queries and keys.
    pub(super) fn scaled(&self, scale: f64) -> Self {
        let root = scale.sqrt();
        Self {
            queries: &self.queries * root,
            keys: &self.keys * root,
            weights: self.weights.clone(),
        }
    }

    /// One vector x = (Q₁, K₁, …, Q_H, K_H[, log π]) for the optimiser; log π only if H > 1.
    pub(super) fn to_vector(&self) -> Vec<f64> {
        let mut x = Vec::with_capacity(2 * self.queries.len() + self.heads());
        for head in 0..self.heads() {
            let (q, k) = self.head(head);
            x.extend(q.iter());
            x.extend(k.iter());
        }
        if self.heads() > 1 {
            x.extend(self.weights.iter().map(|w| w.max(1e-300).ln()));
        }
        x
    }

    /// The inverse of `to_vector`; the last H values are softmax logits of the weights.
    pub(super) fn from_vector(
        x: &[f64],
        heads: usize,
        n: usize,
        rank: usize,
    ) -> Result<Self, FitError> {
        let mut queries = Array3::zeros((heads, n, rank));
        let mut keys = Array3::zeros((heads, n, rank));
        for (head, pair) in x[..2 * heads * n * rank].chunks_exact(2 * n * rank).enumerate() {
            queries.slice_mut(s![head, .., ..]).assign(&matrix(&pair[..n * rank], n, rank));
            keys.slice_mut(s![head, .., ..]).assign(&matrix(&pair[n * rank..], n, rank));
        }
        let weights = Array1::from(weights_of(x, heads, n, rank));
        Self::new(queries, keys, weights)
    }

    /// The logits of one head as a dense n × n matrix, for certificates and small n.
    pub fn logits(&self, head: usize) -> Array2<f64> {
        let (q, k) = self.head(head);
        product(q, k.t()) / (self.rank() as f64).sqrt()
    }
}

/// maxᵢ‖qᵢ‖ · maxⱼ‖kⱼ‖ / √d, the maximum over heads. It is an upper bound on max_abs_logit only: Q·M and K·M⁻ᵀ have the same
/// logits but other norms.
pub fn norm_product(factors: &Factors) -> f64 {
    let greatest =
        |m: ArrayView2<f64>| m.rows().into_iter().map(|r| r.dot(&r)).fold(0.0, f64::max).sqrt();
    (0..factors.heads())
        .map(|head| {
            let (q, k) = factors.head(head);
            greatest(q) * greatest(k) / (factors.rank() as f64).sqrt()
        })
        .fold(0.0, f64::max)
}

/// A slice of the optimiser's vector as an n × rank matrix.
pub(super) fn matrix(x: &[f64], n: usize, rank: usize) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((n, rank), x).expect("a slice of n·rank values is an n × rank matrix")
}

/// The head weights from the end of the optimiser's vector.
pub(super) fn weights_of(x: &[f64], heads: usize, n: usize, rank: usize) -> Vec<f64> {
    if heads == 1 {
        return vec![1.0];
    }
    let tail = &x[2 * heads * n * rank..];
    let highest = tail.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let e: Vec<f64> = tail.iter().map(|t| (t - highest).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.iter().map(|e| e / sum).collect()
}

/// Reads factors that [`write_factors`] wrote; without a `weights.npy` the weights are equal.
///
/// # Errors
/// A file cannot be read, or holds no factors.
pub fn read_factors(folder: &Path) -> Result<Factors, FileError> {
    fn npy<D: Dimension>(path: PathBuf) -> Result<Array<f64, D>, FileError> {
        let array = read_npy(&path).and_then(|a| a.into_dimensionality().map_err(io::Error::other));
        array.map_err(|e| FileError::read(&path, e))
    }
    let queries: Array3<f64> = npy(folder.join("q.npy"))?;
    let keys = npy(folder.join("k.npy"))?;
    let weights = folder.join("weights.npy");
    let heads = queries.dim().0;
    let weights = match weights.exists() {
        true => npy(weights)?,
        false => Array1::from_elem(heads, 1.0 / heads as f64),
    };
    Factors::new(queries, keys, weights).map_err(|e| FileError::read(folder, io::Error::other(e)))
}

/// Writes factors as `q.npy` and `k.npy`, (heads, n, rank), and `weights.npy`, (heads), in float64, into `folder`, which is
/// created if it is missing.
///
/// # Errors
/// A file cannot be written.
pub fn write_factors(folder: &Path, factors: &Factors) -> Result<(), FileError> {
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
    npy(folder.join("weights.npy"), factors.weights())
}
