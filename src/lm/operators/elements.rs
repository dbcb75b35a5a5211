//! Access to the elements of tensors on the CPU, and types shared by the operators.

use candle_core::{CpuStorage, DType, Layout, Result, Storage, Tensor, WithDType, bail};
use ndarray::{ArrayView2, ArrayViewMut2};

/// Number of rows per task, and per partial sum.
pub(super) const CHUNK_ROWS: usize = 64;

/// The elements of a contiguous tensor on the CPU.
pub(in crate::lm) fn elements<'a, T: WithDType>(
    storage: &'a CpuStorage,
    layout: &Layout,
) -> Result<&'a [T]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<T>()?[start..end]),
        None => bail!("a tensor of shape {:?} is not contiguous", layout.shape()),
    }
}

/// Runs `f` on the elements of tensors on the CPU; makes them contiguous first if necessary.
pub(in crate::lm) fn with_elements<T: WithDType, const N: usize, R>(
    tensors: [&Tensor; N],
    f: impl FnOnce([&[T]; N]) -> Result<R>,
) -> Result<R> {
    let mut contiguous = tensors.map(Tensor::clone);
    for tensor in &mut contiguous {
        *tensor = tensor.contiguous()?;
    }
    let held = contiguous.each_ref().map(|tensor| tensor.storage_and_layout());
    let mut slices = [&[][..]; N];
    for (slice, (storage, layout)) in slices.iter_mut().zip(&held) {
        *slice = match &**storage {
            Storage::Cpu(storage) => elements(storage, layout)?,
            _ => bail!("this operator runs on the CPU only"),
        };
    }
    f(slices)
}

/// Converts a tensor to float32; no copy if it already is.
pub(in crate::lm) fn float32(tensor: &Tensor) -> Result<Tensor> {
    tensor.to_dtype(DType::F32)
}

/// A tensor of `data` with the shape, device and dtype of another one.
pub(in crate::lm) fn like(data: Vec<f32>, other: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(data, other.shape(), other.device())?.to_dtype(other.dtype())
}

/// Adds `more` to a sum that may be empty so far.
pub(in crate::lm) fn plus(so_far: Option<Tensor>, more: Tensor) -> Result<Tensor> {
    match so_far {
        Some(so_far) => so_far + more,
        None => Ok(more),
    }
}

/// Row-major elements as a matrix with `columns` columns.
pub(in crate::lm) fn matrix(data: &[f32], columns: usize) -> Result<ArrayView2<'_, f32>> {
    let shape = (data.len() / columns, columns);
    ArrayView2::from_shape(shape, data).map_err(candle_core::Error::wrap)
}

/// As [`matrix`], but mutable.
pub(super) fn matrix_mut(data: &mut [f32], columns: usize) -> Result<ArrayViewMut2<'_, f32>> {
    let shape = (data.len() / columns, columns);
    ArrayViewMut2::from_shape(shape, data).map_err(candle_core::Error::wrap)
}

/// Backward pass of an operator: maps the gradient of its output to those of its N inputs. Owns the data that it
/// needs until it is called or dropped.
pub(in crate::lm) type Pullback<const N: usize> = Box<dyn FnOnce(&Tensor) -> Result<[Tensor; N]>>;

/// Backward pass of a norm: maps the gradient of its output to those of its input and of the gain. If the input also
/// bypasses the norm, the second argument is the gradient of that path, which is added to the input's.
pub(in crate::lm) type NormPullback =
    Box<dyn FnOnce(&Tensor, Option<&Tensor>) -> Result<[Tensor; 2]>>;

/// Maps the gradients of products with one x to the gradients of x and of the weights.
pub(in crate::lm) type LinearPullback =
    Box<dyn FnOnce(&[&Tensor]) -> Result<(Tensor, Vec<Tensor>)>>;

/// ℓ^e has no bounded slope at ℓ = 0 if e < 1: smaller losses have the slope of this one.
const LEAST_LOSS: f64 = 1e-3;

/// What a step minimises: the mean over tokens of ℓ^`exponent`, with ℓ a token's cross-entropy (Hajra 2019, arXiv
/// 1902.06127), plus `z_loss` · mean (log Z)².
#[derive(Clone, Copy, Debug)]
pub(in crate::lm) struct Objective {
    pub exponent: f64,
    pub z_loss: f64,
}

impl Objective {
    /// The mean cross-entropy alone.
    pub const CROSS_ENTROPY: Self = Self { exponent: 1.0, z_loss: 0.0 };

    /// The derivative of ℓ^e with respect to ℓ; exactly 1 if e = 1.
    pub(super) fn slope(self, loss: f64) -> f64 {
        self.exponent * loss.max(LEAST_LOSS).powf(self.exponent - 1.0)
    }
}

/// Loss of the output layer. With a GPU the numbers may not be computed yet.
pub(in crate::lm) struct OutputLoss {
    /// The cross-entropy, a scalar, in nats.
    pub(in crate::lm) cross_entropy: Tensor,
    /// Gradients of the objective with respect to the hidden state and the embedding, if they were
    /// requested.
    pub(in crate::lm) gradients: Option<[Tensor; 2]>,
}
