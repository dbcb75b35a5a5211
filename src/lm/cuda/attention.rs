//! Attention on an NVIDIA GPU, with global and local heads and statistics of the logits.

use candle_core::{CudaDevice, DType, Device, Result, Tensor, bail};

use super::launch::{ATTENTION, Grid, arguments, device_of, launch, named, unwritten};
use crate::lm::attention::{Attended, AttentionGradients, Dimensions, Heads};
use crate::targets::HeadKind;

/// Rows per block in the forward pass, and columns per block in the backward pass.
const TILE: usize = 64;
const THREADS: u32 = 128;
/// Values of d_head for which kernels are compiled; a smaller d_head is padded with zeros.
const PADDED: [usize; 5] = [16, 32, 64, 96, 128];

/// See [`crate::lm::attention::attention`].
///
/// # Errors
/// A d_head above 128.
pub(in crate::lm) fn attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    slopes: Option<&Tensor>,
    heads: &Heads,
) -> Result<Attended> {
    let dimensions = heads.dimensions(q.shape(), k.shape(), v.shape())?;
    let pass = Pass {
        windows: windows(heads, q.device())?,
        slopes: slopes.map(Tensor::contiguous).transpose()?,
        device: device_of(q)?.clone(),
        dtype: q.dtype(),
        softcap: heads.softcap.unwrap_or(0.0),
        dimensions,
    };
    let inputs = [q.contiguous()?, k.contiguous()?, v.contiguous()?];
    let (output, log_sum_exp, statistics) = pass.forward(&inputs)?;
    let kept = output.clone();
    let pullback = move |gradient: &Tensor| pass.backward(&inputs, &kept, &log_sum_exp, gradient);
    Ok(Attended { output, statistics, pullback: Box::new(pullback) })
}

/// The largest number of columns that a row of each head attends to, (H) of uint32. Created once.
fn windows(heads: &Heads, device: &Device) -> Result<Tensor> {
    if let Some(windows) = heads.on_device.get() {
        return Ok(windows.clone());
    }
    // The kernels read these numbers as int.
    let most = u32::MAX >> 1;
    let windows = heads.kinds.iter().map(|kind| match *kind {
        HeadKind::Global => most,
        HeadKind::Local { window } => u32::try_from(window).unwrap_or(most).min(most),
    });
    let windows = Tensor::new(windows.collect::<Vec<u32>>(), device)?;
    Ok(heads.on_device.get_or_init(|| windows).clone())
}

/// Parameters shared by all kernels of one call.
struct Pass {
    device: CudaDevice,
    dtype: DType,
    dimensions: Dimensions,
    /// 0 means no softcap.
    softcap: f32,
    windows: Tensor,
    /// (H) of float32.
    slopes: Option<Tensor>,
}

impl Pass {
    /// The name of a kernel for this dtype and d_head.
    fn kernel(&self, name: &str) -> Result<String> {
        let d_head = self.dimensions.d_head;
        match PADDED.into_iter().find(|padded| *padded >= d_head) {
            Some(padded) => Ok(format!("{}_{padded}", named(name, self.dtype)?)),
            None => bail!("attention on a GPU needs d_head of at most 128 ({d_head} found)"),
        }
    }

    fn launch(&self, name: &str, tensors: &[&Tensor]) -> Result<()> {
        let Dimensions { batch, time, heads, d_head } = self.dimensions;
        // A placeholder for absent slopes; kernels do not read it.
        let unread = unwritten(heads, DType::F32, &self.device)?;
        let slopes = self.slopes.as_ref().unwrap_or(&unread);
        let arguments = arguments(
            &[tensors, &[&self.windows, slopes]].concat(),
            &[usize::from(self.slopes.is_some()), batch, time, heads, d_head],
            &[self.dimensions.scale(), self.softcap],
        )?;
        let blocks = [time.div_ceil(TILE), batch * heads];
        let grid = Grid { blocks, threads: THREADS, shared_bytes: 0 };
        launch(&self.device, ATTENTION, &self.kernel(name)?, grid, &arguments)
    }

    /// The output, log Σ e^z of each row with shape (B, H, T), and the statistics.
    fn forward(&self, [q, k, v]: &[Tensor; 3]) -> Result<(Tensor, Tensor, Tensor)> {
        let Dimensions { batch, time, heads, .. } = self.dimensions;
        let output = unwritten(q.shape(), self.dtype, &self.device)?;
        let log_sum_exp = unwritten((batch, heads, time), DType::F32, &self.device)?;
        let count = batch * time.div_ceil(TILE);
        let partials = unwritten((heads, count, 3), DType::F32, &self.device)?;
        self.launch("attention_forward", &[q, k, v, &output, &log_sum_exp, &partials])?;

        let statistics = unwritten((heads, 3), DType::F32, &self.device)?;
        let rows = (batch * time) as f32;
        let arguments = arguments(&[&partials, &statistics], &[heads, count], &[rows])?;
        let grid = Grid::of(heads, THREADS);
        launch(&self.device, ATTENTION, "attention_statistics", grid, &arguments)?;
        Ok((output, log_sum_exp, statistics))
    }

    fn backward(
        &self,
        [q, k, v]: &[Tensor; 3],
        output: &Tensor,
        log_sum_exp: &Tensor,
        gradient: &Tensor,
    ) -> Result<AttentionGradients> {
        let Dimensions { batch, time, heads, d_head } = self.dimensions;
        let gradient = gradient.contiguous()?;
        let delta = unwritten((batch, heads, time), DType::F32, &self.device)?;
        let sizes = [batch, time, heads, d_head];
        let arguments = arguments(&[output, &gradient, &delta], &sizes, &[])?;
        // One warp per row, four warps per block.
        let grid = Grid::of((batch * heads * time).div_ceil(4).min(4096), THREADS);
        let kernel = named("attention_delta", self.dtype)?;
        launch(&self.device, ATTENTION, &kernel, grid, &arguments)?;

        // Every block of columns adds to it.
        let dq = Tensor::zeros(q.shape(), DType::F32, q.device())?;
        let [dk, dv] = [k, v].map(|x| unwritten(x.shape(), self.dtype, &self.device));
        let (dk, dv) = (dk?, dv?);
        let d_slopes = Tensor::zeros(heads, DType::F32, q.device())?;
        self.launch(
            "attention_backward",
            &[q, k, v, &gradient, log_sum_exp, &delta, &dq, &dk, &dv, &d_slopes],
        )?;
        Ok(AttentionGradients {
            heads: [dq.to_dtype(self.dtype)?, dk, dv],
            slopes: self.slopes.as_ref().map(|_| d_slopes),
        })
    }
}
