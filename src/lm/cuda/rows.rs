//! Operators that go row by row or element by element, and products by cuBLAS.

use std::sync::{Arc, OnceLock};

use candle_core::backend::BackendStorage;
use candle_core::{
    CpuStorage, CudaStorage, CustomOp1, CustomOp2, DType, Layout, Result, Shape, Tensor, Var, bail,
};

use super::launch::{
    Argument, Grid, ROWS, device_of, launch, named, suffix, unwritten, unwritten_storage,
};
use crate::lm::operators::Stored;

/// Rows of a layer norm that a block handles at a time: one a warp.
const NORM_ROWS: usize = 4;
const NORM_THREADS: u32 = 128;
/// Blocks among which the gain's gradient is divided, at most.
const NORM_BLOCKS: usize = 256;

/// An operator's half that this device does not have.
fn not_here() -> Result<(CpuStorage, Shape)> {
    bail!("this operator runs on the GPU only")
}

/// As [`crate::lm::operators::linear`].
pub(in crate::lm) fn linear(x: &Tensor, weight: &Tensor, stored: Stored) -> Result<Tensor> {
    match stored {
        Stored::InputsByOutputs => x.matmul(weight),
        Stored::OutputsByInputs => x.matmul(&weight.t()?),
    }
}

/// As [`crate::lm::operators::mlp`].
pub(in crate::lm) fn mlp(x: &Tensor, input: &Tensor, output: &Tensor) -> Result<Tensor> {
    x.matmul(input)?.apply_op1(Gelu)?.matmul(output)
}

/// As [`crate::lm::operators::layer_norm`].
pub(in crate::lm) fn layer_norm(x: &Tensor, gain: &Tensor, dtype: DType) -> Result<Tensor> {
    let moments = Arc::new(OnceLock::new());
    x.contiguous()?.apply_op2(gain, LayerNorm { dtype, moments })
}

/// As [`crate::lm::operators::embed`]; ids are not checked, the corpus has none above its vocabulary.
pub(in crate::lm) fn embed(token: &Tensor, ids: &Tensor) -> Result<Tensor> {
    token.apply_op2(&ids.flatten_all()?, Embedding)
}

/// Queries or keys (B, T, H, D) turned by the angles of `turns`, (positions, D/2, 2) of cosines and
/// sines, from position `first` on; the gradient turns back.
pub(in crate::lm) fn rotate(x: &Tensor, turns: &Tensor, first: usize) -> Result<Tensor> {
    x.contiguous()?.apply_op1(Rotate { turns: turns.clone(), first })
}

/// As [`crate::lm::operators::spectrally_normalised`].
pub(in crate::lm) fn spectrally_normalised(
    weight: &Tensor,
    gain: &Tensor,
    vector: &Tensor,
) -> Result<Tensor> {
    let image = weight.matmul(&vector.reshape(((), 1))?)?;
    let sigma = image.sqr()?.sum_all()?.sqrt()?;
    weight.broadcast_mul(&gain.broadcast_div(&sigma)?)
}

/// As [`crate::lm::operators::power_iteration`]; a matrix of zeros is not looked for.
pub(in crate::lm) fn power_iteration(weight: &Tensor, vector: &Var) -> Result<()> {
    let weight = weight.detach();
    let next = weight.t()?.matmul(&weight.matmul(&vector.reshape(((), 1))?)?)?.flatten_all()?;
    let length = next.sqr()?.sum_all()?.sqrt()?;
    vector.set(&next.broadcast_div(&length)?)
}

/// Multiplies the columns of each head of a matrix by that head's factor.
pub(in crate::lm) fn scale_heads(weight: &Var, factors: &[f32]) -> Result<()> {
    let (_, outputs) = weight.dims2()?;
    let d_head = outputs / factors.len();
    let columns = factors.iter().flat_map(|factor| std::iter::repeat_n(*factor, d_head));
    weight.set(&weight.detach().broadcast_mul(&Tensor::from_iter(columns, weight.device())?)?)
}

struct LayerNorm {
    dtype: DType,
    /// Of each row its mean and 1/√(variance + ε), (N) each.
    moments: Arc<OnceLock<[Tensor; 2]>>,
}

impl LayerNorm {
    fn kernel(&self, pass: &str, x: DType) -> Result<String> {
        Ok(format!("layer_norm_{pass}_{}_{}", suffix(x)?, suffix(self.dtype)?))
    }
}

impl CustomOp2 for LayerNorm {
    fn name(&self) -> &'static str {
        "layer-norm"
    }

    fn cpu_fwd(
        &self,
        _x: &CpuStorage,
        _x_layout: &Layout,
        _gain: &CpuStorage,
        _gain_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        not_here()
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        x_layout: &Layout,
        gain: &CudaStorage,
        gain_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let shape = x_layout.shape();
        let (n, c) = shape.dims2()?;
        let device = &x.device;
        let (y, y_pointer) = unwritten_storage(shape, self.dtype, device)?;
        let mean = unwritten(n, DType::F32, device)?;
        let inverse_deviation = unwritten(n, DType::F32, device)?;
        let arguments = [
            Argument::storage(x, x_layout)?,
            Argument::storage(gain, gain_layout)?,
            y_pointer,
            Argument::tensor(&mean)?,
            Argument::tensor(&inverse_deviation)?,
            Argument::size(n)?,
            Argument::size(c)?,
        ];
        let kernel = self.kernel("forward", x.dtype())?;
        launch(device, ROWS, &kernel, Grid::of(n.div_ceil(NORM_ROWS), NORM_THREADS), &arguments)?;
        // Only a first run fills the cell; a second one would find the same.
        let _ = self.moments.set([mean, inverse_deviation]);
        Ok((y, shape.clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        gain: &Tensor,
        _y: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let Some([mean, inverse_deviation]) = self.moments.get() else {
            bail!("layer norm: backward without a forward pass");
        };
        let (n, c) = x.dims2()?;
        let device = device_of(x)?;
        let gradient = gradient.contiguous()?;
        let blocks = n.div_ceil(NORM_ROWS).min(NORM_BLOCKS);
        let dx = unwritten((n, c), x.dtype(), device)?;
        let partials = unwritten((blocks, c), DType::F32, device)?;
        let tensors = [x, gain, mean, inverse_deviation, &gradient, &dx, &partials];
        let mut arguments =
            tensors.map(Argument::tensor).into_iter().collect::<Result<Vec<_>>>()?;
        arguments.extend([Argument::size(n)?, Argument::size(c)?]);
        let shared_bytes = NORM_ROWS * c * size_of::<f32>();
        let grid = Grid { blocks: [blocks, 1], threads: NORM_THREADS, shared_bytes };
        launch(device, ROWS, &self.kernel("backward", x.dtype())?, grid, &arguments)?;
        let d_gain = unwritten(c, DType::F32, device)?;
        let arguments = [
            Argument::tensor(&partials)?,
            Argument::tensor(&d_gain)?,
            Argument::size(blocks)?,
            Argument::size(c)?,
        ];
        launch(device, ROWS, "column_sums", Grid::of(c.div_ceil(32), 128), &arguments)?;
        Ok((Some(dx), Some(d_gain)))
    }
}

struct Gelu;

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, _x: &CpuStorage, _layout: &Layout) -> Result<(CpuStorage, Shape)> {
        not_here()
    }

    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let shape = layout.shape();
        let count = shape.elem_count();
        let (y, y_pointer) = unwritten_storage(shape, x.dtype(), &x.device)?;
        let arguments = [Argument::storage(x, layout)?, y_pointer, Argument::count(count)];
        let kernel = named("gelu_forward", x.dtype())?;
        launch(&x.device, ROWS, &kernel, Grid::elements(count), &arguments)?;
        Ok((y, shape.clone()))
    }

    fn bwd(&self, x: &Tensor, _y: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let device = device_of(x)?;
        let (x, gradient) = (x.contiguous()?, gradient.contiguous()?);
        let dx = unwritten(x.shape(), x.dtype(), device)?;
        let count = x.elem_count();
        let arguments = [
            Argument::tensor(&x)?,
            Argument::tensor(&gradient)?,
            Argument::tensor(&dx)?,
            Argument::count(count),
        ];
        let kernel = named("gelu_backward", x.dtype())?;
        launch(device, ROWS, &kernel, Grid::elements(count), &arguments)?;
        Ok(Some(dx))
    }
}

struct Embedding;

impl CustomOp2 for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn cpu_fwd(
        &self,
        _token: &CpuStorage,
        _token_layout: &Layout,
        _ids: &CpuStorage,
        _ids_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        not_here()
    }

    fn cuda_fwd(
        &self,
        token: &CudaStorage,
        token_layout: &Layout,
        ids: &CudaStorage,
        ids_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let (_, c) = token_layout.shape().dims2()?;
        let rows = ids_layout.shape().elem_count();
        Ok((token.index_select(ids, token_layout, ids_layout, 0)?, (rows, c).into()))
    }

    fn bwd(
        &self,
        token: &Tensor,
        ids: &Tensor,
        _x: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let device = device_of(token)?;
        let (rows, c) = gradient.dims2()?;
        let gradient = gradient.contiguous()?;
        let d_token = Tensor::zeros(token.shape(), DType::F32, token.device())?;
        let arguments = [
            Argument::tensor(&ids.contiguous()?)?,
            Argument::tensor(&gradient)?,
            Argument::tensor(&d_token)?,
            Argument::size(rows)?,
            Argument::size(c)?,
        ];
        launch(device, ROWS, "embed_backward", Grid::of(rows, 128), &arguments)?;
        Ok((Some(d_token), None))
    }
}

struct Rotate {
    turns: Tensor,
    first: usize,
}

impl Rotate {
    /// Turns (B, T, H, D) elements forwards where `sign` is 1 and back where it is −1.
    fn turn(
        &self,
        (from, to): (Argument, Argument),
        shape: &Shape,
        dtype: DType,
        sign: f32,
    ) -> Result<()> {
        let (batch, time, heads, d_head) = shape.dims4()?;
        let (positions, pairs, _) = self.turns.dims3()?;
        if self.first + time > positions || d_head != 2 * pairs {
            bail!("rotation of {} positions; there are angles for {positions}", self.first + time);
        }
        let arguments = [
            from,
            to,
            Argument::tensor(&self.turns)?,
            Argument::size(self.first)?,
            Argument::size(batch * time)?,
            Argument::size(time)?,
            Argument::size(heads)?,
            Argument::size(d_head)?,
            Argument::Float(sign),
        ];
        let device = device_of(&self.turns)?;
        let grid = Grid::of(batch * time, 128);
        launch(device, ROWS, &named("rotate", dtype)?, grid, &arguments)
    }
}

impl CustomOp1 for Rotate {
    fn name(&self) -> &'static str {
        "rotate"
    }

    fn cpu_fwd(&self, _x: &CpuStorage, _layout: &Layout) -> Result<(CpuStorage, Shape)> {
        not_here()
    }

    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        let (y, y_pointer) = unwritten_storage(layout.shape(), x.dtype(), &x.device)?;
        let pointers = (Argument::storage(x, layout)?, y_pointer);
        self.turn(pointers, layout.shape(), x.dtype(), 1.0)?;
        Ok((y, layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _y: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let gradient = gradient.contiguous()?;
        let dx = unwritten(x.shape(), x.dtype(), device_of(x)?)?;
        let pointers = (Argument::tensor(&gradient)?, Argument::tensor(&dx)?);
        self.turn(pointers, x.shape(), x.dtype(), -1.0)?;
        Ok(Some(dx))
    }
}
