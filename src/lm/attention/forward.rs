//! The forward pass of attention on the CPU: output, log-sum-exps and statistics of the logits.

use rayon::prelude::*;

use super::heads::{Dimensions, HeadStatistics, Heads, Lags, columns};
use super::tasks::{BlockRows, HeadRows, PACKED, Packed, Task, blocks, packed, parts};
use crate::lm::simd::softmax_terms;
use crate::numerics::products::{panel_width, row_group};
use crate::numerics::{Buffer, Kernel, Pool, Real as _, Simd, Stripe};

/// Statistics of the logits in the rows of one task.
struct Measured {
    max_logit: f32,
    min_logit: f32,
    /// Σ over rows of the row's entropy, in nats.
    entropy_sum: f64,
}

/// Attention over every head of every sequence; see [`super::attention`] for the shapes. Returns the output, log Σ e^z of each
/// row in the order (batch, head, time), and the statistics of each head.
pub(super) fn forward(
    [q, k, v]: [&[f32]; 3],
    dimensions: Dimensions,
    heads: &Heads,
    lags: Option<&Lags>,
) -> (Vec<f32>, Vec<f32>, Vec<HeadStatistics>) {
    let Dimensions { time, d_head, .. } = dimensions;
    let count = dimensions.batch * dimensions.heads;
    let packed = packed(dimensions, k, v);
    let tasks = dimensions.tasks(heads);
    let mut by_head = vec![0.0; dimensions.count()];
    let mut log_sum_exp = vec![0.0; count * time];
    let work: Vec<_> = tasks
        .iter()
        .zip(parts(&tasks, d_head, &mut by_head))
        .zip(parts(&tasks, 1, &mut log_sum_exp))
        .collect();
    let measured: Vec<Measured> = work
        .into_par_iter()
        .with_max_len(1)
        .map(|((task, output), log_sum_exp)| {
            let [keys, values] = &packed[task.index];
            let head = task.index % dimensions.heads;
            f32::run(ForwardTask {
                task,
                q: dimensions.head(q, task.index),
                keys,
                values,
                dimensions,
                window: heads.window(head),
                softcap: heads.softcap,
                lags: lags.map(|lags| (lags, head)),
                output,
                log_sum_exp,
            })
        })
        .collect();
    packed.into_iter().flatten().for_each(|packed| PACKED.put_back(packed));

    let mut statistics = vec![HeadStatistics::EMPTY; dimensions.heads];
    let rows = (dimensions.batch * time) as f64;
    for (task, measured) in tasks.iter().zip(&measured) {
        let head = &mut statistics[task.index % dimensions.heads];
        head.max_logit = head.max_logit.max(measured.max_logit);
        head.min_logit = head.min_logit.min(measured.min_logit);
        head.entropy_nats += (measured.entropy_sum / rows) as f32;
    }
    (dimensions.joined(&by_head), log_sum_exp, statistics)
}

struct ForwardTask<'a> {
    task: &'a Task,
    q: HeadRows<'a>,
    keys: &'a Packed,
    values: &'a Packed,
    dimensions: Dimensions,
    window: usize,
    softcap: Option<f32>,
    /// With the index of the head whose slope applies.
    lags: Option<(&'a Lags, usize)>,
    /// (rows of the task, D).
    output: &'a mut [f32],
    log_sum_exp: &'a mut [f32],
}

impl Kernel<f32> for ForwardTask<'_> {
    type Output = Measured;

    #[inline(always)]
    fn run<S: Simd<f32>>(self, simd: S) -> Measured {
        let Self { task, q, keys, values, dimensions, window, softcap, lags, output, log_sum_exp } =
            self;
        let (d_head, scale) = (dimensions.d_head, dimensions.scale());
        let width = d_head.next_multiple_of(S::LANES);
        let seen = |row| columns(window, row);
        let mut measured =
            Measured { max_logit: f32::NEG_INFINITY, min_logit: f32::INFINITY, entropy_sum: 0.0 };
        let mut scratch = SCRATCH.take();
        let Scratch { queries, logits, mixed, inverse_sums } = &mut scratch;
        for here in blocks(&task.rows, window, 1) {
            let stripe = Stripe::new(here.clone(), panel_width(simd), seen);
            let count = here.len().next_multiple_of(row_group(simd));
            logits.reserve(count * stripe.stride);
            mixed.reserve(count * width);
            queries.fill(simd, q, &here, scale);
            let operands = (&*queries.groups, &*keys.panels, d_head);
            stripe.by_transposed(simd, seen, operands, logits);

            inverse_sums.clear();
            for row in here.clone() {
                let row_logits = stripe.clear_unseen(row, &seen(row), logits);
                let slope = lags.map(|(lags, head)| lags.of_row(head, row, &seen(row)));
                let terms = softmax_terms(simd, row_logits, softcap, slope);
                inverse_sums.push((1.0 / terms.sum) as f32);
                log_sum_exp[row - task.rows.start] = terms.shift + terms.sum.ln() as f32;
                measured.max_logit = measured.max_logit.max(terms.max);
                measured.min_logit = measured.min_logit.min(terms.min);
                measured.entropy_sum += terms.entropy();
            }

            stripe.times(simd, seen, logits, (&values.rows, width), mixed);
            let to = output[(here.start - task.rows.start) * d_head..].chunks_exact_mut(d_head);
            for ((to, from), inverse) in to.zip(mixed.chunks_exact(width)).zip(&*inverse_sums) {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = from * inverse;
                }
            }
        }
        SCRATCH.put_back(scratch);
        measured
    }
}

/// Scratch memory of a task.
#[derive(Default)]
struct Scratch {
    queries: BlockRows,
    /// First the logits, then their exponentials.
    logits: Buffer<f32>,
    mixed: Buffer<f32>,
    inverse_sums: Vec<f32>,
}

static SCRATCH: Pool<Scratch> = Pool::new();
