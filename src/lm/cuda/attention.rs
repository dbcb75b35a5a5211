//! Attention with each head global or local, its logits measured on the way.

use std::sync::{Arc, OnceLock};

use candle_core::backend::BackendStorage;
use candle_core::{
    CpuStorage, CudaDevice, CudaStorage, CustomOp3, DType, Layout, Result, Shape, Tensor, bail,
};

use super::launch::{
    ATTENTION, Argument, Grid, device_of, launch, named, unwritten, unwritten_storage,
};
use crate::lm::attention::{Dimensions, Heads};
use crate::target::HeadKind;

/// Rows of a forward block, and columns of a backward one.
const TILE: usize = 64;
const THREADS: u32 = 128;
/// Head dimensions that kernels are compiled for; a smaller one is filled up with zeros.
const PADDED: [usize; 5] = [16, 32, 64, 96, 128];

/// As [`crate::lm::attention::attention`].
///
/// # Errors
/// More than 128 channels a head.
pub(in crate::lm) fn attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    heads: &Heads,
) -> Result<(Tensor, Tensor)> {
    let found = Arc::new(OnceLock::new());
    let windows = heads.kinds.iter().map(|kind| match *kind {
        HeadKind::Global => u32::MAX >> 1,
        HeadKind::Local { window } => u32::try_from(window).unwrap_or(u32::MAX) & (u32::MAX >> 1),
    });
    let windows = Tensor::from_iter(windows, q.device())?;
    let operator = Attention { heads: heads.clone(), windows, found: found.clone() };
    let output = q.contiguous()?.apply_op3(&k.contiguous()?, &v.contiguous()?, operator)?;
    match found.get() {
        Some(Found { statistics, .. }) => Ok((output, statistics.clone())),
        None => bail!("attention: the forward pass left no statistics"),
    }
}

/// What the forward pass leaves beside its output.
struct Found {
    /// log Σ e^z of each row, (B, H, T).
    log_sum_exp: Tensor,
    /// (H, 3).
    statistics: Tensor,
}

struct Attention {
    heads: Heads,
    /// (H) of uint32: the columns that a row sees at most.
    windows: Tensor,
    found: Arc<OnceLock<Found>>,
}

impl Attention {
    /// A kernel for tensors of a dtype and heads of D channels.
    fn kernel(name: &str, dtype: DType, d_head: usize) -> Result<String> {
        match PADDED.into_iter().find(|padded| *padded >= d_head) {
            Some(padded) => Ok(format!("{}_{padded}", named(name, dtype)?)),
            None => bail!("attention on a GPU has at most 128 channels a head, not {d_head}"),
        }
    }

    /// The sizes, scale and softcap that end every kernel's arguments.
    fn sizes(&self, dimensions: Dimensions) -> Result<[Argument; 6]> {
        let Dimensions { batch, time, heads, d_head } = dimensions;
        let [batch, time, heads, channels] = [batch, time, heads, d_head].map(Argument::size);
        let scale = Argument::Float(dimensions.scale());
        let softcap = Argument::Float(self.heads.softcap.unwrap_or(0.0));
        Ok([batch?, time?, heads?, channels?, scale, softcap])
    }

    fn grid(dimensions: Dimensions) -> Grid {
        let blocks = [dimensions.time.div_ceil(TILE), dimensions.batch * dimensions.heads];
        Grid { blocks, threads: THREADS, shared_bytes: 0 }
    }

    /// (H, 3) out of what each block of rows found.
    fn statistics(
        device: &CudaDevice,
        partials: &Tensor,
        dimensions: Dimensions,
    ) -> Result<Tensor> {
        let (heads, count, _) = partials.dims3()?;
        let statistics = unwritten((heads, 3), DType::F32, device)?;
        let rows = (dimensions.batch * dimensions.time) as f32;
        let arguments = [
            Argument::tensor(partials)?,
            Argument::tensor(&statistics)?,
            Argument::size(heads)?,
            Argument::size(count)?,
            Argument::Float(rows),
        ];
        launch(device, ATTENTION, "attention_statistics", Grid::of(heads, THREADS), &arguments)?;
        Ok(statistics)
    }
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(
        &self,
        _q: &CpuStorage,
        _q_layout: &Layout,
        _k: &CpuStorage,
        _k_layout: &Layout,
        _v: &CpuStorage,
        _v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        bail!("this operator runs on the GPU only")
    }

    fn cuda_fwd(
        &self,
        q: &CudaStorage,
        q_layout: &Layout,
        k: &CudaStorage,
        k_layout: &Layout,
        v: &CudaStorage,
        v_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let shape = q_layout.shape();
        let dimensions = self.heads.dimensions(shape, k_layout.shape(), v_layout.shape())?;
        let Dimensions { batch, time, heads, d_head } = dimensions;
        let (device, dtype) = (&q.device, q.dtype());
        let (output, output_pointer) = unwritten_storage(shape, dtype, device)?;
        let log_sum_exp = unwritten((batch, heads, time), DType::F32, device)?;
        let partials = unwritten((heads, batch * time.div_ceil(TILE), 3), DType::F32, device)?;
        let mut arguments = vec![
            Argument::storage(q, q_layout)?,
            Argument::storage(k, k_layout)?,
            Argument::storage(v, v_layout)?,
            output_pointer,
            Argument::tensor(&log_sum_exp)?,
            Argument::tensor(&partials)?,
            Argument::tensor(&self.windows)?,
        ];
        arguments.extend(self.sizes(dimensions)?);
        let kernel = Self::kernel("attention_forward", dtype, d_head)?;
        launch(device, ATTENTION, &kernel, Self::grid(dimensions), &arguments)?;
        let statistics = Self::statistics(device, &partials, dimensions)?;
        // Only a first run fills the cell; a second one would find the same.
        let _ = self.found.set(Found { log_sum_exp, statistics });
        Ok((output, shape.clone()))
    }

    fn bwd(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        output: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some(found) = self.found.get() else {
            bail!("attention: backward without a forward pass");
        };
        let gradient = gradient.contiguous()?;
        let dimensions = self.heads.dimensions(q.shape(), k.shape(), v.shape())?;
        let Dimensions { batch, time, heads, d_head } = dimensions;
        let (device, dtype) = (device_of(q)?, q.dtype());
        let sizes = self.sizes(dimensions)?;

        let delta = unwritten((batch, heads, time), DType::F32, device)?;
        let mut arguments = vec![
            Argument::tensor(output)?,
            Argument::tensor(&gradient)?,
            Argument::tensor(&delta)?,
        ];
        arguments.extend(&sizes[..4]);
        let grid = Grid::of((batch * heads * time).div_ceil(4).min(4096), THREADS);
        launch(device, ATTENTION, &named("attention_delta", dtype)?, grid, &arguments)?;

        // Added up by every block of columns.
        let dq = Tensor::zeros(q.shape(), DType::F32, q.device())?;
        let dk = unwritten(q.shape(), dtype, device)?;
        let dv = unwritten(q.shape(), dtype, device)?;
        let tensors =
            [q, k, v, &gradient, &found.log_sum_exp, &delta, &dq, &dk, &dv, &self.windows];
        let mut arguments =
            tensors.map(Argument::tensor).into_iter().collect::<Result<Vec<_>>>()?;
        arguments.extend(sizes);
        let kernel = Self::kernel("attention_backward", dtype, d_head)?;
        launch(device, ATTENTION, &kernel, Self::grid(dimensions), &arguments)?;
        Ok((Some(dq.to_dtype(dtype)?), Some(dk), Some(dv)))
    }
}
