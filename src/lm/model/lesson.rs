//! A teacher's attention as a term of the loss: what distils its patterns into a student's heads.

use std::sync::Arc;

use candle_core::{Result, Tensor};
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

use crate::lm::operators::{float32, like, with_elements};
use crate::numerics::{gemm, softmax};
use crate::pattern::{HeadKind, Visibility};

/// A teacher's queries and keys on one batch, by layer.
pub(in crate::lm) struct Lesson {
    pub(super) layers: Vec<LayerLesson>,
}

#[derive(Clone)]
pub(super) struct LayerLesson {
    pub(super) q: Tensor,
    pub(super) k: Tensor,
    pub(super) kinds: Arc<[HeadKind]>,
    pub(super) weight: f64,
}

/// What one head of one sequence learns.
struct HeadLesson {
    kl_nats: f64,
    dq: Array2<f32>,
    dk: Array2<f32>,
}

impl LayerLesson {
    /// The gradients of weight · Σ over heads of the mean over rows of KL(teacher ‖ student) with respect to the
    /// student's queries and keys, (B, T, H, D) each, and that mean's sum over heads, in nats, without the
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
        let (b, t, h, d) = q.dims4()?;
        let (_, _, _, teacher_d) = self.q.dims4()?;
        let all = [&float32(q)?, &float32(k)?, &float32(&self.q)?, &float32(&self.k)?];
        let lessons: Vec<HeadLesson> = with_elements(all, |[q, k, tq, tk]| {
            Ok((0..b * h)
                .into_par_iter()
                .map(|index| {
                    let (batch, head) = (index / h, index % h);
                    let of = |data, d| one_head(data, (batch, head), (t, h, d));
                    let (q, k) = (of(q, d), of(k, d));
                    let student = attention(q.view(), k.view(), kinds[head]);
                    let (tq, tk) = (of(tq, teacher_d), of(tk, teacher_d));
                    let teacher = attention(tq.view(), tk.view(), self.kinds[head]);
                    let rows = (b * t) as f64;
                    let kl = |(p, s): (&f32, &f32)| {
                        if *p > 0.0 {
                            f64::from(*p) * f64::from(p / s.max(f32::MIN_POSITIVE)).ln()
                        } else {
                            0.0
                        }
                    };
                    let kl_nats = teacher.iter().zip(&student).map(kl).sum::<f64>() / rows;
                    let scale = (self.weight / rows / (d as f64).sqrt()) as f32;
                    let difference = student - teacher;
                    let (mut dq, mut dk) = (Array2::zeros((t, d)), Array2::zeros((t, d)));
                    gemm(scale, difference.view(), k.view(), 0.0, dq.view_mut());
                    gemm(scale, difference.t(), q.view(), 0.0, dk.view_mut());
                    HeadLesson { kl_nats, dq, dk }
                })
                .collect())
        })?;
        let (mut dq, mut dk) = (vec![0.0f32; b * t * h * d], vec![0.0f32; b * t * h * d]);
        for (index, lesson) in lessons.iter().enumerate() {
            let (batch, head) = (index / h, index % h);
            for row in 0..t {
                let to = ((batch * t + row) * h + head) * d;
                for (to, from) in [(&mut dq, &lesson.dq), (&mut dk, &lesson.dk)]
                    .map(|(v, m)| (&mut v[to..to + d], m.row(row)))
                {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                }
            }
        }
        let kl_nats = lessons.iter().map(|lesson| lesson.kl_nats).sum();
        Ok(([like(dq, q)?, like(dk, k)?], kl_nats))
    }
}

/// Head `head` of sequence `batch` out of (B, T, H, D) elements.
fn one_head(
    data: &[f32],
    (batch, head): (usize, usize),
    (t, h, d): (usize, usize, usize),
) -> Array2<f32> {
    Array2::from_shape_fn((t, d), |(row, channel)| {
        data[((batch * t + row) * h + head) * d + channel]
    })
}

/// softmax(QKᵀ/√D) over what each row sees, (T, T), 0 elsewhere.
fn attention(q: ArrayView2<'_, f32>, k: ArrayView2<'_, f32>, kind: HeadKind) -> Array2<f32> {
    let (t, d) = q.dim();
    let mut p = Array2::zeros((t, t));
    gemm(1.0 / (d as f32).sqrt(), q, k.t(), 0.0, p.view_mut());
    for (row, p) in p.rows_mut().into_iter().enumerate() {
        softmax(p, kind.columns(row, t, Visibility::Causal));
    }
    p
}
