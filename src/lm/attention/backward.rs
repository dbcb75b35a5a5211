//! The backward pass: the gradients of queries, keys and values.

use rayon::prelude::*;

use super::heads::{Dimensions, Heads, Lags, columns};
use super::tasks::{BlockRows, HeadRows, PACKED, Packed, Task, blocks, packed, parts};
use crate::lm::simd::{self, softmax_gradient};
use crate::numerics::products::{panel_width, row_group};
use crate::numerics::{Buffer, ColumnSums, Kernel, Pool, Real as _, Simd, Stripe, panels_of};

/// Gradients of q, k and v, and of the slopes of the position bias if there are any, from tensors of shape (B, T, H, D).
/// `log_sum_exp` holds log Σ e^z of each row in the order (batch, head, time).
///
/// With P the probabilities and G the gradient of the output: dV = PᵀG, dP = GVᵀ,
/// dZ = P ∘ (dP − rowsum(P ∘ dP)), dQ = dZ K / √d and dK = dZᵀ Q / √d, block by block. The row sum equals
/// that of G ∘ output, so it costs T·D. With a softcap c and capped logits y, dZ is also multiplied by
/// 1 − (y/c)², the derivative of c tanh(z/c). The gradient of a head's slope is Σ −|j − i| dY_ij,
/// dY = P ∘ (dP − rowsum(P ∘ dP)).
///
/// Each task sums its own dK and dV, and the tasks' sums are added in a fixed order. So the result does not
/// depend on the number of threads.
pub(super) fn backward(
    [q, k, v, output, gradient]: [&[f32]; 5],
    log_sum_exp: &[f32],
    dimensions: Dimensions,
    heads: &Heads,
    lags: Option<&Lags>,
) -> ([Vec<f32>; 3], Option<Vec<f32>>) {
    let Dimensions { time, d_head, .. } = dimensions;
    let packed = packed(dimensions, k, v);
    let tasks = dimensions.tasks(heads);
    let mut dq_by_head = vec![0.0; dimensions.count()];
    let work: Vec<_> = tasks.iter().zip(parts(&tasks, d_head, &mut dq_by_head)).collect();
    let sums: Vec<TaskSums> = work
        .into_par_iter()
        .with_max_len(1)
        .map(|(task, dq)| {
            let [keys, values] = &packed[task.index];
            let head = task.index % dimensions.heads;
            f32::run(BackwardTask {
                task,
                q: dimensions.head(q, task.index),
                output: dimensions.head(output, task.index),
                gradient: dimensions.head(gradient, task.index),
                log_sum_exp: &log_sum_exp[task.index * time..][task.rows.clone()],
                keys,
                values,
                dimensions,
                window: heads.window(head),
                softcap: heads.softcap,
                lags: lags.map(|lags| (lags, head)),
                dq,
            })
        })
        .collect();
    let mut by_head: Vec<Vec<[ColumnSums<f32>; 2]>> = packed.iter().map(|_| Vec::new()).collect();
    packed.into_iter().flatten().for_each(|packed| PACKED.put_back(packed));
    let mut slopes = lags.map(|_| vec![0.0f64; dimensions.heads]);
    for (task, TaskSums { columns, slope }) in tasks.iter().zip(sums) {
        by_head[task.index].push(columns);
        if let Some(slopes) = &mut slopes {
            slopes[task.index % dimensions.heads] += slope;
        }
    }
    let added = |which: usize| {
        dimensions.tensor(|index, column, to| {
            for more in by_head[index].iter().filter_map(|sums| sums[which].column(column)) {
                to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
            }
        })
    };
    let [dk, dv] = [0, 1].map(added);
    by_head.into_iter().flatten().flatten().for_each(|sums| SUMS.put_back(sums));
    let slopes = slopes.map(|sums| sums.into_iter().map(|sum| sum as f32).collect());
    ([dimensions.joined(&dq_by_head), dk, dv], slopes)
}

/// Contribution of one task to gradients that several tasks share.
struct TaskSums {
    /// dK and dV.
    columns: [ColumnSums<f32>; 2],
    /// Gradient of the slope; 0 without a position bias.
    slope: f64,
}

/// Scratch memory of a task.
#[derive(Default)]
struct Scratch {
    queries: BlockRows,
    upstream: BlockRows,
    probability: Buffer<f32>,
    d_logits: Buffer<f32>,
    mixed: Buffer<f32>,
}

static SCRATCH: Pool<Scratch> = Pool::new();
static SUMS: Pool<ColumnSums<f32>> = Pool::new();

struct BackwardTask<'a> {
    task: &'a Task,
    q: HeadRows<'a>,
    output: HeadRows<'a>,
    gradient: HeadRows<'a>,
    /// One value per row of the task.
    log_sum_exp: &'a [f32],
    keys: &'a Packed,
    values: &'a Packed,
    dimensions: Dimensions,
    window: usize,
    softcap: Option<f32>,
    /// With the index of the head whose slope applies.
    lags: Option<(&'a Lags, usize)>,
    /// (rows of the task, D).
    dq: &'a mut [f32],
}

impl Kernel<f32> for BackwardTask<'_> {
    type Output = TaskSums;

    #[inline(always)]
    fn run<S: Simd<f32>>(self, simd: S) -> TaskSums {
        let Self { task, q, output, gradient, keys, values, window, dq, .. } = self;
        let d_head = self.dimensions.d_head;
        let scale = self.dimensions.scale();
        let (panel, width) = (panel_width(simd), d_head.next_multiple_of(S::LANES));
        let seen = |row| columns(window, row);
        let columns = panels_of(&task.rows, panel, seen);
        let [mut dk, mut dv] = [(); 2].map(|()| SUMS.take());
        dk.begin(columns.clone(), width);
        dv.begin(columns, width);
        let mut of_slope = 0.0;
        let mut scratch = SCRATCH.take();
        let Scratch { queries, upstream, probability, d_logits, mixed } = &mut scratch;
        for here in blocks(&task.rows, window, 2) {
            let stripe = Stripe::new(here.clone(), panel, seen);
            let count = here.len().next_multiple_of(row_group(simd));
            probability.reserve(count * stripe.stride);
            d_logits.reserve(count * stripe.stride);
            mixed.reserve(count * width);
            queries.fill(simd, q, &here, scale);
            upstream.fill(simd, gradient, &here, 1.0);
            let operands = (&*queries.groups, &*keys.panels, d_head);
            stripe.by_transposed(simd, seen, operands, probability);
            let operands = (&*upstream.groups, &*values.panels, d_head);
            stripe.by_transposed(simd, seen, operands, d_logits);
            for row in here.clone() {
                let mean = simd::dot(gradient.row(row), output.row(row));
                let log_sum_exp = self.log_sum_exp[row - task.rows.start];
                let logits = stripe.clear_unseen(row, &seen(row), probability);
                let gradient = stripe.clear_unseen(row, &seen(row), d_logits);
                let sums = (log_sum_exp, mean);
                let slope = self.lags.map(|(lags, head)| lags.of_row(head, row, &seen(row)));
                of_slope += softmax_gradient(simd, logits, gradient, sums, self.softcap, slope);
            }
            let packed = (&*upstream.rows, width);
            stripe.transposed_times(simd, seen, probability, packed, &mut dv);
            // Queries carry the 1/√d, so this product does too.
            let packed = (&*queries.rows, width);
            stripe.transposed_times(simd, seen, d_logits, packed, &mut dk);
            stripe.times(simd, seen, d_logits, (&keys.rows, width), mixed);
            let to = dq[(here.start - task.rows.start) * d_head..].chunks_exact_mut(d_head);
            for (to, from) in to.zip(mixed.chunks_exact(width)).take(here.len()) {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = from * scale;
                }
            }
        }
        SCRATCH.put_back(scratch);
        TaskSums { columns: [dk, dv], slope: of_slope }
    }
}
