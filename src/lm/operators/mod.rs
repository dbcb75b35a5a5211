//! Operators of the language model, each with its own backward; here on the CPU.
//!
//! An operator gives its value and a [`Pullback`]: what turns the gradient of that value into those of the
//! inputs. The tensor library's own reverse pass adds every gradient to an array of zeros, its fast layer
//! norm cuts gradients without a word, its embedding backward is slow at a small d_model, and its GELU
//! keeps a dozen intermediate tensors. Reductions over rows go in chunks of a fixed size, added in order,
//! so results do not depend on the number of threads.
//!
//! Inputs may be bfloat16. The arithmetic is float32; a value is rounded to the dtype of the first input
//! where nothing else is said, a gradient to that of its input.

mod embedding;
mod layer_norm;
mod linear;
mod mlp;
mod output_loss;
mod rotation;
mod spectral;

pub(super) use embedding::{add_positions, embed};
pub(super) use layer_norm::{EPSILON, NormPullback, layer_norm};
#[cfg(feature = "cuda")]
pub(super) use linear::LinearPullback;
pub(super) use linear::{add_linear, linear};
pub(super) use mlp::add_mlp;
pub(super) use output_loss::{OutputLoss, output_loss, tied_logits};
pub(super) use rotation::{Rotation, rotate};
pub(super) use spectral::{power_iteration, spectrally_normalised};

use candle_core::{CpuStorage, DType, Layout, Result, Storage, Tensor, WithDType, bail};
use ndarray::{ArrayView2, ArrayViewMut2};

/// Rows that one task handles, and that one partial sum covers.
const CHUNK_ROWS: usize = 64;

/// From the gradient of an operator's value to those of its N inputs. It holds what the backward pass needs,
/// until it is called or dropped.
pub(super) type Pullback<const N: usize> = Box<dyn FnOnce(&Tensor) -> Result<[Tensor; N]>>;

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

/// Runs `f` on the elements of float32 tensors on the CPU, made contiguous first where they are not.
pub(super) fn with_elements<const N: usize, R>(
    tensors: [&Tensor; N],
    f: impl FnOnce([&[f32]; N]) -> Result<R>,
) -> Result<R> {
    with_slices(tensors, f)
}

/// The same for tokens.
fn with_tokens<R>(tokens: &Tensor, f: impl FnOnce(&[u32]) -> Result<R>) -> Result<R> {
    with_slices([tokens], |[tokens]| f(tokens))
}

fn with_slices<T: WithDType, const N: usize, R>(
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

/// A tensor as float32; itself where it is.
pub(super) fn float32(tensor: &Tensor) -> Result<Tensor> {
    tensor.to_dtype(DType::F32)
}

/// A tensor of elements, with the shape and dtype of another one.
pub(super) fn like(data: Vec<f32>, other: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(data, other.shape(), other.device())?.to_dtype(other.dtype())
}

/// A sum that may have no term yet, with one more.
pub(super) fn plus(so_far: Option<Tensor>, more: Tensor) -> Result<Tensor> {
    match so_far {
        Some(so_far) => so_far + more,
        None => Ok(more),
    }
}

/// Row-major elements as a matrix of so many columns.
fn matrix(data: &[f32], columns: usize) -> Result<ArrayView2<'_, f32>> {
    let shape = (data.len() / columns, columns);
    ArrayView2::from_shape(shape, data).map_err(candle_core::Error::wrap)
}

/// As [`matrix`], to be written.
fn matrix_mut(data: &mut [f32], columns: usize) -> Result<ArrayViewMut2<'_, f32>> {
    let shape = (data.len() / columns, columns);
    ArrayViewMut2::from_shape(shape, data).map_err(candle_core::Error::wrap)
}

/// The largest difference of two tensors.
#[cfg(test)]
pub(super) fn largest_difference(a: &Tensor, b: &Tensor) -> f32 {
    let off = (a - b).unwrap().abs().unwrap().flatten_all().unwrap();
    off.max(0).unwrap().to_scalar().unwrap()
}

/// A matrix of waves.
#[cfg(test)]
fn wave(shape: (usize, usize), shift: f32) -> candle_core::Var {
    let data: Vec<f32> = (0..shape.0 * shape.1).map(|i| (i as f32 * 0.37 + shift).sin()).collect();
    candle_core::Var::from_vec(data, shape, &candle_core::Device::Cpu).unwrap()
}
