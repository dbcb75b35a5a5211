//! The output layer and its loss on the GPU.

use candle_core::{DType, Result, Tensor, bail};

use super::launch::{Argument, Grid, ROWS, arguments, device_of, launch, named, unwritten};
use crate::lm::operators::{Objective, OutputLoss, plus};

/// The largest size of the logits of a block of rows, in bytes.
const BLOCK_BYTES: usize = 1 << 29;
const THREADS: u32 = 256;

/// See [`crate::lm::operators::output_loss`]; targets are not checked, because the corpus has none above its vocabulary.
///
/// Logits exist for one block of rows at a time, in the dtype of the hidden state, and are replaced
/// by their gradients in place.
pub(in crate::lm) fn output_loss(
    hidden: &Tensor,
    embedding: &Tensor,
    targets: &Tensor,
    objective: Objective,
    wanted: bool,
) -> Result<OutputLoss> {
    let Objective { exponent, z_loss } = objective;
    if exponent != 1.0 {
        bail!("loss_exponent must be 1 on a GPU ({exponent} found); use --device cpu");
    }
    let device = device_of(hidden)?;
    let dtype = hidden.dtype();
    let (n, _) = hidden.dims2()?;
    let (symbols, _) = embedding.dims2()?;
    let (hidden, transposed) = (hidden.contiguous()?, embedding.t()?);
    let targets = targets.contiguous()?;
    let height = (BLOCK_BYTES / (symbols * dtype.size_in_bytes())).clamp(1, n);
    let (mut losses, mut d_hidden) = (Vec::new(), Vec::new());
    let mut d_embedding: Option<Tensor> = None;
    for first in (0..n).step_by(height) {
        let rows = height.min(n - first);
        let here = hidden.narrow(0, first, rows)?;
        let logits = here.matmul(&transposed)?;
        let found = [(); 2].map(|()| unwritten(rows, DType::F32, device));
        let [cross_entropy, square] = found;
        let (cross_entropy, square) = (cross_entropy?, square?);
        let targets = targets.narrow(0, first, rows)?;
        let mut arguments = arguments(
            &[&logits, &targets, &cross_entropy, &square],
            &[rows, symbols],
            &[1.0 / n as f32, z_loss as f32],
        )?;
        arguments.push(Argument::Int(wanted.into()));
        launch(device, ROWS, &named("loss_rows", dtype)?, Grid::of(rows, THREADS), &arguments)?;
        losses.push(cross_entropy.sum_all()?);
        if wanted {
            let more = logits.t()?.matmul(&here)?.to_dtype(DType::F32)?;
            d_embedding = Some(plus(d_embedding, more)?);
            d_hidden.push(logits.matmul(embedding)?);
        }
    }
    let cross_entropy = (Tensor::stack(&losses, 0)?.sum_all()? / n as f64)?;
    let gradients = match d_embedding {
        Some(d_embedding) => Some([Tensor::cat(&d_hidden, 0)?, d_embedding]),
        None => None,
    };
    Ok(OutputLoss { cross_entropy, gradients })
}
