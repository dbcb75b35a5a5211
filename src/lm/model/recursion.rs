//! Blocks that are applied several times, to the tokens that a router chooses.

use candle_core::{DType, Device, Result, Tensor};

use super::active_tokens::{Active, SharedKeys, attend};
use super::block::Block;
use super::weights::{
    BlockPass, BlockPullback, Gradients, ModelShape, Parameter, RecursionShape, Tensors,
};
use crate::lm::operators::{linear, sigmoid, slope_of_sigmoid, slope_of_softmax, softmax};
use crate::lm::{RecursionKeys, Router};

/// What a forward pass serves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Training,
    Evaluation,
}

/// Blocks F that are applied R times with the same weights (Mixture-of-Recursions: Bae et al. 2025, arXiv 2507.10524; details
/// that the paper leaves open are those of its code). With h the residual stream, z its scores h Θ, and α and c the keys
/// `router_scale` and `router_loss`, recursion r = 1 … R computes
///
/// - without a router h ← F(h) for all tokens;
/// - expert choice: h ← h + α σ(z_r) F(h), with the scores of this recursion, for the T (R − r + 1)/R tokens of each sequence
///   whose scores are largest among those of the recursion before. Added to the objective: c times the mean
///   cross-entropy between σ(z_r) and being chosen;
/// - token choice: each token has as depth the largest of p = softmax(z), with z the scores before the first recursion, and
///   u ← F(u) from u = h on for the tokens of depth ≥ r; after the last one h ← h + α p_depth u. Added: c times the mean over
///   sequences of R Σ fᵢ Pᵢ, with fᵢ the share of tokens of depth i and Pᵢ the mean of pᵢ.
pub(super) struct Recursion {
    shape: RecursionShape,
    blocks: Vec<Block>,
    /// Θ, (C, R).
    router: Option<Parameter>,
}

type Shared = [Option<SharedKeys>];

impl Recursion {
    /// The recursions of these blocks of a model.
    pub(super) fn new(
        shape: &RecursionShape,
        blocks: Vec<Block>,
        tensors: &Tensors,
    ) -> Result<Self> {
        let router = (shape.router != Router::None).then(|| tensors.parameter(ModelShape::ROUTER));
        Ok(Self { shape: shape.clone(), blocks, router: router.transpose()? })
    }

    /// The forward pass of all recursions on sequences of `time` tokens, with the pass back. Statistics are by recursion and
    /// block; those of a recursion without active tokens are 0.
    pub(super) fn forward(&self, x: &Tensor, time: usize, purpose: Purpose) -> Result<BlockPass> {
        let is_shared = self.shape.keys == RecursionKeys::Shared;
        let shared: Vec<Option<SharedKeys>> =
            self.blocks.iter().map(|_| is_shared.then(SharedKeys::default)).collect();
        match (&self.router, self.shape.router) {
            (Some(router), Router::Expert) => self.by_experts(x, time, router, &shared, purpose),
            (Some(router), _) => self.by_tokens(x, time, router, &shared),
            (None, _) => self.to_depths(x, time, &vec![self.shape.recursions; x.dim(0)?], &shared),
        }
    }

    /// F of the active tokens' rows of h.
    fn blocks_of(&self, h: &Tensor, active: &Active, shared: &Shared) -> Result<BlockPass> {
        let (mut x, mut statistics, mut backs) = (active.of(h)?, Vec::new(), Vec::new());
        for (block, shared) in self.blocks.iter().zip(shared) {
            let mixed = attend(block.attention()?, &x, active, shared.as_ref())?;
            let pass = block.then_mlp(mixed)?;
            statistics.extend(pass.statistics);
            backs.push(pass.pullback);
            x = pass.x;
        }
        Ok(chained(x, statistics, backs))
    }

    /// The statistics of a recursion without active tokens.
    fn idle(&self, device: &Device) -> Result<Vec<Tensor>> {
        let zeros = |block: &Block| {
            Tensor::zeros((block.attention()?.heads.kinds.len(), 3), DType::F32, device)
        };
        self.blocks.iter().map(zeros).collect()
    }

    /// Applies F to each token as often as `depths`, by row, says.
    fn to_depths(
        &self,
        x: &Tensor,
        time: usize,
        depths: &[usize],
        shared: &Shared,
    ) -> Result<BlockPass> {
        let (mut u, mut statistics) = (x.clone(), Vec::new());
        let mut backs: Vec<BlockPullback<'static>> = Vec::new();
        for r in 1..=self.shape.recursions {
            let is_active: Vec<bool> = depths.iter().map(|&depth| depth >= r).collect();
            let active = Active::new(&is_active, time, x.device())?;
            if active.count() == 0 {
                statistics.extend(self.idle(x.device())?);
                continue;
            }
            let pass = self.blocks_of(&u, &active, shared)?;
            u = active.add(&u, &(pass.x - active.of(&u)?)?)?;
            statistics.extend(pass.statistics);
            backs.push(Box::new(move |d_u, gradients| {
                let d_out = active.of(&d_u)?;
                let d_rows = (pass.pullback)(d_out.clone(), gradients)?;
                active.add(&d_u, &(d_rows - d_out)?)
            }));
        }
        Ok(chained(u, statistics, backs))
    }

    /// Recursions to a depth that each token chooses before the first.
    fn by_tokens(
        &self,
        x: &Tensor,
        time: usize,
        router: &Parameter,
        shared: &Shared,
    ) -> Result<BlockPass> {
        let RecursionShape { recursions, scale, loss, .. } = self.shape;
        let (scores, to_scores) = linear(x, &[&router.tensor])?;
        let shares = softmax(&scores[0])?;
        let first_of_largest = |row: Vec<f32>| {
            (0..recursions).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0)
        };
        let depths: Vec<usize> =
            shares.to_vec2()?.into_iter().map(|row| first_of_largest(row) + 1).collect();
        let one_hot = |&depth: &usize| (1..=recursions).map(move |r| f32::from(r == depth));
        let chosen = Tensor::from_iter(depths.iter().flat_map(one_hot), x.device())?;
        let chosen = chosen.reshape(shares.shape())?;
        let gate = ((&shares * &chosen)?.sum_keepdim(1)? * scale)?;
        let BlockPass { x: u, statistics, pullback } = self.to_depths(x, time, &depths, shared)?;
        let h = (x + u.broadcast_mul(&gate)?)?;
        let router = router.clone();
        let back = move |d_h: Tensor, gradients: &mut Gradients| {
            let d_x = pullback(d_h.broadcast_mul(&gate)?, gradients)?;
            let d_gate = ((&d_h * u)?.sum_keepdim(1)? * scale)?;
            // The loss that balances depths has the derivative c R fᵢ / (B T) with respect to each pᵢ.
            let by_sequence = ((), time, recursions);
            let f = chosen.reshape(by_sequence)?.mean_keepdim(1)?;
            let f = f.repeat((1, time, 1))?.reshape(shares.shape())?;
            let balance = (f * (loss * recursions as f64 / depths.len() as f64))?;
            let d_shares = (chosen.broadcast_mul(&d_gate)? + balance)?;
            let (d_scored, d_router) = to_scores(&[&slope_of_softmax(&shares, &d_shares)?])?;
            gradients.add(&router, d_router[0].clone())?;
            (d_h + d_x)? + d_scored
        };
        Ok(BlockPass { x: h, statistics, pullback: Box::new(back) })
    }

    /// Recursions of which each chooses among the tokens of the one before; the first takes all. Outside training, a token is
    /// chosen if σ(z) > ½, which depends on no later token, unless the definition asks for the choice of training.
    fn by_experts(
        &self,
        x: &Tensor,
        time: usize,
        router: &Parameter,
        shared: &Shared,
        purpose: Purpose,
    ) -> Result<BlockPass> {
        let RecursionShape { recursions, scale, loss, causal_validation, .. } = self.shape;
        let by_rank = purpose == Purpose::Training || !causal_validation;
        let (mut h, mut statistics) = (x.clone(), Vec::new());
        let mut backs: Vec<BlockPullback<'static>> = Vec::new();
        let mut asked = vec![true; x.dim(0)?];
        for r in 0..recursions {
            let own = router.tensor.narrow(1, r, 1)?.contiguous()?;
            let (scores, to_scores) = linear(&h, &[&own])?;
            let values = scores[0].flatten_all()?.to_vec1()?;
            let most = (time * (recursions - r) / recursions).max(1);
            let chosen = match by_rank || r == 0 {
                true => largest(&values, &asked, time, most),
                false => asked.iter().zip(&values).map(|(is, score)| *is && *score > 0.0).collect(),
            };
            let active = Active::new(&chosen, time, x.device())?;
            let column = |of: &[bool]| {
                Tensor::from_iter(of.iter().map(|&is| f32::from(is)), x.device())?.unsqueeze(1)
            };
            let (targets, compared) = (column(&chosen)?, column(&asked)?);
            let count = asked.iter().filter(|is| **is).count();
            asked = chosen;
            // Never in training.
            if active.count() == 0 {
                statistics.extend(self.idle(x.device())?);
                continue;
            }
            let open = sigmoid(&scores[0])?;
            let gate = (active.of(&open)? * scale)?;
            let pass = self.blocks_of(&h, &active, shared)?;
            h = active.add(&h, &pass.x.broadcast_mul(&gate)?)?;
            statistics.extend(pass.statistics);
            let router = router.clone();
            backs.push(Box::new(move |d_h, gradients| {
                let d_change = active.of(&d_h)?;
                let d_open = ((&d_change * pass.x)?.sum_keepdim(1)? * scale)?;
                let d_rows = (pass.pullback)(d_change.broadcast_mul(&gate)?, gradients)?;
                // The derivative of the cross-entropy with respect to z is σ(z) less the target.
                let d_scores = (((&open - targets)? * compared)? * (loss / count as f64))?;
                let d_open = (d_open * slope_of_sigmoid(&active.of(&open)?)?)?;
                let (d_scored, d_own) = to_scores(&[&active.add(&d_scores, &d_open)?])?;
                let d_router = d_own[0].pad_with_zeros(1, r, recursions - 1 - r)?;
                gradients.add(&router, d_router)?;
                active.add(&d_h, &d_rows)? + d_scored
            }));
        }
        Ok(chained(h, statistics, backs))
    }
}

/// A pass whose pass back is those of `backs`, the last one first.
fn chained(x: Tensor, statistics: Vec<Tensor>, backs: Vec<BlockPullback<'static>>) -> BlockPass {
    let back = |gradient: Tensor, gradients: &mut Gradients| {
        backs.into_iter().rev().try_fold(gradient, |gradient, back| back(gradient, gradients))
    };
    BlockPass { x, statistics, pullback: Box::new(back) }
}

/// Marks the tokens of the `most` largest scores of each sequence, among those `asked`; of equal ones the earlier.
fn largest(scores: &[f32], asked: &[bool], time: usize, most: usize) -> Vec<bool> {
    let mut chosen = vec![false; scores.len()];
    for first in (0..scores.len()).step_by(time) {
        let mut order: Vec<usize> = (first..first + time).filter(|&row| asked[row]).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        order.iter().take(most).for_each(|&row| chosen[row] = true);
    }
    chosen
}
