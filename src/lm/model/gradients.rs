//! The gradients of the objective on one batch.

use std::collections::HashMap;

use candle_core::backprop::GradStore;
use candle_core::{DType, Result, Tensor, TensorId, Var, bail};

use super::{HeadStatistics, Model};

/// What one batch gives a training step.
pub(in crate::lm) struct BatchGradients {
    /// The mean cross-entropy.
    pub(in crate::lm) loss_nats: f64,
    /// Each layer's heads.
    pub(in crate::lm) heads: Vec<Vec<HeadStatistics>>,
    /// By weight; none where the loss is not finite.
    pub(in crate::lm) gradients: Option<Vec<Tensor>>,
}

impl Model {
    /// The gradients of cross-entropy + `z_loss` · mean (log Z)² with respect to every weight. With
    /// `recompute`, a block's activations are dropped once the next has its input, and computed again for
    /// its backward pass (Chen et al. 2016, arXiv 1604.06174): the memory of one block in place of
    /// all, for one forward pass more; the gradients are the same, bit for bit.
    ///
    /// # Errors
    /// As [`Self::forward`] and [`super::Forward::loss`].
    pub(in crate::lm) fn gradients(
        &self,
        ids: &Tensor,
        targets: &Tensor,
        z_loss: f64,
        recompute: bool,
    ) -> Result<BatchGradients> {
        if recompute {
            return self.gradients_block_by_block(ids, targets, z_loss);
        }
        let forward = self.forward(ids)?;
        let (objective, cross_entropy) = forward.objective(targets, z_loss)?;
        let mut gradients = Gradients::default();
        gradients.take(self, &mut objective.backward()?)?;
        gradients.finish(self, &cross_entropy, &forward.statistics)
    }

    fn gradients_block_by_block(
        &self,
        ids: &Tensor,
        targets: &Tensor,
        z_loss: f64,
    ) -> Result<BatchGradients> {
        let sizes = ids.dims2()?;
        let embedded = self.decoder.embed(ids, 0)?;
        let mut inputs = vec![Var::from_tensor(&embedded.detach())?];
        let mut statistics = Vec::new();
        for block in &self.frozen.blocks {
            let (x, heads) = block.forward(inputs[inputs.len() - 1].as_tensor(), sizes)?;
            inputs.push(Var::from_tensor(&x)?);
            statistics.push(heads);
        }
        let Some(last) = inputs.pop() else { bail!("a model without blocks") };
        let forward = self.decoder.after_blocks(last.as_tensor(), Vec::new())?;
        let (objective, cross_entropy) = forward.objective(targets, z_loss)?;
        let mut gradients = Gradients::default();
        let mut upstream = gradients.through(self, &objective, &last)?;
        for (block, input) in self.decoder.blocks.iter().zip(inputs).rev() {
            let (output, _) = block.forward(input.as_tensor(), sizes)?;
            upstream = gradients.through(self, &(output * upstream)?.sum_all()?, &input)?;
        }
        let objective = (embedded * upstream)?.sum_all()?;
        gradients.take(self, &mut objective.backward()?)?;
        gradients.finish(self, &cross_entropy, &statistics)
    }
}

impl BatchGradients {
    /// Adds another batch: its loss and gradients; of the heads the extremes of both, and entropies
    /// added.
    pub(in crate::lm) fn add(&mut self, other: Self) -> Result<()> {
        self.loss_nats += other.loss_nats;
        self.gradients = match (self.gradients.take(), other.gradients) {
            (Some(mine), Some(others)) => {
                Some(mine.iter().zip(&others).map(|(a, b)| a + b).collect::<Result<_>>()?)
            }
            _ => None,
        };
        for (head, other) in self.heads.iter_mut().flatten().zip(other.heads.iter().flatten()) {
            head.max_logit = head.max_logit.max(other.max_logit);
            head.min_logit = head.min_logit.min(other.min_logit);
            head.entropy_nats += other.entropy_nats;
        }
        Ok(())
    }

    /// Makes sums over `batches` batches their means.
    pub(in crate::lm) fn divide(&mut self, batches: usize) -> Result<()> {
        let share = 1.0 / batches as f64;
        self.loss_nats *= share;
        for gradient in self.gradients.iter_mut().flatten() {
            *gradient = (&*gradient * share)?;
        }
        for head in self.heads.iter_mut().flatten() {
            head.entropy_nats *= share as f32;
        }
        Ok(())
    }
}

/// Gradients of the weights, as far as they are known.
#[derive(Default)]
struct Gradients(HashMap<TensorId, Tensor>);

impl Gradients {
    /// Adds those of the weights that a backward pass found.
    fn take(&mut self, model: &Model, found: &mut GradStore) -> Result<()> {
        for weight in &model.weights {
            if let Some(more) = found.remove(&weight.variable) {
                let sum = match self.0.remove(&weight.variable.id()) {
                    Some(so_far) => (so_far + more)?,
                    None => more,
                };
                self.0.insert(weight.variable.id(), sum);
            }
        }
        Ok(())
    }

    /// Adds those that come from `objective`, and returns that of its `input`.
    fn through(&mut self, model: &Model, objective: &Tensor, input: &Var) -> Result<Tensor> {
        let mut found = objective.backward()?;
        self.take(model, &mut found)?;
        match found.remove(input) {
            Some(upstream) => Ok(upstream),
            None => bail!("a block's input has no gradient"),
        }
    }

    /// With the loss and the heads' statistics, which are read only now: on a device of its own the
    /// whole batch has been asked for before anything of it is waited for.
    fn finish(
        mut self,
        model: &Model,
        cross_entropy: &Tensor,
        statistics: &[Tensor],
    ) -> Result<BatchGradients> {
        let of = |weight: &super::Weight| match self.0.remove(&weight.variable.id()) {
            Some(gradient) => Ok(gradient),
            // Only a cut in the model's gradients can cause it.
            None => bail!("{} has no gradient", weight.name),
        };
        let gradients = model.weights.iter().map(of).collect::<Result<_>>()?;
        let loss_nats = cross_entropy.to_dtype(DType::F64)?.to_scalar::<f64>()?;
        Ok(BatchGradients {
            loss_nats,
            heads: HeadStatistics::of_layers(statistics)?,
            gradients: loss_nats.is_finite().then_some(gradients),
        })
    }
}
