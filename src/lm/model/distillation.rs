//! Attention distillation: the divergence from a teacher's attention and its gradients.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

use crate::lm::attention::Dimensions;
use crate::lm::operators::{float32, like, with_elements};
use crate::numerics::{gemm, softmax};
use crate::targets::{HeadKind, Visibility};

/// A teacher's queries and keys on one batch, by layer.
pub(in crate::lm) struct DistillationTarget {
    pub(super) layers: Vec<LayerTarget>,
}

#[derive(Clone)]
pub(super) struct LayerTarget {
    pub(super) q: Tensor,
    pub(super) k: Tensor,
    pub(super) kinds: Arc<[HeadKind]>,
    pub(super) weight: f64,
}

/// Divergence and gradients of one head of one sequence.
struct HeadGradients {
    kl_nats: f64,
    /// Gradients of queries and keys.
    gradients: [Array2<f32>; 2],
}

impl LayerTarget {
    /// Gradients of weight · Σ over heads of the mean over rows of KL(teacher ‖ student) with respect to the
    /// student's queries and keys, (B, T, H, D) each. Also returns the sum over heads of that mean, in nats, without the
    /// weight.
    ///
    /// With Pₜ and Pₛ the attention of teacher and student: dZ = weight (Pₛ − Pₜ)/(B·T), dQ = dZ K/√D,
    /// dK = dZᵀ Q/√D.
    pub(super) fn gradients(
        &self,
        q: &Tensor,
        k: &Tensor,
        kinds: &[HeadKind],
    ) -> Result<([Tensor; 2], f64)> {
        let (batch, time, heads, d_head) = q.dims4()?;
        let own = Dimensions { batch, time, heads, d_head };
        let teachers = Dimensions { d_head: self.q.dim(3)?, ..own };
        let rows = (batch * time) as f64;
        let scale = (self.weight / rows / (d_head as f64).sqrt()) as f32;
        let all = [&float32(q)?, &float32(k)?, &float32(&self.q)?, &float32(&self.k)?];
        let found: Vec<HeadGradients> = with_elements(all, |[q, k, tq, tk]| {
            let of_head = |index: usize| {
                let head = index % heads;
                let (q, k) = (own.matrix(q, index), own.matrix(k, index));
                let student = attention(q.view(), k.view(), kinds[head]);
                let (tq, tk) = (teachers.matrix(tq, index), teachers.matrix(tk, index));
                let teacher = attention(tq.view(), tk.view(), self.kinds[head]);
                let kl = |(p, s): (&f32, &f32)| {
                    if *p > 0.0 {
                        f64::from(*p) * f64::from(p / s.max(f32::MIN_POSITIVE)).ln()
                    } else {
                        0.0
                    }
                };
                let kl_nats = teacher.iter().zip(&student).map(kl).sum::<f64>() / rows;
                let difference = student - teacher;
                let [mut dq, mut dk] = [(); 2].map(|()| Array2::zeros((time, d_head)));
                gemm(scale, difference.view(), k.view(), 0.0, dq.view_mut());
                gemm(scale, difference.t(), q.view(), 0.0, dk.view_mut());
                HeadGradients { kl_nats, gradients: [dq, dk] }
            };
            Ok((0..batch * heads).into_par_iter().map(of_head).collect())
        })?;
        let [dq, dk] = [0, 1].map(|which| {
            own.tensor(|index, row, to| {
                let from = found[index].gradients[which].row(row);
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            })
        });
        let kl_nats = found.iter().map(|target| target.kl_nats).sum();
        Ok(([like(dq, q)?, like(dk, k)?], kl_nats))
    }
}

/// softmax(QKᵀ/√D) over the columns that each row attends to, (T, T); 0 elsewhere.
fn attention(q: ArrayView2<'_, f32>, k: ArrayView2<'_, f32>, kind: HeadKind) -> Array2<f32> {
    let (t, d) = q.dim();
    let mut p = Array2::zeros((t, t));
    gemm(1.0 / (d as f32).sqrt(), q, k.t(), 0.0, p.view_mut());
    for (row, p) in p.rows_mut().into_iter().enumerate() {
        softmax(p, kind.columns(row, t, Visibility::Causal));
    }
    p
}
