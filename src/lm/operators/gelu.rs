//! GELU in its tanh form.

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use rayon::prelude::*;

use super::{elements, with_elements};
use crate::lm::simd;

/// Elements that one task handles.
const CHUNK: usize = 1 << 14;

/// GELU(x) = ½ x (1 + tanh(√(2/π)(x + 0.044715 x³))), elementwise.
pub(in crate::lm) fn gelu(x: &Tensor) -> Result<Tensor> {
    x.contiguous()?.apply_op1(Gelu)
}

struct Gelu;

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = elements::<f32>(storage, layout)?;
        let mut y = vec![0.0; x.len()];
        y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| simd::gelu(x, y));
        Ok((CpuStorage::F32(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _y: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let dx = with_elements::<f32, _>(x, |x| {
            with_elements::<f32, _>(gradient, |g| {
                let mut dx = vec![0.0; x.len()];
                dx.par_chunks_mut(CHUNK)
                    .zip(x.par_chunks(CHUNK).zip(g.par_chunks(CHUNK)))
                    .for_each(|(dx, (x, g))| simd::gelu_gradient(x, g, dx));
                Ok(dx)
            })
        })?;
        Ok(Some(Tensor::from_vec(dx, x.shape(), x.device())?))
    }
}
