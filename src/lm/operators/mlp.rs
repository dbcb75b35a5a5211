//! The MLP of a block, its hidden layer included.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};
use ndarray::ArrayViewMut2;
use ndarray::linalg::general_mat_mul;
use rayon::prelude::*;

use super::linear::{task_size, weight_gradient};
use super::{elements, in_float32, matrix, with_elements};
use crate::lm::simd;

/// Rows that one task handles at most: their hidden layer stays in the second-level cache.
const TASK_ROWS: usize = 256;

/// y = GELU(x W) U for x of shape (N, inputs), W (inputs, hidden) and U (hidden, outputs).
///
/// One operator in place of three: of the hidden layer, the widest of a block, no gradient is ever
/// added to zeros, and what the backward pass needs of it is kept once.
pub(in crate::lm) fn mlp(x: &Tensor, input: &Tensor, output: &Tensor) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return crate::lm::cuda::mlp(x, input, output);
    }
    in_float32([x, input, output], |[x, input, output]| {
        let hidden = Arc::new(OnceLock::new());
        x.contiguous()?.apply_op3(&input.contiguous()?, &output.contiguous()?, Mlp { hidden })
    })
}

struct Mlp {
    /// x W, (N, hidden).
    hidden: Arc<OnceLock<Vec<f32>>>,
}

impl CustomOp3 for Mlp {
    fn name(&self) -> &'static str {
        "mlp"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        input: &CpuStorage,
        input_layout: &Layout,
        output: &CpuStorage,
        output_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (n, inputs) = x_layout.shape().dims2()?;
        let (rows, width) = input_layout.shape().dims2()?;
        let (columns, outputs) = output_layout.shape().dims2()?;
        if (rows, columns) != (inputs, width) {
            bail!("mlp: {inputs} channels, weights {rows} × {width} and {columns} × {outputs}");
        }
        let x = elements::<f32>(x, x_layout)?;
        let input = matrix(elements(input, input_layout)?, (inputs, width))?;
        let output = matrix(elements(output, output_layout)?, (width, outputs))?;
        let rows = task_size(n, TASK_ROWS);
        let mut hidden = vec![0.0; n * width];
        let mut y = vec![0.0; n * outputs];
        hidden
            .par_chunks_mut(rows * width)
            .zip(y.par_chunks_mut(rows * outputs))
            .zip(x.par_chunks(rows * inputs))
            .try_for_each(|((hidden, y), x)| -> Result<()> {
                let here = x.len() / inputs;
                let x = matrix(x, (here, inputs))?;
                general_mat_mul(1.0, &x, &input, 0.0, &mut matrix_mut(hidden, width)?);
                let mut active = vec![0.0; hidden.len()];
                simd::gelu(hidden, &mut active);
                let active = matrix(&active, (here, width))?;
                general_mat_mul(1.0, &active, &output, 0.0, &mut matrix_mut(y, outputs)?);
                Ok(())
            })?;
        // Only a first run fills the cell; a second one would find the same.
        let _ = self.hidden.set(hidden);
        Ok((CpuStorage::F32(y), (n, outputs).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        input: &Tensor,
        output: &Tensor,
        _y: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some(hidden) = self.hidden.get() else {
            bail!("mlp: backward without a forward pass");
        };
        let ((n, inputs), (_, width), (_, outputs)) = (x.dims2()?, input.dims2()?, output.dims2()?);
        let rows = task_size(n, TASK_ROWS);
        let [mut dx, mut d_input, mut d_output] =
            [x, input, output].map(|tensor| vec![0.0; tensor.elem_count()]);
        with_elements(x, |x| {
            with_elements(input, |input| {
                with_elements(output, |output| {
                    with_elements(gradient, |gradient| {
                        let input = matrix(input, (inputs, width))?;
                        let output = matrix(output, (width, outputs))?;
                        let [mut active, mut d_hidden] = [(); 2].map(|()| vec![0.0; n * width]);
                        active
                            .par_chunks_mut(rows * width)
                            .zip(d_hidden.par_chunks_mut(rows * width))
                            .zip(hidden.par_chunks(rows * width))
                            .zip(dx.par_chunks_mut(rows * inputs))
                            .zip(gradient.par_chunks(rows * outputs))
                            .try_for_each(|((((active, d_hidden), hidden), dx), gradient)| {
                                let here = gradient.len() / outputs;
                                let gradient = matrix(gradient, (here, outputs))?;
                                let mut upstream = vec![0.0; hidden.len()];
                                let to = &mut matrix_mut(&mut upstream, width)?;
                                general_mat_mul(1.0, &gradient, &output.t(), 0.0, to);
                                simd::gelu(hidden, active);
                                simd::gelu_gradient(hidden, &upstream, d_hidden);
                                let d_hidden = matrix(d_hidden, (here, width))?;
                                let to = &mut matrix_mut(dx, inputs)?;
                                general_mat_mul(1.0, &d_hidden, &input.t(), 0.0, to);
                                Ok::<(), candle_core::Error>(())
                            })?;
                        let (x, gradient) =
                            (matrix(x, (n, inputs))?, matrix(gradient, (n, outputs))?);
                        let active = matrix(&active, (n, width))?;
                        let d_hidden = matrix(&d_hidden, (n, width))?;
                        let d_input = matrix_mut(&mut d_input, width)?;
                        let d_output = matrix_mut(&mut d_output, outputs)?;
                        rayon::join(
                            || weight_gradient(x, d_hidden, d_input),
                            || weight_gradient(active, gradient, d_output),
                        );
                        Ok(())
                    })
                })
            })
        })?;
        let tensor =
            |data: Vec<f32>, like: &Tensor| Tensor::from_vec(data, like.shape(), like.device());
        Ok((Some(tensor(dx, x)?), Some(tensor(d_input, input)?), Some(tensor(d_output, output)?)))
    }
}

/// Row-major elements as a matrix of so many columns.
fn matrix_mut(data: &mut [f32], columns: usize) -> Result<ArrayViewMut2<'_, f32>> {
    let shape = (data.len() / columns, columns);
    ArrayViewMut2::from_shape(shape, data).map_err(candle_core::Error::wrap)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::blas::single_threaded_blas;

    fn wave(shape: (usize, usize), shift: f32) -> Var {
        let data: Vec<f32> =
            (0..shape.0 * shape.1).map(|i| (i as f32 * 0.37 + shift).sin()).collect();
        Var::from_vec(data, shape, &Device::Cpu).unwrap()
    }

    #[test]
    fn output_and_gradients_match_the_tensor_librarys() {
        single_threaded_blas();
        for (n, inputs, width, outputs) in [(1, 3, 5, 2), (300, 24, 70, 20), (513, 16, 33, 16)] {
            let x = wave((n, inputs), 0.0);
            let (input, output) = (wave((inputs, width), 1.0), wave((width, outputs), 2.0));
            let weights = wave((n, outputs), 3.0);
            let plain = x.matmul(&input).unwrap().gelu().unwrap().matmul(&output).unwrap();
            let run = |y: &Tensor| {
                let loss = (y * weights.as_tensor()).unwrap().sum_all().unwrap();
                let store = loss.backward().unwrap();
                let of = |x: &Var| store.get(x).unwrap().clone();
                [y.clone(), of(&x), of(&input), of(&output)]
            };
            let ours = run(&mlp(&x, &input, &output).unwrap());
            for (ours, plain) in ours.iter().zip(&run(&plain)) {
                let largest = plain.abs().unwrap().flatten_all().unwrap().max(0).unwrap();
                let off = (ours - plain).unwrap().abs().unwrap().flatten_all().unwrap();
                let off = off.max(0).unwrap().to_scalar::<f32>().unwrap();
                let off = off / largest.to_scalar::<f32>().unwrap().max(1.0);
                assert!(off < 2e-5, "{n} × {inputs} × {width} × {outputs} differs by {off:e}");
            }
        }
    }
}
