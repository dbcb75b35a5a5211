//! Attention among some tokens of each sequence, which keep their order and positions.

use std::cell::RefCell;
use std::rc::Rc;

use candle_core::{Device, Result, Tensor};

use super::self_attention::SelfAttention;
use super::weights::{BlockPass, Gradients};
use crate::lm::attention::{
    Attended, AttentionGradients, AttentionPullback, HeadStatistics, attention,
};
use crate::lm::operators::plus;

/// The active tokens of sequences of T tokens: N of the rows of the residual stream, in order.
pub(super) struct Active {
    /// Their positions, by sequence.
    positions: Vec<Vec<usize>>,
    /// Their rows, (N) of uint32.
    rows: Tensor,
}

impl Active {
    /// The tokens for which `is_active`, by row, holds.
    pub(super) fn new(is_active: &[bool], time: usize, device: &Device) -> Result<Self> {
        let there = |of: &[bool]| (0..of.len()).filter(|&at| of[at]).collect();
        let rows = (0u32..).zip(is_active).filter(|(_, is)| **is).map(|(row, _)| row);
        let rows = Tensor::new(rows.collect::<Vec<_>>(), device)?;
        Ok(Self { positions: is_active.chunks(time).map(there).collect(), rows })
    }

    /// N.
    pub(super) fn count(&self) -> usize {
        self.rows.elem_count()
    }

    /// Their rows of x, (N, C).
    pub(super) fn of(&self, x: &Tensor) -> Result<Tensor> {
        x.index_select(&self.rows, 0)
    }

    /// x with `rows`, (N, C), added to theirs.
    pub(super) fn add(&self, x: &Tensor, rows: &Tensor) -> Result<Tensor> {
        x.index_add(&self.rows, rows, 0)
    }
}

/// The keys and values of one layer in the first recursion, by sequence, to which later recursions attend.
pub(super) type SharedKeys = Rc<RefCell<Vec<SharedKey>>>;

/// The keys and values of one sequence, (1, T, H, D) each, and their gradients of all recursions but the first.
pub(super) struct SharedKey {
    keys_and_values: [Tensor; 2],
    gradients: Option<[Tensor; 2]>,
}

/// The rows x, (N, C), of the active tokens after attention of `layer` over the active tokens at and before each. With `shared`,
/// the first call, in which all tokens must be active, keeps keys and values there; later calls attend to those instead.
pub(super) fn attend(
    layer: &SelfAttention,
    x: &Tensor,
    active: &Active,
    shared: Option<&SharedKeys>,
) -> Result<BlockPass> {
    let count = active.count();
    let own = layer.rotation.as_ref().map(|rotation| rotation.at(&active.positions.concat()));
    let turns = own.as_ref().map(|turns| (turns, 0));
    let ([q, k, v], to_stream) = layer.heads_of(x, (1, count), turns)?;
    let is_later = shared.is_some_and(|shared| !shared.borrow().is_empty());
    let (mut outputs, mut backs) = (Vec::new(), Vec::new());
    let mut statistics = vec![HeadStatistics::EMPTY; layer.heads.kinds.len()];
    let mut start = 0;
    for (b, positions) in active.positions.iter().enumerate().filter(|(_, of)| !of.is_empty()) {
        let here = |x: &Tensor| x.narrow(1, start, positions.len());
        let (q, k, v) = (here(&q)?, here(&k)?, here(&v)?);
        let Attended { output, statistics: found, pullback } = match shared {
            Some(shared) if is_later => attend_to_first(layer, &q, positions, (shared, b))?,
            _ => attention(&q, &k, &v, layer.slopes(), &layer.heads)?,
        };
        if let Some(shared) = shared.filter(|_| !is_later) {
            shared.borrow_mut().push(SharedKey { keys_and_values: [k, v], gradients: None });
        }
        let share = positions.len() as f32 / count as f32;
        for (all, of) in statistics.iter_mut().zip(&HeadStatistics::of_layers(&[found])?[0]) {
            all.max_logit = all.max_logit.max(of.max_logit);
            all.min_logit = all.min_logit.min(of.min_logit);
            all.entropy_nats += share * of.entropy_nats;
        }
        outputs.push(output);
        backs.push((b, start, positions.len(), pullback));
        start += positions.len();
    }
    let (x, to_attended) = layer.add_output(x, &Tensor::cat(&outputs, 1)?)?;
    let statistics = vec![HeadStatistics::to_tensor(&statistics, x.device())?];
    let (slopes, of_first) = (layer.slopes.clone(), shared.filter(|_| !is_later).cloned());
    let back = move |gradient: Tensor, gradients: &mut Gradients| {
        let d_attended = to_attended(&gradient, gradients)?;
        let mut parts = [const { Vec::new() }; 3];
        for (b, start, count, pullback) in backs {
            let found = pullback(&d_attended.narrow(1, start, count)?.contiguous()?)?;
            let [dq, mut dk, mut dv] = found.heads;
            if let Some(shared) = &of_first
                && let Some([more_k, more_v]) = shared.borrow_mut()[b].gradients.take()
            {
                (dk, dv) = ((dk + more_k)?, (dv + more_v)?);
            }
            if let Some((of, d_slopes)) = slopes.as_ref().zip(found.slopes) {
                gradients.add(of, d_slopes)?;
            }
            for (parts, part) in parts.iter_mut().zip([dq, dk, dv]) {
                parts.push(part);
            }
        }
        let [dq, dk, dv] = parts.map(|parts| Tensor::cat(&parts, 1));
        to_stream([dq?, dk?, dv?], gradient, gradients)
    };
    Ok(BlockPass { x, statistics, pullback: Box::new(back) })
}

/// Attention of the queries q, (1, N, H, D), of tokens at `positions` to the shared keys of sequence b. The other rows of the
/// kernel's queries are zeros: their logits are 0 and their entropies ln(position + 1), which are taken out of the mean.
fn attend_to_first(
    layer: &SelfAttention,
    q: &Tensor,
    positions: &[usize],
    (shared, b): (&SharedKeys, usize),
) -> Result<Attended> {
    let [k, v] = shared.borrow()[b].keys_and_values.clone();
    let rows = Tensor::new(positions.iter().map(|&at| at as u32).collect::<Vec<_>>(), q.device())?;
    let zeros = k.zeros_like()?;
    let spread = zeros.index_add(&rows, q, 1)?;
    let found = attention(&spread, &k, &v, layer.slopes(), &layer.heads)?;
    let (time, count) = (k.dim(1)?, positions.len());
    let uniform = |time: usize| (1..=time).map(|seen| (seen as f32).ln()).sum::<f32>();
    let others = uniform(time) - positions.iter().map(|&at| (at as f32 + 1.0).ln()).sum::<f32>();
    let mut statistics = HeadStatistics::of_layers(&[found.statistics])?.remove(0);
    for head in &mut statistics {
        head.entropy_nats = (head.entropy_nats * time as f32 - others) / count as f32;
    }
    let output = found.output.index_select(&rows, 1)?;
    let (own, shared) = (q.zeros_like()?, shared.clone());
    let pullback: AttentionPullback = Box::new(move |gradient: &Tensor| {
        let d_spread = (found.pullback)(&zeros.index_add(&rows, gradient, 1)?)?;
        let [dq, dk, dv] = d_spread.heads;
        let so_far = &mut shared.borrow_mut()[b].gradients;
        let [before_k, before_v] = so_far.take().map_or([None, None], |of| of.map(Some));
        *so_far = Some([plus(before_k, dk)?, plus(before_v, dv)?]);
        // The keys and values of these tokens in this recursion are not used.
        let heads = [dq.index_select(&rows, 1)?, own.clone(), own];
        Ok(AttentionGradients { heads, slopes: d_spread.slopes })
    });
    let statistics = HeadStatistics::to_tensor(&statistics, q.device())?;
    Ok(Attended { output, statistics, pullback })
}
