//! The output layer and its loss in one operator.
//!
//! For N tokens and V symbols the logits are N × V, by far the largest array of a step. This operator computes logits,
//! loss and gradients of one block of rows while it is in cache, and then drops the logits. Gradients
//! are computed in the forward pass, because the loss is where they start.

use candle_core::{Result, Tensor, bail};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;

use super::elements::{CHUNK_ROWS, Objective, OutputLoss, float32, like, matrix, with_elements};
use crate::lm::simd;
use crate::numerics::gemm;

/// Number of rows whose logits exist at a time.
const BLOCK_ROWS: usize = 512;
/// Gap between rows of logits: with a power of two of symbols, rows would otherwise share the same sets of a cache.
const ROW_GAP: usize = 16;
/// Rows of the gradient of the hidden state per task.
const TASK_ROWS: usize = 256;
/// Symbols per task whose logits or gradients are computed.
const TASK_SYMBOLS: usize = 1024;

/// With z = hidden · embeddingᵀ for a hidden state (N, C), an embedding (V, C) and targets (N) of
/// uint32: the cross-entropy, which is the mean over rows of log Z − z(target) with Z = Σ e^z, and the gradients of the
/// [`Objective`]. The cross-entropy is not rounded.
///
/// # Errors
/// A number of targets other than N; on a CPU a target that is not below V, on a GPU an exponent other than 1.
pub(in crate::lm) fn output_loss(
    hidden: &Tensor,
    embedding: &Tensor,
    targets: &Tensor,
    objective: Objective,
    wanted: bool,
) -> Result<OutputLoss> {
    let ((n, c), (v, channels)) = (hidden.dims2()?, embedding.dims2()?);
    if channels != c || targets.elem_count() != n {
        let targets = targets.elem_count();
        bail!("{n} rows of {c} channels; an embedding of {channels}, {targets} targets");
    }
    #[cfg(feature = "cuda")]
    if hidden.device().is_cuda() {
        return crate::lm::cuda::output_loss(hidden, embedding, targets, objective, wanted);
    }
    let mut gradients = wanted.then(|| (Array2::zeros((n, c)), Array2::zeros((v, c))));
    let cross_entropy = with_elements([targets], |[targets]: [&[u32]; 1]| {
        if let Some(target) = targets.iter().find(|&&target| target as usize >= v) {
            bail!("target {target}, but the vocabulary has {v} symbols");
        }
        with_elements([&float32(hidden)?, &float32(embedding)?], |[hidden, embedding]| {
            let (hidden, embedding) = (matrix(hidden, c)?, matrix(embedding, c)?);
            Ok(Blocks { objective, wanted }.run(hidden, embedding, targets, gradients.as_mut()))
        })
    })?;
    let gradients = match gradients {
        Some((d_hidden, d_embedding)) => Some([
            like(d_hidden.into_raw_vec_and_offset().0, hidden)?,
            like(d_embedding.into_raw_vec_and_offset().0, embedding)?,
        ]),
        None => None,
    };
    Ok(OutputLoss {
        cross_entropy: Tensor::new(cross_entropy / n as f64, hidden.device())?,
        gradients,
    })
}

/// Parameters of the loop over blocks of rows.
struct Blocks {
    objective: Objective,
    /// Whether gradients are requested.
    wanted: bool,
}

impl Blocks {
    /// The sum over rows of the cross-entropy. Adds to the gradients, which must be
    /// zero. Blocks are processed in order, and within a block each task has its own part of the output, so no sum
    /// depends on the number of threads.
    fn run(
        &self,
        hidden: ArrayView2<f32>,
        embedding: ArrayView2<f32>,
        targets: &[u32],
        mut gradients: Option<&mut (Array2<f32>, Array2<f32>)>,
    ) -> f64 {
        let (n, v) = (hidden.nrows(), embedding.nrows());
        let mut scratch = Array2::zeros((n.min(BLOCK_ROWS), v + ROW_GAP));
        let mut sum = 0.0;
        for start in (0..n).step_by(BLOCK_ROWS) {
            let rows = start..n.min(start + BLOCK_ROWS);
            let hidden = hidden.slice(s![rows.clone(), ..]);
            let mut logits = scratch.slice_mut(s![..rows.len(), ..v]);
            output_logits(hidden, embedding, logits.view_mut());
            sum += self.losses(&mut logits, &targets[rows.clone()], n).iter().sum::<f64>();
            if let Some((d_hidden, d_embedding)) = gradients.as_deref_mut() {
                let d_logits = logits.view();
                let d_hidden = d_hidden.slice_mut(s![rows, ..]);
                rayon::join(
                    || hidden_gradient(d_logits, embedding, d_hidden),
                    || embedding_gradient(d_logits, hidden, d_embedding.view_mut()),
                );
            }
        }
        sum
    }

    /// The losses of a block, by chunk of rows. Replaces logits z by the gradient of the objective, if it is requested.
    fn losses(&self, logits: &mut ArrayViewMut2<f32>, targets: &[u32], n: usize) -> Vec<f64> {
        let chunks: Vec<_> = logits.axis_chunks_iter_mut(Axis(0), CHUNK_ROWS).collect();
        let losses = chunks.into_par_iter().zip(targets.par_chunks(CHUNK_ROWS));
        let losses = losses.map(|(mut rows, targets)| {
            let mut sum = 0.0;
            for (mut row, &target) in rows.rows_mut().into_iter().zip(targets) {
                let target = target as usize;
                let hit = row[target];
                // Rows of a row-major matrix are always slices; otherwise the row's loss would be missing.
                let Some(row) = row.as_slice_mut() else { continue };
                let terms = simd::softmax_terms_of(row, None, None);
                let log_z = f64::from(terms.max) + terms.sum.ln();
                let loss = f64::from(terms.max - hit) + terms.sum.ln();
                sum += loss;
                if self.wanted {
                    let slope = self.objective.slope(loss);
                    let weight = (slope + 2.0 * self.objective.z_loss * log_z) / n as f64;
                    let factor = (weight / terms.sum) as f32;
                    row.iter_mut().for_each(|p| *p *= factor);
                    row[target] -= slope as f32 / n as f32;
                }
            }
            sum
        });
        losses.collect()
    }
}

/// x Eᵀ for x of shape (N, channels) and a table E (symbols, channels); without a backward pass.
pub(in crate::lm) fn tied_logits(x: &Tensor, embedding: &Tensor) -> Result<Tensor> {
    if x.device().is_cuda() {
        return x.matmul(&embedding.t()?);
    }
    let ((n, c), symbols) = (x.dims2()?, embedding.dim(0)?);
    let mut logits = Array2::zeros((n, symbols));
    with_elements([&float32(x)?, &float32(embedding)?], |[x, embedding]| {
        output_logits(matrix(x, c)?, matrix(embedding, c)?, logits.view_mut());
        Ok(())
    })?;
    let logits = logits.into_raw_vec_and_offset().0;
    Tensor::from_vec(logits, (n, symbols), x.device())?.to_dtype(x.dtype())
}

/// z = hidden · embeddingᵀ; tasks split the symbols.
fn output_logits(
    hidden: ArrayView2<f32>,
    embedding: ArrayView2<f32>,
    mut logits: ArrayViewMut2<f32>,
) {
    let tasks: Vec<_> = logits
        .axis_chunks_iter_mut(Axis(1), TASK_SYMBOLS)
        .zip(embedding.axis_chunks_iter(Axis(0), TASK_SYMBOLS))
        .collect();
    tasks.into_par_iter().for_each(|(logits, embedding)| {
        gemm(1.0, hidden, embedding.t(), 0.0, logits);
    });
}

/// d hidden = dz · embedding; tasks split the rows.
fn hidden_gradient(
    d_logits: ArrayView2<f32>,
    embedding: ArrayView2<f32>,
    mut d_hidden: ArrayViewMut2<f32>,
) {
    let tasks: Vec<_> = d_hidden
        .axis_chunks_iter_mut(Axis(0), TASK_ROWS)
        .zip(d_logits.axis_chunks_iter(Axis(0), TASK_ROWS))
        .collect();
    tasks.into_par_iter().for_each(|(d_hidden, d_logits)| {
        gemm(1.0, d_logits, embedding, 0.0, d_hidden);
    });
}

/// d embedding += dzᵀ · hidden; tasks split the symbols.
fn embedding_gradient(
    d_logits: ArrayView2<f32>,
    hidden: ArrayView2<f32>,
    mut d_embedding: ArrayViewMut2<f32>,
) {
    let tasks: Vec<_> = d_embedding
        .axis_chunks_iter_mut(Axis(0), TASK_SYMBOLS)
        .zip(d_logits.axis_chunks_iter(Axis(1), TASK_SYMBOLS))
        .collect();
    tasks.into_par_iter().for_each(|(d_embedding, d_logits)| {
        gemm(1.0, d_logits.t(), hidden, 1.0, d_embedding);
    });
}

#[cfg(test)]
mod tests {
    use candle_core::{D, Device};

    use super::super::tests::{largest_difference, wave};
    use super::*;

    #[test]
    fn loss_and_gradients_match_plain_tensor_operations() {
        // More rows than a block, more symbols than a task, and ragged ends of both.
        let (n, v, c) = (BLOCK_ROWS + 75, TASK_SYMBOLS + 33, 12);
        let (hidden, embedding) = (wave((n, c), 0.0), wave((v, c), 1.0));
        let targets: Vec<u32> = (0..n).map(|i| (i * 7 % v) as u32).collect();
        let targets = Tensor::from_vec(targets, n, &Device::Cpu).unwrap();
        for (exponent, z_loss) in [(1.0, 0.0), (1.0, 0.3), (0.5, 0.0), (0.7, 0.3)] {
            let objective = Objective { exponent, z_loss };
            let found = output_loss(&hidden, &embedding, &targets, objective, true).unwrap();
            let logits = hidden.matmul(&embedding.t().unwrap()).unwrap();
            let log_z = logits.log_sum_exp(D::Minus1).unwrap();
            let hit = logits.gather(&targets.unsqueeze(1).unwrap(), 1).unwrap();
            let losses = (&log_z - hit.squeeze(1).unwrap()).unwrap();
            let plain = losses.mean_all().unwrap();
            let off = found.cross_entropy.to_scalar::<f64>().unwrap()
                - f64::from(plain.to_scalar::<f32>().unwrap());
            assert!(off.abs() < 1e-5, "{objective:?}: the cross-entropy differs by {off:e}");
            let square = (log_z.sqr().unwrap().mean_all().unwrap() * z_loss).unwrap();
            let powers = losses.powf(exponent).unwrap().mean_all().unwrap();
            let store = (powers + square).unwrap().backward().unwrap();
            for (found, x) in found.gradients.unwrap().iter().zip([&hidden, &embedding]) {
                let off = largest_difference(found, store.get(x).unwrap());
                assert!(off < 1e-6, "{objective:?}: a gradient differs by {off:e}");
            }
            let unasked = output_loss(&hidden, &embedding, &targets, objective, false).unwrap();
            assert!(unasked.gradients.is_none());
        }
    }

    #[test]
    fn targets_that_do_not_fit_are_refused() {
        let hidden = Tensor::zeros((3, 2), candle_core::DType::F32, &Device::Cpu).unwrap();
        for (targets, said) in [(vec![0u32, 5, 1], "target 5"), (vec![0, 1], "2 targets")] {
            let targets = Tensor::new(targets, &Device::Cpu).unwrap();
            let Err(error) =
                output_loss(&hidden, &hidden, &targets, Objective::CROSS_ENTROPY, false)
            else {
                panic!("{said} was accepted")
            };
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn logits_are_products_with_the_table_transposed() {
        let (x, table) = (wave((300, 20), 0.0), wave((70, 20), 1.0));
        let plain = x.matmul(&table.t().unwrap()).unwrap();
        let off = largest_difference(&tied_logits(&x, &table).unwrap(), &plain);
        assert!(off < 1e-5, "differs by {off:e}");
    }
}
