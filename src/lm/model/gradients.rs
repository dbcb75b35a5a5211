//! The gradients of the objective on one batch.

use candle_core::{DType, Result, Tensor, bail};

use super::block::BlockPullback;
use super::language_model::Model;
use super::lesson::Lesson;
use super::parameters::Gradients;
use super::weights::Weight;
use crate::lm::attention::HeadStatistics;
use crate::lm::objective::Batch;
use crate::lm::operators::{OutputLoss, output_loss};

/// What one batch gives a training step.
pub(in crate::lm) struct BatchGradients {
    /// The mean cross-entropy.
    pub(in crate::lm) loss_nats: f64,
    /// Each layer's heads.
    pub(in crate::lm) heads: Vec<Vec<HeadStatistics>>,
    /// Σ over layers and heads of the mean over rows of KL(teacher ‖ student), where there is a teacher.
    pub(in crate::lm) pattern_kl_nats: Option<f64>,
    /// By weight; none where the loss is not finite.
    pub(in crate::lm) gradients: Option<Vec<Tensor>>,
}

/// The way back through a block.
enum Back {
    Kept(BlockPullback),
    /// Its input, from which the rest is computed again.
    Recomputed(Tensor),
}

impl Model {
    /// The gradients, over what is predicted of the batch, of cross-entropy + `z_loss` · mean (log Z)², and of a teacher's lesson on the batch where there is
    /// one, with respect to every weight. With
    /// `recompute`, a block's activations are dropped once the next has its input, and computed again for
    /// its backward pass (Chen et al. 2016, arXiv 1604.06174): the memory of one block in place of
    /// all, for one forward pass more; the gradients are the same, bit for bit.
    ///
    /// # Errors
    /// T above the context, an id or target of V or more.
    pub(in crate::lm) fn gradients(
        &self,
        batch: &Batch,
        z_loss: f64,
        recompute: bool,
        lesson: Option<&Lesson>,
    ) -> Result<BatchGradients> {
        let of_layer = |layer: usize| lesson.and_then(|lesson| lesson.layers.get(layer));
        let (decoder, sizes) = (&self.decoder, batch.inputs.dims2()?);
        let (mut x, to_embeddings) = decoder.embed(&batch.inputs, 0)?;
        let (mut statistics, mut backs) = (Vec::new(), Vec::new());
        for (layer, block) in decoder.blocks.iter().enumerate() {
            let pass = block.forward_with(&x, sizes, of_layer(layer))?;
            statistics.push(pass.statistics);
            backs.push(if recompute { Back::Recomputed(x) } else { Back::Kept(pass.pullback) });
            x = pass.x;
        }
        let (hidden, to_norm) = decoder.after_blocks(&x)?;
        let embedding = decoder.output_embedding()?;
        let asked = batch.of_rows(&hidden)?;
        let OutputLoss { cross_entropy, gradients: found, .. } =
            output_loss(&asked, &embedding, &batch.targets, z_loss, true)?;
        let Some([d_hidden, d_embedding]) = found else {
            bail!("the output loss gave no gradients");
        };

        let mut gradients =
            Gradients { by_weight: vec![None; self.weights.len()], pattern_kl_nats: 0.0 };
        gradients.add(&decoder.token_embedding, d_embedding)?;
        let [mut gradient, d_norm] = to_norm(&batch.to_rows(&hidden, d_hidden)?, None)?;
        gradients.add(&decoder.norm, d_norm)?;
        for ((layer, block), back) in decoder.blocks.iter().enumerate().zip(backs).rev() {
            let back = match back {
                Back::Kept(back) => back,
                Back::Recomputed(x) => block.forward_with(&x, sizes, of_layer(layer))?.pullback,
            };
            gradient = back(gradient, &mut gradients)?;
        }
        to_embeddings(&gradient, &mut gradients)?;

        let of = |(weight, gradient): (&Weight, Option<Tensor>)| match gradient {
            Some(gradient) => Ok(gradient),
            // Only a cut in the model's gradients can cause it.
            None => bail!("{} has no gradient", weight.name),
        };
        let pattern_kl_nats = lesson.map(|_| gradients.pattern_kl_nats);
        let gradients =
            self.weights.iter().zip(gradients.by_weight).map(of).collect::<Result<_>>()?;
        // Read only now: on a device of its own the whole batch has been asked for before anything of it
        // is waited for.
        let loss_nats = cross_entropy.to_dtype(DType::F64)?.to_scalar::<f64>()?;
        Ok(BatchGradients {
            loss_nats,
            heads: HeadStatistics::of_layers(&statistics)?,
            pattern_kl_nats,
            gradients: loss_nats.is_finite().then_some(gradients),
        })
    }
}

impl BatchGradients {
    /// Adds another batch: its loss and gradients; of the heads the extremes of both, and entropies
    /// added.
    pub(in crate::lm) fn add(&mut self, other: Self) -> Result<()> {
        self.loss_nats += other.loss_nats;
        self.pattern_kl_nats = self.pattern_kl_nats.zip(other.pattern_kl_nats).map(|(a, b)| a + b);
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
        self.pattern_kl_nats = self.pattern_kl_nats.map(|kl| kl * share);
        for gradient in self.gradients.iter_mut().flatten() {
            *gradient = (&*gradient * share)?;
        }
        for head in self.heads.iter_mut().flatten() {
            head.entropy_nats *= share as f32;
        }
        Ok(())
    }
}
