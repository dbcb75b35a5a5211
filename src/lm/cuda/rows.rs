//! Row-wise and element-wise operators on the GPU, and products by cuBLAS.

use candle_core::{CudaDevice, DType, Result, Tensor, Var, bail};

use super::launch::{Argument, Grid, ROWS, arguments, device_of, launch, named, suffix, unwritten};
use crate::lm::operators::{LinearPullback, NormPullback, Pullback, plus};

/// Rows of a layer norm per block, one per warp.
const NORM_ROWS: usize = 4;
const NORM_THREADS: u32 = 128;
/// The largest number of blocks for the gradient of the gain.
const NORM_BLOCKS: usize = 256;
/// Threads per block of kernels in which each block handles one row at a time.
const ROW_THREADS: u32 = 128;

/// See [`crate::lm::operators::linear`].
pub(in crate::lm) fn linear(
    x: &Tensor,
    weights: &[&Tensor],
) -> Result<(Vec<Tensor>, LinearPullback)> {
    let products = weights.iter().map(|weight| x.matmul(weight)).collect::<Result<_>>()?;
    let (x, weights) = (x.clone(), weights.iter().copied().cloned().collect::<Vec<_>>());
    let pullback = move |gradients: &[&Tensor]| {
        let mut dx: Option<Tensor> = None;
        let mut d_weights = Vec::with_capacity(weights.len());
        for (weight, gradient) in weights.iter().zip(gradients) {
            d_weights.push(x.t()?.matmul(gradient)?);
            let more = gradient.matmul(&weight.t()?)?;
            dx = Some(plus(dx, more)?);
        }
        match dx {
            Some(dx) => Ok((dx, d_weights)),
            None => bail!("a product with no weights"),
        }
    };
    Ok((products, Box::new(pullback)))
}

/// GELU(x W) U, the term that [`crate::lm::operators::add_mlp`] adds.
pub(in crate::lm) fn mlp(
    x: &Tensor,
    input: &Tensor,
    output: &Tensor,
) -> Result<(Tensor, Pullback<3>)> {
    let hidden = x.matmul(input)?;
    let active = unwritten(hidden.shape(), hidden.dtype(), device_of(x)?)?;
    gelu("gelu_forward", &[&hidden, &active])?;
    let y = active.matmul(output)?;
    let [x, input, output] = [x, input, output].map(Tensor::clone);
    let pullback = move |gradient: &Tensor| {
        let gradient = gradient.contiguous()?;
        let d_output = active.t()?.matmul(&gradient)?;
        let upstream = gradient.matmul(&output.t()?)?;
        // The activations are no longer needed: their memory is reused for the gradient of the hidden layer.
        gelu("gelu_backward", &[&hidden, &upstream, &active])?;
        let d_input = x.t()?.matmul(&active)?;
        Ok([active.matmul(&input.t()?)?, d_input, d_output])
    };
    Ok((y, Box::new(pullback)))
}

/// Launches a GELU kernel over the elements of tensors of one size.
fn gelu(kernel: &str, tensors: &[&Tensor]) -> Result<()> {
    let (count, dtype) = (tensors[0].elem_count(), tensors[0].dtype());
    let mut arguments = arguments(tensors, &[], &[])?;
    arguments.push(Argument::count(count));
    let device = device_of(tensors[0])?;
    launch(device, ROWS, &named(kernel, dtype)?, Grid::elements(count), &arguments)
}

/// See [`crate::lm::operators::layer_norm`].
pub(in crate::lm) fn layer_norm(
    x: &Tensor,
    gain: &Tensor,
    dtype: DType,
) -> Result<(Tensor, NormPullback)> {
    let (n, c) = x.dims2()?;
    let device = device_of(x)?.clone();
    let (x, gain) = (x.contiguous()?, gain.clone());
    let y = unwritten((n, c), dtype, &device)?;
    let moments = [(); 2].map(|()| unwritten(n, DType::F32, &device));
    let [mean, inverse_deviation] = moments;
    let (mean, inverse_deviation) = (mean?, inverse_deviation?);
    let kernel = |pass: &str| -> Result<String> {
        Ok(format!("layer_norm_{pass}_{}_{}", suffix(x.dtype())?, suffix(dtype)?))
    };
    let (forward, backward) = (kernel("forward")?, kernel("backward")?);
    let tensors = arguments(&[&x, &gain, &y, &mean, &inverse_deviation], &[n, c], &[])?;
    launch(&device, ROWS, &forward, Grid::of(n.div_ceil(NORM_ROWS), NORM_THREADS), &tensors)?;
    let pullback = move |gradient: &Tensor, beside: Option<&Tensor>| {
        let gradient = gradient.contiguous()?;
        let blocks = n.div_ceil(NORM_ROWS).min(NORM_BLOCKS);
        let dx = unwritten((n, c), x.dtype(), &device)?;
        let partials = unwritten((blocks, c), DType::F32, &device)?;
        let tensors = [&x, &gain, &mean, &inverse_deviation, &gradient, &dx, &partials];
        let shared_bytes = NORM_ROWS * c * size_of::<f32>();
        let grid = Grid { blocks: [blocks, 1], threads: NORM_THREADS, shared_bytes };
        launch(&device, ROWS, &backward, grid, &arguments(&tensors, &[n, c], &[])?)?;
        let dx = match beside {
            Some(beside) => (dx + beside)?,
            None => dx,
        };
        Ok([dx, column_sums(&device, &partials)?])
    };
    Ok((y, Box::new(pullback)))
}

/// The sum of each column of a matrix.
fn column_sums(device: &CudaDevice, matrix: &Tensor) -> Result<Tensor> {
    let (rows, columns) = matrix.dims2()?;
    let sums = unwritten(columns, DType::F32, device)?;
    let grid = Grid::of(columns.div_ceil(32), 128);
    launch(
        device,
        ROWS,
        "column_sums",
        grid,
        &arguments(&[matrix, &sums], &[rows, columns], &[])?,
    )?;
    Ok(sums)
}

/// See [`crate::lm::operators::embed`]; ids are not checked, because the corpus has none above its vocabulary.
pub(in crate::lm) fn embed(token: &Tensor, ids: &Tensor) -> Result<(Tensor, Pullback<1>)> {
    let ids = ids.flatten_all()?.contiguous()?;
    let x = token.index_select(&ids, 0)?;
    let token = token.clone();
    let pullback = move |gradient: &Tensor| {
        let (rows, c) = gradient.dims2()?;
        let gradient = gradient.contiguous()?;
        let d_token = Tensor::zeros(token.shape(), DType::F32, token.device())?;
        let tensors = arguments(&[&ids, &gradient, &d_token], &[rows, c], &[])?;
        let grid = Grid::of(rows, ROW_THREADS);
        launch(device_of(&token)?, ROWS, "embed_backward", grid, &tensors)?;
        Ok([d_token])
    };
    Ok((x, Box::new(pullback)))
}

/// Rotates x, (B, T, H, D), by the angles of `turns`, (positions, D/2, 2) of cosines and sines, starting at position
/// `first`. A `sign` of −1 rotates backwards.
pub(in crate::lm) fn rotate(x: &Tensor, turns: &Tensor, first: usize, sign: f32) -> Result<Tensor> {
    let (batch, time, heads, d_head) = x.dims4()?;
    let x = x.contiguous()?;
    let y = unwritten(x.shape(), x.dtype(), device_of(&x)?)?;
    let sizes = [first, batch * time, time, heads, d_head];
    let arguments = arguments(&[&x, &y, turns], &sizes, &[sign])?;
    let grid = Grid::of(batch * time, ROW_THREADS);
    launch(device_of(&x)?, ROWS, &named("rotate", x.dtype())?, grid, &arguments)?;
    Ok(y)
}

/// See [`crate::lm::operators::spectrally_normalised`].
pub(in crate::lm) fn spectrally_normalised(
    weight: &Tensor,
    gain: &Tensor,
    vector: &Tensor,
) -> Result<(Tensor, Pullback<2>)> {
    let column = vector.reshape(((), 1))?;
    let u = weight.matmul(&column)?;
    let square = u.sqr()?.sum_all()?.reshape(1)?;
    let sigma = square.sqrt()?;
    let scale = (gain / &sigma)?;
    let scaled = weight.broadcast_mul(&scale)?;
    let weight = weight.clone();
    let pullback = move |gradient: &Tensor| {
        let product = (gradient * &weight)?.sum_all()?.reshape(1)?;
        let along = u.matmul(&column.t()?)?.broadcast_mul(&(&product / &square)?)?;
        Ok([(gradient - along)?.broadcast_mul(&scale)?, (product / &sigma)?])
    };
    Ok((scaled, Box::new(pullback)))
}

/// See [`crate::lm::operators::power_iteration`]; a matrix of zeros is not handled.
pub(in crate::lm) fn power_iteration(weight: &Tensor, vector: &Var) -> Result<()> {
    let (weight, column) = (weight.detach(), vector.as_detached_tensor().reshape(((), 1))?);
    let next = weight.t()?.matmul(&weight.matmul(&column)?)?.flatten_all()?;
    let length = next.sqr()?.sum_all()?.sqrt()?;
    vector.set(&next.broadcast_div(&length)?)
}
