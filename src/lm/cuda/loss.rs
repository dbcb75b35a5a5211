//! The output layer and its loss.

use candle_core::{CpuStorage, CudaStorage, CustomOp3, DType, Layout, Result, Shape, Tensor, bail};

use super::launch::{Argument, Grid, ROWS, device_of, launch, named, unwritten};

/// What the logits of a block of rows may take.
const BLOCK_BYTES: usize = 1 << 29;
const THREADS: u32 = 256;

/// As [`crate::lm::operators::output_loss`]; targets are not checked, the corpus has none above its
/// vocabulary.
///
/// Logits are held for a block of rows at a time, in the dtype of the hidden state, and turned into
/// gradients where they lie.
pub(in crate::lm) fn output_loss(
    hidden: &Tensor,
    embedding: &Tensor,
    targets: &Tensor,
    z_loss: f64,
) -> Result<(Tensor, Tensor)> {
    let wanted = hidden.track_op() || embedding.track_op();
    let found = blocks(&hidden.detach(), &embedding.detach(), targets, z_loss, wanted)?;
    let (objective, cross_entropy) = (found.objective.clone(), found.cross_entropy.clone());
    if !wanted {
        return Ok((objective, cross_entropy));
    }
    // Its value is known already; the operator is there for its gradients.
    let tracked = hidden.apply_op3(embedding, &objective, OutputLoss(found))?;
    Ok((tracked, cross_entropy))
}

struct Found {
    /// Scalars.
    objective: Tensor,
    cross_entropy: Tensor,
    /// Of the hidden state and the embedding, where they are wanted.
    gradients: Option<[Tensor; 2]>,
}

fn blocks(
    hidden: &Tensor,
    embedding: &Tensor,
    targets: &Tensor,
    z_loss: f64,
    wanted: bool,
) -> Result<Found> {
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
        let arguments = [
            Argument::tensor(&logits)?,
            Argument::tensor(&targets.narrow(0, first, rows)?)?,
            Argument::tensor(&cross_entropy)?,
            Argument::tensor(&square)?,
            Argument::size(rows)?,
            Argument::size(symbols)?,
            Argument::Float(1.0 / n as f32),
            Argument::Float(z_loss as f32),
            Argument::Int(wanted.into()),
        ];
        launch(device, ROWS, &named("loss_rows", dtype)?, Grid::of(rows, THREADS), &arguments)?;
        losses.push([cross_entropy.sum_all()?, square.sum_all()?]);
        if wanted {
            let more = logits.t()?.matmul(&here)?.to_dtype(DType::F32)?;
            d_embedding = Some(match d_embedding {
                Some(sum) => (sum + more)?,
                None => more,
            });
            d_hidden.push(logits.matmul(embedding)?);
        }
    }
    let total = |which: usize| -> Result<Tensor> {
        let parts: Vec<&Tensor> = losses.iter().map(|parts| &parts[which]).collect();
        Tensor::stack(&parts, 0)?.sum_all()? / n as f64
    };
    let cross_entropy = total(0)?;
    let objective = (&cross_entropy + (total(1)? * z_loss)?)?;
    let gradients = match d_embedding {
        Some(d_embedding) => {
            Some([Tensor::cat(&d_hidden, 0)?, d_embedding.to_dtype(embedding.dtype())?])
        }
        None => None,
    };
    Ok(Found { objective, cross_entropy, gradients })
}

struct OutputLoss(Found);

impl CustomOp3 for OutputLoss {
    fn name(&self) -> &'static str {
        "output-loss"
    }

    fn cpu_fwd(
        &self,
        _hidden: &CpuStorage,
        _hidden_layout: &Layout,
        _embedding: &CpuStorage,
        _embedding_layout: &Layout,
        _objective: &CpuStorage,
        _objective_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        bail!("this operator runs on the GPU only")
    }

    fn cuda_fwd(
        &self,
        _hidden: &CudaStorage,
        _hidden_layout: &Layout,
        _embedding: &CudaStorage,
        _embedding_layout: &Layout,
        objective: &CudaStorage,
        objective_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        use candle_core::backend::BackendStorage;

        Ok((objective.try_clone(objective_layout)?, objective_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _hidden: &Tensor,
        _embedding: &Tensor,
        _value: &Tensor,
        _objective: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some([d_hidden, d_embedding]) = &self.0.gradients else {
            bail!("output loss: backward without a forward pass that kept gradients");
        };
        let scaled = |x: &Tensor| x.broadcast_mul(&gradient.to_dtype(x.dtype())?).map(Some);
        Ok((scaled(d_hidden)?, scaled(d_embedding)?, None))
    }
}
