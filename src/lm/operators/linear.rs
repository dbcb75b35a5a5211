//! Products of activations with weights.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

use super::{elements, in_float32, matrix, with_elements};

/// Rows of an output that one task computes at most.
const TASK_ROWS: usize = 256;
/// Rows or columns of a weight's gradient that one task computes at most.
const TASK_WEIGHTS: usize = 96;

/// The size of an even number of equal tasks, of at most `most` each, that make up `whole`. It depends on
/// these alone, so that how a product is cut does not depend on the number of threads.
pub(super) fn task_size(whole: usize, most: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most).next_multiple_of(2)).max(1)
}

/// How a weight matrix is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::lm) enum Stored {
    /// W of shape (inputs, outputs): y = x W.
    InputsByOutputs,
    /// W of shape (outputs, inputs): y = x Wᵀ.
    OutputsByInputs,
}

/// y = x W or x Wᵀ for x of shape (N, inputs); y has shape (N, outputs).
///
/// The tensor library's own product gives the same; this one runs on OpenBLAS, whose kernels use
/// the widest vectors that the processor has, and it cuts work by shape alone.
pub(in crate::lm) fn linear(x: &Tensor, weight: &Tensor, stored: Stored) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return crate::lm::cuda::linear(x, weight, stored);
    }
    in_float32([x, weight], |[x, weight]| x.contiguous()?.apply_op2(&weight, Linear { stored }))
}

struct Linear {
    stored: Stored,
}

impl Linear {
    /// The weight as inputs × outputs.
    fn oriented<'a>(&self, weight: ArrayView2<'a, f32>) -> ArrayView2<'a, f32> {
        match self.stored {
            Stored::InputsByOutputs => weight,
            Stored::OutputsByInputs => weight.reversed_axes(),
        }
    }
}

/// out = a b, some rows at a time.
fn product(a: ArrayView2<f32>, b: ArrayView2<f32>, out: ArrayViewMut2<f32>) {
    in_parallel(a, b, out, Axis(0), TASK_ROWS);
}

/// The gradient aᵀ b of a weight, cut along its longer side.
pub(super) fn weight_gradient(a: ArrayView2<f32>, b: ArrayView2<f32>, out: ArrayViewMut2<f32>) {
    let axis = if out.nrows() > out.ncols() { Axis(0) } else { Axis(1) };
    in_parallel(a.t(), b, out, axis, TASK_WEIGHTS);
}

/// out = a b, cut along one axis of out into tasks of at most `most`.
fn in_parallel(
    a: ArrayView2<f32>,
    b: ArrayView2<f32>,
    mut out: ArrayViewMut2<f32>,
    axis: Axis,
    most: usize,
) {
    let size = task_size(out.len_of(axis), most);
    let cut = if axis == Axis(0) { &a } else { &b };
    let tasks: Vec<_> =
        out.axis_chunks_iter_mut(axis, size).zip(cut.axis_chunks_iter(axis, size)).collect();
    tasks.into_par_iter().for_each(|(mut out, part)| {
        let (a, b) = if axis == Axis(0) { (&part, &b) } else { (&a, &part) };
        general_mat_mul(1.0, a, b, 0.0, &mut out);
    });
}

impl CustomOp2 for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (n, inputs) = x_layout.shape().dims2()?;
        let x = matrix(elements(x, x_layout)?, (n, inputs))?;
        let weight = matrix(elements(weight, weight_layout)?, weight_layout.shape().dims2()?)?;
        let weight = self.oriented(weight);
        let outputs = weight.ncols();
        if weight.nrows() != inputs {
            bail!("linear: {inputs} channels, but a weight for {}", weight.nrows());
        }
        let mut y = vec![0.0; n * outputs];
        let out = ArrayViewMut2::from_shape((n, outputs), &mut y);
        product(x, weight, out.map_err(candle_core::Error::wrap)?);
        Ok((CpuStorage::F32(y), (n, outputs).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        y: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (x_shape, weight_shape, y_shape) = (x.dims2()?, weight.dims2()?, y.dims2()?);
        let mut dx = vec![0.0; x.elem_count()];
        let mut d_weight = vec![0.0; weight.elem_count()];
        with_elements(x, |x| {
            with_elements(weight, |weight| {
                with_elements(gradient, |gradient| {
                    let x = matrix(x, x_shape)?;
                    let weight = self.oriented(matrix(weight, weight_shape)?);
                    let gradient = matrix(gradient, y_shape)?;
                    let dx = ArrayViewMut2::from_shape(x_shape, &mut dx);
                    let dx = dx.map_err(candle_core::Error::wrap)?;
                    let d_weight = ArrayViewMut2::from_shape(weight_shape, &mut d_weight);
                    let d_weight = d_weight.map_err(candle_core::Error::wrap)?;
                    let (a, b) = match self.stored {
                        Stored::InputsByOutputs => (x, gradient),
                        Stored::OutputsByInputs => (gradient, x),
                    };
                    rayon::join(
                        || product(gradient, weight.t(), dx),
                        || weight_gradient(a, b, d_weight),
                    );
                    Ok(())
                })
            })
        })?;
        Ok((
            Some(Tensor::from_vec(dx, x_shape, x.device())?),
            Some(Tensor::from_vec(d_weight, weight_shape, x.device())?),
        ))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::blas::single_threaded_blas;

    #[test]
    fn output_and_gradients_match_the_tensor_librarys_product() {
        single_threaded_blas();
        let wave = |n: usize, shift: f32| -> Vec<f32> {
            (0..n).map(|i| (i as f32 * 0.37 + shift).sin()).collect()
        };
        for (n, inputs, outputs) in [(1, 3, 2), (300, 70, 130), (257, 130, 40)] {
            for stored in [Stored::InputsByOutputs, Stored::OutputsByInputs] {
                let shape = match stored {
                    Stored::InputsByOutputs => (inputs, outputs),
                    Stored::OutputsByInputs => (outputs, inputs),
                };
                let device = Device::Cpu;
                let x = Var::from_vec(wave(n * inputs, 0.0), (n, inputs), &device).unwrap();
                let w = Var::from_vec(wave(inputs * outputs, 1.0), shape, &device).unwrap();
                let weights = Tensor::from_vec(wave(n * outputs, 2.0), (n, outputs), &device);
                let weights = weights.unwrap();
                let plain = match stored {
                    Stored::InputsByOutputs => x.matmul(&w).unwrap(),
                    Stored::OutputsByInputs => x.matmul(&w.t().unwrap()).unwrap(),
                };
                let run = |y: &Tensor| {
                    let loss = (y * &weights).unwrap().sum_all().unwrap();
                    let store = loss.backward().unwrap();
                    [y.clone(), store.get(&x).unwrap().clone(), store.get(&w).unwrap().clone()]
                };
                let ours = run(&linear(&x, &w, stored).unwrap());
                for (ours, plain) in ours.iter().zip(&run(&plain)) {
                    let off = (ours - plain).unwrap().abs().unwrap().flatten_all().unwrap();
                    let off = off.max(0).unwrap().to_scalar::<f32>().unwrap();
                    assert!(off < 1e-3, "{n} × {inputs} × {outputs} differs by {off:e}");
                }
            }
        }
    }
}
