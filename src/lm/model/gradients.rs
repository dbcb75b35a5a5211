//! Gradients of the objective on one batch.

use candle_core::{DType, Result, Tensor, bail};

use super::language_model::Model;
use super::recursion::Purpose;
use super::weights::{BlockPullback, Gradients, Weight};
use crate::lm::LmError;
use crate::lm::attention::HeadStatistics;
use crate::lm::operators::{Objective, OutputLoss, output_loss};
use crate::lm::workers::Workers;

/// Results of one batch for a training step.
pub(in crate::lm) struct BatchGradients {
    /// The mean cross-entropy.
    pub(in crate::lm) loss_nats: f64,
    /// Statistics of each layer's heads.
    pub(in crate::lm) heads: Vec<Vec<HeadStatistics>>,
    /// Gradient of each weight; `None` if the loss is not finite.
    pub(in crate::lm) gradients: Option<Vec<Tensor>>,
}

impl Model {
    /// Gradients of the objective over a batch of inputs and targets with respect to every weight. With `recompute`, a block's
    /// activations are dropped once the next block has its input, and computed again for the backward pass (Chen et al. 2016, arXiv 1604.06174). This needs the memory
    /// of one block instead of all, and one more forward pass; the gradients are bitwise equal.
    ///
    /// # Errors
    /// T above the context, an id or target of V or more.
    pub(in crate::lm) fn gradients(
        &self,
        (inputs, targets): &(Tensor, Tensor),
        objective: Objective,
        recompute: bool,
    ) -> Result<BatchGradients> {
        let (decoder, sizes) = (&self.decoder, inputs.dims2()?);
        let (mut x, to_embeddings) = decoder.embed(inputs, 0)?;
        let (mut statistics, mut backs) = (Vec::new(), Vec::<BlockPullback<'_>>::new());
        for stage in &decoder.stages {
            let pass = stage.forward(&x, sizes, Purpose::Training)?;
            statistics.extend(pass.statistics);
            let input = std::mem::replace(&mut x, pass.x);
            backs.push(match recompute {
                true => Box::new(move |gradient, gradients| {
                    (stage.forward(&input, sizes, Purpose::Training)?.pullback)(gradient, gradients)
                }),
                false => pass.pullback,
            });
        }
        let (hidden, to_norm) = decoder.after_blocks(&x)?;
        let embedding = decoder.output_embedding()?;
        let OutputLoss { cross_entropy, gradients: found, .. } =
            output_loss(&hidden, &embedding, targets, objective, true)?;
        let Some([d_hidden, d_embedding]) = found else {
            bail!("the output loss gave no gradients");
        };

        let mut gradients = Gradients { by_weight: vec![None; self.weights.len()] };
        gradients.add(&decoder.token_embedding, d_embedding)?;
        let [mut gradient, d_norm] = to_norm(&d_hidden, None)?;
        gradients.add(&decoder.norm, d_norm)?;
        for back in backs.into_iter().rev() {
            gradient = back(gradient, &mut gradients)?;
        }
        to_embeddings(&gradient, &mut gradients)?;

        let of = |(weight, gradient): (&Weight, Option<Tensor>)| match gradient {
            Some(gradient) => Ok(gradient),
            // A weight that the model does not use, which would be an error in the model.
            None => bail!("{} has no gradient", weight.name),
        };
        let gradients =
            self.weights.iter().zip(gradients.by_weight).map(of).collect::<Result<_>>()?;
        // Read only now: with a GPU, all work of the batch is queued before the program waits for a
        // result.
        let loss_nats = cross_entropy.to_dtype(DType::F64)?.to_scalar::<f64>()?;
        Ok(BatchGradients {
            loss_nats,
            heads: HeadStatistics::of_layers(&statistics)?,
            gradients: loss_nats.is_finite().then_some(gradients),
        })
    }
}

impl BatchGradients {
    /// Adds another batch: sums losses, gradients and entropies, and combines the extremes of the logits.
    pub(in crate::lm) fn add(&mut self, other: Self) -> Result<()> {
        self.gradients = match (self.gradients.take(), &other.gradients) {
            (Some(mine), Some(others)) => {
                Some(mine.iter().zip(others).map(|(a, b)| a + b).collect::<Result<_>>()?)
            }
            _ => None,
        };
        self.add_found(&other);
        Ok(())
    }

    /// Adds all results except the gradients.
    fn add_found(&mut self, other: &Self) {
        self.loss_nats += other.loss_nats;
        for (head, other) in self.heads.iter_mut().flatten().zip(other.heads.iter().flatten()) {
            head.max_logit = head.max_logit.max(other.max_logit);
            head.min_logit = head.min_logit.min(other.min_logit);
            head.entropy_nats += other.entropy_nats;
        }
    }

    /// Adds the results of all workers in a fixed order, so that all get the same sum. Gradients are dropped unless the
    /// losses of all workers are finite.
    pub(in crate::lm) fn add_over(
        &mut self,
        workers: &dyn Workers,
    ) -> std::result::Result<(), LmError> {
        if workers.size() == 1 {
            return Ok(());
        }
        let all = workers.gather_numbers(&self.numbers());
        let mine = self.gradients.take();
        let mut of_ranks = all.iter().map(|numbers| self.of_numbers(numbers));
        let first = of_ranks.next().unwrap_or_else(|| self.of_numbers(&self.numbers()));
        let sum = of_ranks.fold(first, |mut sum, other| {
            sum.add_found(&other);
            sum
        });
        let all_finite = all.iter().all(|numbers| numbers[0].is_finite());
        *self = Self { gradients: None, ..sum };
        if let Some(gradients) = mine
            && all_finite
        {
            self.gradients = Some(sum_over(workers, &gradients)?);
        }
        Ok(())
    }

    /// All results except the gradients as numbers: the loss, and three numbers per head.
    fn numbers(&self) -> Vec<f64> {
        let of_head = |head: &HeadStatistics| {
            [head.max_logit, head.min_logit, head.entropy_nats].map(f64::from)
        };
        let heads = self.heads.iter().flatten().flat_map(of_head);
        std::iter::once(self.loss_nats).chain(heads).collect()
    }

    /// Inverse of [`Self::numbers`], for a model of the same shape.
    fn of_numbers(&self, numbers: &[f64]) -> Self {
        let mut of_heads = numbers[1..].chunks_exact(3).map(|of| HeadStatistics {
            max_logit: of[0] as f32,
            min_logit: of[1] as f32,
            entropy_nats: of[2] as f32,
        });
        let layer = |heads: &Vec<_>| of_heads.by_ref().take(heads.len()).collect();
        Self {
            loss_nats: numbers[0],
            heads: self.heads.iter().map(layer).collect(),
            gradients: None,
        }
    }

    /// Converts sums over `batches` batches to means.
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

/// Sums gradients over all workers, in one collective operation.
fn sum_over(
    workers: &dyn Workers,
    gradients: &[Tensor],
) -> std::result::Result<Vec<Tensor>, LmError> {
    let flat = gradients.iter().map(Tensor::flatten_all).collect::<Result<Vec<_>>>()?;
    let flat = Tensor::cat(&flat, 0)?;
    let mut numbers = flat.to_vec1::<f32>()?;
    workers.sum(&mut numbers);
    let summed = Tensor::from_vec(numbers, flat.shape(), flat.device())?;
    let mut from = 0;
    let of = |gradient: &Tensor| {
        let found = summed.narrow(0, from, gradient.elem_count())?.reshape(gradient.shape())?;
        from += gradient.elem_count();
        Ok(found)
    };
    Ok(gradients.iter().map(of).collect::<Result<_>>()?)
}
