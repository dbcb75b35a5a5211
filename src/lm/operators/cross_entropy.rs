//! Cross-entropy of next-token predictions.

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::{CHUNK_ROWS, elements, with_elements};
use crate::lm::simd;

/// Mean over rows of logsumexp(zₙ) − zₙ(targetₙ), in nats, for logits of shape (N, V) and targets
/// of shape (N), uint32; a scalar.
pub(in crate::lm) fn cross_entropy(logits: &Tensor, targets: &Tensor) -> Result<Tensor> {
    logits.contiguous()?.apply_op2(targets, CrossEntropy)
}

struct CrossEntropy;

impl CustomOp2 for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(
        &self,
        logits: &CpuStorage,
        logits_layout: &Layout,
        targets: &CpuStorage,
        targets_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (n, v) = logits_layout.shape().dims2()?;
        let logits = elements::<f32>(logits, logits_layout)?;
        let targets = elements::<u32>(targets, targets_layout)?;
        if targets.len() != n {
            bail!("{n} rows of logits, but {} targets", targets.len());
        }
        if let Some(target) = targets.iter().find(|&&target| target as usize >= v) {
            bail!("target {target}, but the vocabulary has {v} symbols");
        }
        let parts: Vec<f64> = logits
            .par_chunks(CHUNK_ROWS * v)
            .zip(targets.par_chunks(CHUNK_ROWS))
            .map(|(logits, targets)| {
                let mut row = vec![0.0; v];
                let mut total = 0.0;
                for (logits, &target) in logits.chunks(v).zip(targets) {
                    row.copy_from_slice(logits);
                    let terms = simd::softmax_terms(&mut row);
                    let target = logits[target as usize];
                    total += f64::from(terms.max - target) + f64::from(terms.sum).ln();
                }
                total
            })
            .collect();
        let loss = parts.into_iter().sum::<f64>() / n as f64;
        Ok((CpuStorage::F32(vec![loss as f32]), Shape::from(())))
    }

    fn bwd(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        _loss: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (n, v) = logits.dims2()?;
        let scale = gradient.to_scalar::<f32>()? / n as f32;
        let d_logits = with_elements::<f32, _>(logits, |logits| {
            with_elements::<u32, _>(targets, |targets| {
                let mut d_logits = logits.to_vec();
                d_logits
                    .par_chunks_mut(CHUNK_ROWS * v)
                    .zip(targets.par_chunks(CHUNK_ROWS))
                    .for_each(|(rows, targets)| {
                        for (row, &target) in rows.chunks_mut(v).zip(targets) {
                            let factor = scale / simd::softmax_terms(row).sum;
                            for p in row.iter_mut() {
                                *p *= factor;
                            }
                            row[target as usize] -= scale;
                        }
                    });
                Ok(d_logits)
            })
        })?;
        Ok((Some(Tensor::from_vec(d_logits, (n, v), logits.device())?), None))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    #[test]
    fn loss_and_gradient_match_the_closed_form() {
        let (n, v) = (150, 33);
        let z: Vec<f32> = (0..n * v).map(|i| ((i as f32) * 1.3).sin() * 5.0).collect();
        let targets: Vec<u32> = (0..n).map(|i| (i * 7 % v) as u32).collect();
        let logits = Var::from_vec(z.clone(), (n, v), &Device::Cpu).unwrap();
        let loss =
            cross_entropy(&logits, &Tensor::new(&targets[..], &Device::Cpu).unwrap()).unwrap();
        let gradient = loss.backward().unwrap().get(&logits).unwrap().to_vec2::<f32>().unwrap();

        let mut expected = 0.0f64;
        let mut worst = 0.0f64;
        for row in 0..n {
            let z = &z[row * v..][..v];
            let sum: f64 = z.iter().map(|&z| f64::from(z).exp()).sum();
            expected += (sum.ln() - f64::from(z[targets[row] as usize])) / n as f64;
            for (j, &z) in z.iter().enumerate() {
                let hit = f64::from(u8::from(j == targets[row] as usize));
                let truth = (f64::from(z).exp() / sum - hit) / n as f64;
                worst = worst.max((truth - f64::from(gradient[row][j])).abs());
            }
        }
        let loss = f64::from(loss.to_scalar::<f32>().unwrap());
        assert!((loss - expected).abs() < 1e-5, "{loss} against {expected}");
        assert!(worst < 1e-8, "gradient differs by {worst:e}");
    }
}
