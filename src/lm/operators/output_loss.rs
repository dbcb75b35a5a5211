//! The output layer and its loss in one operator.
//!
//! For N tokens and V symbols the logits are N × V, by far the largest array of a step. Here a block
//! of rows is turned into logits, loss and gradients while it is in cache, and then dropped: since
//! the loss is a scalar, its gradients can be computed in the forward pass and only be scaled in
//! the backward one.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp3, DType, Layout, Result, Shape, Tensor, bail};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;

use super::{CHUNK_ROWS, elements, matrix};
use crate::lm::simd;

/// Rows whose logits are held at a time.
const BLOCK_ROWS: usize = 512;
/// Rows of the hidden state's gradient that one task computes.
const TASK_ROWS: usize = 256;
/// Symbols whose logits or gradients one task computes.
const TASK_SYMBOLS: usize = 1024;

/// With z = hidden · embeddingᵀ for a hidden state (N, C) and an embedding (V, C), and targets (N) of
/// uint32: the objective, mean over rows of log Z − z(target) + `z_loss` · (log Z)² with
/// Z = Σ e^z, and the first two terms alone, the cross-entropy in nats, without a gradient.
///
/// # Errors
/// A number of targets other than N, or a target of V or more.
pub(in crate::lm) fn output_loss(
    hidden: &Tensor,
    embedding: &Tensor,
    targets: &Tensor,
    z_loss: f64,
) -> Result<(Tensor, Tensor)> {
    #[cfg(feature = "cuda")]
    if hidden.device().is_cuda() {
        return crate::lm::cuda::output_loss(hidden, embedding, targets, z_loss);
    }
    let found = Arc::new(OnceLock::new());
    let wanted = hidden.track_op() || embedding.track_op();
    let operator = OutputLoss { z_loss, wanted, found: found.clone() };
    // The objective is not rounded.
    let hidden = hidden.to_dtype(DType::F32)?.contiguous()?;
    let objective = hidden.apply_op3(&embedding.to_dtype(DType::F32)?, targets, operator)?;
    match found.get() {
        Some(Found { cross_entropy, .. }) => {
            Ok((objective, Tensor::new(*cross_entropy, &candle_core::Device::Cpu)?))
        }
        None => bail!("output loss: the forward pass left no loss"),
    }
}

/// What the forward pass learns beside the objective.
struct Found {
    cross_entropy: f64,
    /// Of the hidden state and the embedding, where they are wanted.
    gradients: Option<(Vec<f32>, Vec<f32>)>,
}

struct OutputLoss {
    z_loss: f64,
    /// Whether gradients will be asked for.
    wanted: bool,
    found: Arc<OnceLock<Found>>,
}

impl CustomOp3 for OutputLoss {
    fn name(&self) -> &'static str {
        "output-loss"
    }

    fn cpu_fwd(
        &self,
        hidden: &CpuStorage,
        hidden_layout: &Layout,
        embedding: &CpuStorage,
        embedding_layout: &Layout,
        targets: &CpuStorage,
        targets_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (n, c) = hidden_layout.shape().dims2()?;
        let (v, channels) = embedding_layout.shape().dims2()?;
        let targets = elements::<u32>(targets, targets_layout)?;
        if channels != c || targets.len() != n {
            bail!(
                "{n} rows of {c} channels; an embedding of {channels}, {} targets",
                targets.len()
            );
        }
        if let Some(target) = targets.iter().find(|&&target| target as usize >= v) {
            bail!("target {target}, but the vocabulary has {v} symbols");
        }
        let hidden = matrix(elements(hidden, hidden_layout)?, (n, c))?;
        let embedding = matrix(elements(embedding, embedding_layout)?, (v, c))?;
        let (terms, gradients) = if self.wanted {
            let mut gradients = (Array2::zeros((n, c)), Array2::zeros((v, c)));
            let terms = self.blocks(hidden, embedding, targets, Some(&mut gradients));
            let (hidden, embedding) = gradients;
            (
                terms,
                Some((hidden.into_raw_vec_and_offset().0, embedding.into_raw_vec_and_offset().0)),
            )
        } else {
            (self.blocks(hidden, embedding, targets, None), None)
        };
        let [cross_entropy, square] = terms.map(|sum| sum / n as f64);
        let objective = cross_entropy + self.z_loss * square;
        // Only a first run fills the cell; a second one would find the same.
        let _ = self.found.set(Found { cross_entropy, gradients });
        Ok((CpuStorage::F32(vec![objective as f32]), Shape::from(())))
    }

    fn bwd(
        &self,
        hidden: &Tensor,
        embedding: &Tensor,
        _targets: &Tensor,
        _objective: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some(Found { gradients: Some((d_hidden, d_embedding)), .. }) = self.found.get() else {
            bail!("output loss: backward without a forward pass that kept gradients");
        };
        let scale = gradient.to_scalar::<f32>()?;
        let scaled = |data: &[f32], like: &Tensor| {
            let data = data.iter().map(|x| x * scale).collect();
            Tensor::from_vec(data, like.shape(), like.device()).map(Some)
        };
        Ok((scaled(d_hidden, hidden)?, scaled(d_embedding, embedding)?, None))
    }
}

impl OutputLoss {
    /// The sums over rows of the cross-entropy and of (log Z)²; fills the gradients, which start at
    /// zero. Blocks go in order, and within one each task has its own part of an output, so no sum
    /// depends on the number of threads.
    fn blocks(
        &self,
        hidden: ArrayView2<f32>,
        embedding: ArrayView2<f32>,
        targets: &[u32],
        mut gradients: Option<&mut (Array2<f32>, Array2<f32>)>,
    ) -> [f64; 2] {
        let (n, v) = (hidden.nrows(), embedding.nrows());
        let mut scratch = Array2::zeros((n.min(BLOCK_ROWS), v));
        let mut sums = [0.0; 2];
        for start in (0..n).step_by(BLOCK_ROWS) {
            let rows = start..n.min(start + BLOCK_ROWS);
            let hidden = hidden.slice(s![rows.clone(), ..]);
            let mut logits = scratch.slice_mut(s![..rows.len(), ..]);
            output_logits(hidden, embedding, logits.view_mut());
            for [entropy, square] in self.losses(&mut logits, &targets[rows.clone()], n) {
                sums[0] += entropy;
                sums[1] += square;
            }
            if let Some((d_hidden, d_embedding)) = gradients.as_deref_mut() {
                let d_logits = logits.view();
                let d_hidden = d_hidden.slice_mut(s![rows, ..]);
                rayon::join(
                    || hidden_gradient(d_logits, embedding, d_hidden),
                    || embedding_gradient(d_logits, hidden, d_embedding.view_mut()),
                );
            }
        }
        sums
    }

    /// A block's losses, by chunk of rows; replaces logits z by the gradient of the objective,
    /// ((1 + 2ς log Z) p − [target]) / N with p = e^z/Z.
    fn losses(&self, logits: &mut ArrayViewMut2<f32>, targets: &[u32], n: usize) -> Vec<[f64; 2]> {
        let chunks: Vec<_> = logits.axis_chunks_iter_mut(Axis(0), CHUNK_ROWS).collect();
        let losses = chunks.into_par_iter().zip(targets.par_chunks(CHUNK_ROWS));
        let losses = losses.map(|(mut rows, targets)| {
            let mut sums = [0.0; 2];
            for (mut row, &target) in rows.rows_mut().into_iter().zip(targets) {
                let target = target as usize;
                let hit = row[target];
                // A row of a row-major matrix is a slice; were it not, its loss would be missing.
                let Some(row) = row.as_slice_mut() else { continue };
                let terms = simd::softmax_terms_of(row, None);
                let log_z = f64::from(terms.max) + terms.sum.ln();
                sums[0] += f64::from(terms.max - hit) + terms.sum.ln();
                sums[1] += log_z * log_z;
                if self.wanted {
                    let weight = (1.0 + 2.0 * self.z_loss * log_z) / n as f64;
                    let factor = (weight / terms.sum) as f32;
                    row.iter_mut().for_each(|p| *p *= factor);
                    row[target] -= 1.0 / n as f32;
                }
            }
            sums
        });
        losses.collect()
    }
}

/// z = hidden · embeddingᵀ, symbols cut into tasks.
fn output_logits(
    hidden: ArrayView2<f32>,
    embedding: ArrayView2<f32>,
    mut logits: ArrayViewMut2<f32>,
) {
    let tasks: Vec<_> = logits
        .axis_chunks_iter_mut(Axis(1), TASK_SYMBOLS)
        .zip(embedding.axis_chunks_iter(Axis(0), TASK_SYMBOLS))
        .collect();
    tasks.into_par_iter().for_each(|(mut logits, embedding)| {
        general_mat_mul(1.0, &hidden, &embedding.t(), 0.0, &mut logits);
    });
}

/// d hidden = dz · embedding, rows cut into tasks.
fn hidden_gradient(
    d_logits: ArrayView2<f32>,
    embedding: ArrayView2<f32>,
    mut d_hidden: ArrayViewMut2<f32>,
) {
    let tasks: Vec<_> = d_hidden
        .axis_chunks_iter_mut(Axis(0), TASK_ROWS)
        .zip(d_logits.axis_chunks_iter(Axis(0), TASK_ROWS))
        .collect();
    tasks.into_par_iter().for_each(|(mut d_hidden, d_logits)| {
        general_mat_mul(1.0, &d_logits, &embedding, 0.0, &mut d_hidden);
    });
}

/// d embedding += dzᵀ · hidden, symbols cut into tasks.
fn embedding_gradient(
    d_logits: ArrayView2<f32>,
    hidden: ArrayView2<f32>,
    mut d_embedding: ArrayViewMut2<f32>,
) {
    let tasks: Vec<_> = d_embedding
        .axis_chunks_iter_mut(Axis(0), TASK_SYMBOLS)
        .zip(d_logits.axis_chunks_iter(Axis(1), TASK_SYMBOLS))
        .collect();
    tasks.into_par_iter().for_each(|(mut d_embedding, d_logits)| {
        general_mat_mul(1.0, &d_logits.t(), &hidden, 1.0, &mut d_embedding);
    });
}

#[cfg(test)]
mod tests {
    use candle_core::{D, Device, Var};

    use super::*;
    use crate::blas::single_threaded_blas;

    fn wave(count: usize, shift: f32) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * 1.3 + shift).sin()).collect()
    }

    #[test]
    fn loss_and_gradients_match_plain_tensor_operations() {
        single_threaded_blas();
        let device = Device::Cpu;
        // More rows than a block, more symbols than a task, and ragged ends of both.
        let (n, v, c) = (BLOCK_ROWS + 75, TASK_SYMBOLS + 33, 12);
        let hidden = Var::from_vec(wave(n * c, 0.0), (n, c), &device).unwrap();
        let embedding = Var::from_vec(wave(v * c, 1.0), (v, c), &device).unwrap();
        let targets: Vec<u32> = (0..n).map(|i| (i * 7 % v) as u32).collect();
        let targets = Tensor::from_vec(targets, n, &device).unwrap();
        for z_loss in [0.0, 0.3] {
            let (objective, loss) = output_loss(&hidden, &embedding, &targets, z_loss).unwrap();
            let loss = loss.to_scalar::<f64>().unwrap();
            let logits = hidden.matmul(&embedding.t().unwrap()).unwrap();
            let log_z = logits.log_sum_exp(D::Minus1).unwrap();
            let hit = logits.gather(&targets.unsqueeze(1).unwrap(), 1).unwrap();
            let plain = (&log_z - hit.squeeze(1).unwrap()).unwrap().mean_all().unwrap();
            let expected = f64::from(plain.to_scalar::<f32>().unwrap());
            assert!((loss - expected).abs() < 1e-5, "{loss} against {expected}");
            let square = (log_z.sqr().unwrap().mean_all().unwrap() * z_loss).unwrap();
            let plain = (plain + square).unwrap();
            let results = |objective: &Tensor| {
                let store = (objective * 2.0).unwrap().backward().unwrap();
                [&hidden, &embedding].map(|x| store.get(x).unwrap().clone())
            };
            for (ours, plain) in results(&objective).iter().zip(&results(&plain)) {
                let off = (ours - plain).unwrap().abs().unwrap().flatten_all().unwrap();
                let off = off.max(0).unwrap().to_scalar::<f32>().unwrap();
                assert!(off < 1e-6, "z_loss {z_loss}: a gradient differs by {off:e}");
            }
            let objective = objective.to_scalar::<f32>().unwrap();
            let off = (objective - plain.to_scalar::<f32>().unwrap()).abs();
            assert!(off < 1e-5, "z_loss {z_loss}: the objective differs by {off:e}");
        }
    }

    #[test]
    fn targets_that_do_not_fit_are_refused() {
        let hidden = Tensor::zeros((3, 2), candle_core::DType::F32, &Device::Cpu).unwrap();
        for (targets, said) in [(vec![0u32, 5, 1], "target 5"), (vec![0, 1], "2 targets")] {
            let targets = Tensor::new(targets, &Device::Cpu).unwrap();
            let error = output_loss(&hidden, &hidden, &targets, 0.0).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
