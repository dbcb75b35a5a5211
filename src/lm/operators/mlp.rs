//! The MLP of a block as one operator.

use candle_core::{DType, Result, Tensor, bail};
use rayon::prelude::*;

use super::elements::Pullback;
use super::elements::{float32, like, matrix, matrix_mut, with_elements};
use super::linear::{task_size, weight_gradient};
use crate::lm::simd;
use crate::numerics::Pool;
use crate::numerics::gemm;

/// The largest number of rows per task; their hidden layer stays in the second-level cache.
const TASK_ROWS: usize = 256;

/// `stream` + GELU(x W) U for x of shape (N, inputs), W (inputs, hidden), U (hidden, outputs) and a residual
/// stream (N, outputs) of float32. The added term is rounded to the dtype of x first. The backward pass returns the gradients
/// of x, W and U; that of the stream is that of the sum.
///
/// One operator instead of four, so that the hidden layer, the widest array of a
/// block, is kept only once for the backward pass.
pub(in crate::lm) fn add_mlp(
    stream: &Tensor,
    x: &Tensor,
    input: &Tensor,
    output: &Tensor,
) -> Result<(Tensor, Pullback<3>)> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        let (y, pullback) = crate::lm::cuda::mlp(x, input, output)?;
        return Ok(((stream + y.to_dtype(stream.dtype())?)?, pullback));
    }
    let ((n, inputs), (rows, width)) = (x.dims2()?, input.dims2()?);
    let (columns, outputs) = output.dims2()?;
    if (rows, columns) != (inputs, width) {
        bail!("mlp: {inputs} channels, weights {rows} × {width} and {columns} × {outputs}");
    }
    let exact = x.dtype() == DType::F32;
    let onto = if exact { stream.clone() } else { stream.zeros_like()? };
    let all = [&onto, &float32(x)?, &float32(input)?, &float32(output)?];
    let (hidden, y) = with_elements(all, |all| forward(all, (inputs, width, outputs)))?;
    let mut y = Tensor::from_vec(y, (n, outputs), x.device())?;
    if !exact {
        y = (stream + y.to_dtype(x.dtype())?.to_dtype(stream.dtype())?)?;
    }
    let [x, input, output] = [x, input, output].map(Tensor::clone);
    let pullback = move |gradient: &Tensor| {
        let all = [&float32(&x)?, &float32(&input)?, &float32(&output)?, &float32(gradient)?];
        let [dx, d_input, d_output] =
            with_elements(all, |all| backward(all, hidden, (inputs, width, outputs)))?;
        Ok([like(dx, &x)?, like(d_input, &input)?, like(d_output, &output)?])
    };
    Ok((y, Box::new(pullback)))
}

/// x W, and the sum of `onto` and the output.
fn forward(
    [onto, x, input, output]: [&[f32]; 4],
    (inputs, width, outputs): (usize, usize, usize),
) -> Result<(Vec<f32>, Vec<f32>)> {
    let n = x.len() / inputs;
    let (input, output) = (matrix(input, width)?, matrix(output, outputs)?);
    let rows = task_size(n, TASK_ROWS);
    let mut hidden = vec![0.0; n * width];
    let mut y = onto.to_vec();
    hidden
        .par_chunks_mut(rows * width)
        .zip(y.par_chunks_mut(rows * outputs))
        .zip(x.par_chunks(rows * inputs))
        .try_for_each(|((hidden, y), x)| -> Result<()> {
            let x = matrix(x, inputs)?;
            gemm(1.0, x, input, 0.0, matrix_mut(hidden, width)?);
            let mut active = ACTIVE.take();
            active.resize(hidden.len(), 0.0);
            simd::gelu(hidden, &mut active);
            let activations = matrix(&active, width)?;
            gemm(1.0, activations, output, 1.0, matrix_mut(y, outputs)?);
            ACTIVE.put_back(active);
            Ok(())
        })?;
    Ok((hidden, y))
}

/// Buffers for a task's activations, kept between calls.
static ACTIVE: Pool<Vec<f32>> = Pool::new();

/// Gradients of x, W and U. `hidden` is x W; it is overwritten by its gradient.
fn backward(
    [x, input, output, gradient]: [&[f32]; 4],
    mut hidden: Vec<f32>,
    (inputs, width, outputs): (usize, usize, usize),
) -> Result<[Vec<f32>; 3]> {
    let n = x.len() / inputs;
    let rows = task_size(n, TASK_ROWS);
    let [mut dx, mut d_input, mut d_output] =
        [x, input, output].map(|elements| vec![0.0; elements.len()]);
    let (input, output) = (matrix(input, width)?, matrix(output, outputs)?);
    let mut active = vec![0.0; n * width];
    active
        .par_chunks_mut(rows * width)
        .zip(hidden.par_chunks_mut(rows * width))
        .zip(dx.par_chunks_mut(rows * inputs))
        .zip(gradient.par_chunks(rows * outputs))
        .try_for_each(|(((active, hidden), dx), gradient)| -> Result<()> {
            let gradient = matrix(gradient, outputs)?;
            gemm(1.0, gradient, output.t(), 0.0, matrix_mut(active, width)?);
            simd::gelu_gradient(hidden, active);
            let d_hidden = matrix(hidden, width)?;
            gemm(1.0, d_hidden, input.t(), 0.0, matrix_mut(dx, inputs)?);
            Ok(())
        })?;
    let (x, gradient) = (matrix(x, inputs)?, matrix(gradient, outputs)?);
    let (active, d_hidden) = (matrix(&active, width)?, matrix(&hidden, width)?);
    let to_input = matrix_mut(&mut d_input, width)?;
    let to_output = matrix_mut(&mut d_output, outputs)?;
    rayon::join(
        || weight_gradient(x, d_hidden, to_input),
        || weight_gradient(active, gradient, to_output),
    );
    Ok([dx, d_input, d_output])
}

#[cfg(test)]
mod tests {
    use super::super::elements::{largest_difference, wave};
    use super::*;

    #[test]
    fn output_and_gradients_match_the_tensor_librarys() {
        for (n, inputs, width, outputs) in [(1, 3, 5, 2), (300, 24, 70, 20), (513, 16, 33, 16)] {
            let x = wave((n, inputs), 0.0);
            let (input, output) = (wave((inputs, width), 1.0), wave((width, outputs), 2.0));
            let weights = wave((n, outputs), 3.0);
            let stream = wave((n, outputs), 4.0);
            let plain = x.matmul(&input).unwrap().gelu().unwrap().matmul(&output).unwrap();
            let plain = (stream.as_tensor() + plain).unwrap();
            let loss = (&plain * weights.as_tensor()).unwrap().sum_all().unwrap();
            let store = loss.backward().unwrap();
            let (ours, pullback) = add_mlp(&stream, &x, &input, &output).unwrap();
            let found = pullback(&weights).unwrap();
            let inputs_of = [&x, &input, &output].map(|x| store.get(x).unwrap());
            let pairs = found.iter().zip(inputs_of).chain([(&ours, &plain)]);
            for (ours, plain) in pairs {
                let largest = largest_difference(plain, &plain.zeros_like().unwrap());
                let off = largest_difference(ours, plain) / largest.max(1.0);
                assert!(off < 2e-5, "{n} × {inputs} × {width} × {outputs} differs by {off:e}");
            }
        }
    }
}
