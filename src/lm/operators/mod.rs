//! Differentiable operators of the language model, each with its own backward; here on the CPU.
//!
//! The tensor library's fast layer norm cuts gradients without a word, its embedding backward is
//! slow at a small d_model, and its GELU keeps a dozen intermediate tensors; these do the same
//! work in one pass each. Reductions over rows go in chunks of a fixed size, added in order, so
//! results do not depend on the number of threads.

mod embedding;
mod layer_norm;
mod linear;
mod mlp;
mod output_loss;
mod rotation;
mod spectral;

pub(super) use embedding::{add_positions, embed};
pub(super) use layer_norm::layer_norm;
pub(super) use linear::{Stored, linear};
pub(super) use mlp::mlp;
pub(super) use output_loss::output_loss;
pub(super) use rotation::{Rotation, rotate};
pub(super) use spectral::{power_iteration, spectrally_normalised};

use candle_core::{CpuStorage, DType, Layout, Result, Storage, Tensor, WithDType, bail};
use ndarray::ArrayView2;

/// Rows that one task handles, and that one partial sum covers.
const CHUNK_ROWS: usize = 64;

/// The elements of a contiguous tensor on the CPU.
pub(super) fn elements<'a, T: WithDType>(
    storage: &'a CpuStorage,
    layout: &Layout,
) -> Result<&'a [T]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<T>()?[start..end]),
        None => bail!("a tensor of shape {:?} is not contiguous", layout.shape()),
    }
}

/// Runs `f` on the elements of a tensor on the CPU, made contiguous first where it is not.
pub(super) fn with_elements<T: WithDType, R>(
    tensor: &Tensor,
    f: impl FnOnce(&[T]) -> Result<R>,
) -> Result<R> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => f(elements(storage, layout)?),
        _ => bail!("this operator runs on the CPU only"),
    }
}

/// What `f` gives in float32 for inputs that may be bfloat16, rounded to the dtype of the first; so are
/// the gradients that come back, each to its input's. Float32 passes as it is.
pub(super) fn in_float32<const N: usize>(
    inputs: [&Tensor; N],
    f: impl FnOnce([Tensor; N]) -> Result<Tensor>,
) -> Result<Tensor> {
    let dtype = inputs[0].dtype();
    let mut widened = inputs.map(Tensor::clone);
    for input in &mut widened {
        *input = input.to_dtype(DType::F32)?;
    }
    f(widened)?.to_dtype(dtype)
}

/// Row-major elements as a matrix.
fn matrix(data: &[f32], shape: (usize, usize)) -> Result<ArrayView2<'_, f32>> {
    ArrayView2::from_shape(shape, data).map_err(candle_core::Error::wrap)
}
