//! Products of activations with weight matrices, and the MLP of a block.

use candle_core::{DType, Result, Tensor, bail};
use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

use super::elements::{LinearPullback, Pullback, float32, like, matrix, matrix_mut, with_elements};
use crate::lm::simd;
use crate::numerics::{Pool, gemm};

/// The largest number of rows of an output per task; the hidden layer of an MLP then stays in the second-level cache.
const TASK_ROWS: usize = 256;
/// The largest number of rows or columns of a weight's gradient per task.
const TASK_WEIGHTS: usize = 96;

/// The size of tasks if `whole` is split into an even number of equal tasks of at most `most` each. It depends on
/// these two numbers alone, so the split does not depend on the number of threads.
fn task_size(whole: usize, most: usize) -> usize {
    whole.div_ceil(whole.div_ceil(most).next_multiple_of(2)).max(1)
}

/// `stream` + x W for x of shape (N, inputs), W (inputs, outputs) and a residual stream (N, outputs) of
/// float32. The product is rounded to the dtype of x before the addition. The backward pass is that of
/// [`linear`]; the gradient of the stream is that of the sum.
///
/// # Errors
/// As [`linear`].
pub(in crate::lm) fn add_linear(
    stream: &Tensor,
    x: &Tensor,
    weight: &Tensor,
) -> Result<(Tensor, LinearPullback)> {
    if x.dtype() != DType::F32 || x.device().is_cuda() {
        let (products, pullback) = linear(x, &[weight])?;
        return Ok(((stream + products[0].to_dtype(stream.dtype())?)?, pullback));
    }
    let (n, inputs) = x.dims2()?;
    let outputs = weight.dim(1)?;
    if weight.dim(0)? != inputs || stream.dims2()? != (n, outputs) {
        let (weight, stream) = (weight.shape(), stream.shape());
        bail!("{stream:?} + {:?} times {weight:?}", x.shape());
    }
    let rows = task_size(n, TASK_ROWS);
    let y = with_elements([stream, x, weight], |[stream, x, weight]| {
        let mut y = stream.to_vec();
        let weight = matrix(weight, outputs)?;
        let tasks = y.par_chunks_mut(rows * outputs).zip(x.par_chunks(rows * inputs));
        tasks.try_for_each(|(y, x)| -> Result<()> {
            let y = matrix_mut(y, outputs)?;
            gemm(1.0, matrix(x, inputs)?, weight, 1.0, y);
            Ok(())
        })?;
        Ok(y)
    })?;
    let kept = (x.clone(), vec![weight.clone()]);
    let pullback = move |gradients: &[&Tensor]| backward(&kept.0, &kept.1, gradients);
    Ok((like(y, stream)?, Box::new(pullback)))
}

/// x W for each weight W (inputs, outputs), and x of shape (N, inputs).
///
/// The result equals that of the tensor library's product. This operator reads x once for all weights, accumulates its
/// gradients in place, and splits work by shape alone.
///
/// # Errors
/// A weight with another number of inputs.
pub(in crate::lm) fn linear(
    x: &Tensor,
    weights: &[&Tensor],
) -> Result<(Vec<Tensor>, LinearPullback)> {
    #[cfg(feature = "cuda")]
    if x.device().is_cuda() {
        return crate::lm::cuda::linear(x, weights);
    }
    let (n, inputs) = x.dims2()?;
    for weight in weights {
        let (for_inputs, _) = weight.dims2()?;
        if for_inputs != inputs {
            bail!("linear: {inputs} channels, but a weight for {for_inputs}");
        }
    }
    let rows = task_size(n, TASK_ROWS);
    let mut products = Vec::with_capacity(weights.len());
    for weight in weights {
        products.push((vec![0.0; n * weight.dim(1)?], weight.dim(1)?, float32(weight)?));
    }
    with_elements([&float32(x)?], |[x]| {
        let tasks = by_rows(&mut products, n.div_ceil(rows), rows);
        tasks.into_par_iter().zip(x.par_chunks(rows * inputs)).try_for_each(|(parts, x)| {
            let x = matrix(x, inputs)?;
            parts.into_iter().try_for_each(|(y, outputs, weight)| {
                with_elements([weight], |[weight]| {
                    gemm(1.0, x, matrix(weight, outputs)?, 0.0, matrix_mut(y, outputs)?);
                    Ok(())
                })
            })
        })
    })?;
    let to_tensor = |(y, outputs, _): (Vec<f32>, usize, Tensor)| {
        Tensor::from_vec(y, (n, outputs), x.device())?.to_dtype(x.dtype())
    };
    let products = products.into_iter().map(to_tensor).collect::<Result<_>>()?;
    let (x, weights) = (x.clone(), weights.iter().copied().cloned().collect::<Vec<_>>());
    let pullback = move |gradients: &[&Tensor]| backward(&x, &weights, gradients);
    Ok((products, Box::new(pullback)))
}

/// Splits every product into tasks of `rows` rows. Each task gets its part of every product, with the product's width and
/// weight.
fn by_rows(
    products: &mut [(Vec<f32>, usize, Tensor)],
    tasks: usize,
    rows: usize,
) -> Vec<Vec<(&mut [f32], usize, &Tensor)>> {
    let mut parts: Vec<Vec<_>> = (0..tasks).map(|_| Vec::with_capacity(products.len())).collect();
    for (y, outputs, weight) in products {
        for (task, part) in parts.iter_mut().zip(y.chunks_mut(rows * *outputs)) {
            task.push((part, *outputs, &*weight));
        }
    }
    parts
}

/// Backward pass: dx = Σ Gᵢ Wᵢᵀ and dWᵢ = xᵀ Gᵢ.
fn backward(
    x: &Tensor,
    weights: &[Tensor],
    gradients: &[&Tensor],
) -> Result<(Tensor, Vec<Tensor>)> {
    let (n, inputs) = x.dims2()?;
    let rows = task_size(n, TASK_ROWS);
    let mut pairs = Vec::with_capacity(weights.len());
    for (weight, gradient) in weights.iter().zip(gradients) {
        pairs.push((weight.dim(1)?, float32(weight)?, float32(gradient)?.contiguous()?));
    }
    let mut dx = vec![0.0; n * inputs];
    dx.par_chunks_mut(rows * inputs).enumerate().try_for_each(|(task, dx)| {
        let here = dx.len() / inputs;
        let mut dx = matrix_mut(dx, inputs)?;
        pairs.iter().enumerate().try_for_each(|(at, (outputs, weight, gradient))| {
            with_elements([weight, gradient], |[weight, gradient]| {
                let gradient = &gradient[task * rows * outputs..][..here * outputs];
                let (gradient, weight) = (matrix(gradient, *outputs)?, matrix(weight, *outputs)?);
                let keep = if at == 0 { 0.0 } else { 1.0 };
                gemm(1.0, gradient, weight.t(), keep, dx.view_mut());
                Ok(())
            })
        })
    })?;
    let x_as_float32 = float32(x)?;
    let of_weight = |(weight, (outputs, _, gradient)): (&Tensor, &(usize, Tensor, Tensor))| {
        let mut d_weight = vec![0.0; inputs * outputs];
        with_elements([&x_as_float32, gradient], |[x, gradient]| {
            let d_weight = matrix_mut(&mut d_weight, *outputs)?;
            weight_gradient(matrix(x, inputs)?, matrix(gradient, *outputs)?, d_weight);
            Ok(())
        })?;
        like(d_weight, weight)
    };
    let d_weights = weights.par_iter().zip(&pairs).map(of_weight).collect::<Result<_>>()?;
    Ok((like(dx, x)?, d_weights))
}

/// The gradient aᵀ b of a weight; tasks split its longer side.
fn weight_gradient(a: ArrayView2<f32>, b: ArrayView2<f32>, mut out: ArrayViewMut2<f32>) {
    let a = a.reversed_axes();
    let axis = if out.nrows() > out.ncols() { Axis(0) } else { Axis(1) };
    let size = task_size(out.len_of(axis), TASK_WEIGHTS);
    let cut = if axis == Axis(0) { &a } else { &b };
    let tasks: Vec<_> =
        out.axis_chunks_iter_mut(axis, size).zip(cut.axis_chunks_iter(axis, size)).collect();
    tasks.into_par_iter().for_each(|(out, part)| {
        let (a, b) = if axis == Axis(0) { (part, b) } else { (a, part) };
        gemm(1.0, a, b, 0.0, out);
    });
}

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
    let (hidden, y) = with_elements(all, |all| mlp_forward(all, (inputs, width, outputs)))?;
    let mut y = Tensor::from_vec(y, (n, outputs), x.device())?;
    if !exact {
        y = (stream + y.to_dtype(x.dtype())?.to_dtype(stream.dtype())?)?;
    }
    let [x, input, output] = [x, input, output].map(Tensor::clone);
    let pullback = move |gradient: &Tensor| {
        let all = [&float32(&x)?, &float32(&input)?, &float32(&output)?, &float32(gradient)?];
        let [dx, d_input, d_output] =
            with_elements(all, |all| mlp_backward(all, hidden, (inputs, width, outputs)))?;
        Ok([like(dx, &x)?, like(d_input, &input)?, like(d_output, &output)?])
    };
    Ok((y, Box::new(pullback)))
}

/// x W, and the sum of `onto` and the output.
fn mlp_forward(
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
fn mlp_backward(
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
    use candle_core::Var;

    use super::super::tests::{largest_difference, wave};
    use super::*;

    #[test]
    fn products_and_gradients_match_the_tensor_librarys() {
        for (n, inputs, outputs) in
            [(1, 3, &[2][..]), (300, 70, &[130, 20]), (257, 130, &[40, 40, 1])]
        {
            let x = wave((n, inputs), 0.0);
            let weights: Vec<Var> =
                outputs.iter().map(|&outputs| wave((inputs, outputs), 1.0)).collect();
            let upstream: Vec<Var> =
                outputs.iter().map(|&outputs| wave((n, outputs), 2.0 + outputs as f32)).collect();
            let tensors: Vec<&Tensor> = weights.iter().map(Var::as_tensor).collect();
            let (products, pullback) = linear(&x, &tensors).unwrap();
            let upstream: Vec<&Tensor> = upstream.iter().map(Var::as_tensor).collect();
            let (dx, d_weights) = pullback(&upstream).unwrap();

            let plain: Vec<Tensor> = weights.iter().map(|w| x.matmul(w).unwrap()).collect();
            let terms =
                plain.iter().zip(&upstream).map(|(y, g)| (y * *g).unwrap().sum_all().unwrap());
            let store = terms.reduce(|a, b| (a + b).unwrap()).unwrap().backward().unwrap();
            let mut pairs = vec![(&dx, store.get(&x).unwrap())];
            pairs.extend(products.iter().zip(&plain));
            pairs.extend(d_weights.iter().zip(weights.iter().map(|w| store.get(w).unwrap())));
            for (ours, plain) in pairs {
                let off = largest_difference(ours, plain);
                assert!(off < 1e-3, "{n} × {inputs} × {outputs:?} differs by {off:e}");
            }
        }
    }

    #[test]
    fn a_product_is_added_to_a_stream_in_either_arithmetic() {
        let (stream, x, weight) = (wave((300, 20), 2.0), wave((300, 30), 0.0), wave((30, 20), 1.0));
        let plain = (stream.as_tensor() + x.matmul(&weight).unwrap()).unwrap();
        let (exact, _) = add_linear(&stream, &x, &weight).unwrap();
        let [x, weight] = [x, weight].map(|tensor| tensor.to_dtype(DType::BF16).unwrap());
        let (rounded, _) = add_linear(&stream, &x, &weight).unwrap();
        assert_eq!(rounded.dtype(), DType::F32);
        // Products of up to 15, of which bfloat16 keeps 8 bits, added to numbers of up to 1.
        for (found, tolerance) in [(exact, 1e-5), (rounded, 0.1)] {
            let off = largest_difference(&found, &plain);
            assert!(off < tolerance, "differs by {off:e}");
        }
    }

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
