//! Reference implementation of attention for tests: plain differentiable tensor operations on T × T arrays.

use candle_core::{D, Result, Tensor};

use crate::lm::attention::{HeadStatistics, Heads};
use crate::targets::Visibility;

pub(super) fn attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    slopes: Option<&Tensor>,
    heads: &Heads,
) -> Result<(Tensor, Vec<HeadStatistics>)> {
    let (b, t, h, d) = q.dims4()?;
    let [q, k, v] = [q, k, v].map(|x| x.transpose(1, 2).and_then(|x| x.contiguous()));
    let (q, k, v) = (q?, k?, v?);
    let logits = (q.matmul(&k.t()?)? / (d as f64).sqrt())?;
    let mut mask = vec![0.0f32; h * t * t];
    for (head, kind) in heads.kinds.iter().enumerate() {
        for row in 0..t {
            for column in kind.columns(row, t, Visibility::Causal) {
                mask[(head * t + row) * t + column] = 1.0;
            }
        }
    }
    let mask_tensor = Tensor::from_slice(&mask, (1, h, t, t), q.device())?;
    let hidden = ((&mask_tensor - 1.0)? * 1e9)?;
    let capped = match heads.softcap {
        Some(cap) => ((&logits / f64::from(cap))?.tanh()? * f64::from(cap))?,
        None => logits.clone(),
    };
    let biased = match slopes {
        Some(slopes) => {
            let lags: Vec<f32> = (0..t * t).map(|at| -((at % t).abs_diff(at / t) as f32)).collect();
            let lags = Tensor::from_vec(lags, (1, 1, t, t), q.device())?;
            capped.broadcast_add(&slopes.reshape((1, h, 1, 1))?.broadcast_mul(&lags)?)?
        }
        None => capped,
    };
    let probabilities = candle_nn::ops::softmax(&biased.broadcast_add(&hidden)?, D::Minus1)?;
    let output = probabilities.matmul(&v)?.transpose(1, 2)?.contiguous()?;

    let mut statistics = vec![HeadStatistics::EMPTY; h];
    let z = logits.flatten_all()?.to_vec1::<f32>()?;
    let p = probabilities.flatten_all()?.to_vec1::<f32>()?;
    for (at, (&z, &p)) in z.iter().zip(&p).enumerate() {
        if mask[at % mask.len()] > 0.0 {
            let head = &mut statistics[at / t / t % h];
            head.max_logit = head.max_logit.max(z);
            head.min_logit = head.min_logit.min(z);
            if p > 0.0 {
                head.entropy_nats -= p * p.ln() / (b * t) as f32;
            }
        }
    }
    Ok((output, statistics))
}
