//! One training run: steps, evaluations, and saving and resuming.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use candle_core::Tensor;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::descent::Descent;
use super::records::{EvaluationRow, StepRow};
use super::step::{Share, gradient_norm, learning_rate, weight_decay};
use crate::lm::evaluation::{batch, evaluate};
use crate::lm::memory_estimate as room;
use crate::lm::model::BatchGradients;
use crate::lm::tensor_file::{self, SafetensorsFile};
use crate::lm::workers::{Alone, Workers};
use crate::lm::{
    Corpus, Device, HeadStatistics, LmError, Model, ModelShape, Split, Stabiliser, TrainDefinition,
};
use crate::record::to_microseconds;

/// The random generator's stream for windows of text; weights use stream 0, so two variants
/// with one seed read the same text, however many numbers their weights need.
const WINDOW_STREAM: u64 = 1;

/// Keys of a checkpoint's notes.
const STEPS: &str = "steps";
const WALL_TIME: &str = "wall_time_s";
const WINDOW_POSITION: &str = "window_position";
const DIVERGED: &str = "diverged";

/// One training run: a model, its optimiser, and the number of steps taken.
///
/// ```
/// use rank_study::lm::{Corpus, Device, TrainDefinition, Trainer};
///
/// let definition = TrainDefinition {
///     layers: 1, d_model: 8, heads: 2, context: 16, steps: 3, ..TrainDefinition::default()
/// };
/// let text = "To be, or not to be, that is the question. ".repeat(20);
/// let corpus = Corpus::from_text(&definition, text.as_bytes())?;
/// let mut trainer = Trainer::new(&definition, &corpus, Device::Cpu)?;
/// let loss_nats = trainer.step()?.loss_nats;
/// assert!((loss_nats - (corpus.vocabulary.size() as f64).ln()).abs() < 0.1);
/// assert!(trainer.heads()[0][1].max_abs_logit() > 0.0);
/// # Ok::<(), rank_study::lm::LmError>(())
/// ```
pub struct Trainer<'a> {
    pub(super) definition: &'a TrainDefinition,
    pub(super) corpus: &'a Corpus,
    model: Model,
    optimiser: Descent,
    windows: ChaCha8Rng,
    heads: Vec<Vec<HeadStatistics>>,
    /// All workers that train the model, and this worker's share of a step's windows.
    pub(super) workers: &'a dyn Workers,
    share: Share,
    steps: usize,
    /// Whether the last step ended the run.
    pub(super) diverged: bool,
    start: Instant,
    /// Seconds that the run had taken before it was resumed.
    earlier_s: f64,
}

impl<'a> Trainer<'a> {
    /// Starts a run.
    ///
    /// # Errors
    /// A value that its key does not allow, or a device that is missing.
    pub fn new(
        definition: &'a TrainDefinition,
        corpus: &'a Corpus,
        device: Device,
    ) -> Result<Self, LmError> {
        definition.check()?;
        let shape = ModelShape::new(definition, corpus.vocabulary.size());
        let model = Model::new(shape, definition.initial_deviation, definition.seed)?.on(device)?;
        let optimiser = Descent::new(definition, model.weights())?;
        let mut windows = ChaCha8Rng::seed_from_u64(definition.seed);
        windows.set_stream(WINDOW_STREAM);
        Ok(Self {
            definition,
            corpus,
            model,
            optimiser,
            windows,
            heads: Vec::new(),
            workers: &Alone,
            share: Share::of(definition, &Alone)?,
            steps: 0,
            diverged: false,
            start: Instant::now(),
            earlier_s: 0.0,
        })
    }

    /// Checks a run against the memory of the machine: a lower bound for its weights and, on the CPU, for the activations of
    /// one worker's share of a step.
    ///
    /// # Errors
    /// A value that its key does not allow, a step that cannot be shared evenly, or a run that is too large.
    pub fn check_room(
        definition: &TrainDefinition,
        corpus: &Corpus,
        device: Device,
        workers: &dyn Workers,
    ) -> Result<(), LmError> {
        definition.check()?;
        let share = Share::of(definition, workers)?;
        let TrainDefinition { batch, accumulation, eval_batches, .. } = *definition;
        let sequences = batch as f64 * accumulation.max(eval_batches) as f64;
        let bytes = size_of::<usize>() as f64 * sequences;
        let lower = "batch, accumulation or eval_batches";
        room::check("the positions of a step's sequences need", bytes, lower)?;
        let copies = 2 + definition.least_moments();
        let what = "weights, gradients and moments need";
        room::check_weights(definition, corpus.vocabulary.size(), copies, what)?;
        match device {
            Device::Cpu => room::check_activations(definition, share.part),
            Device::Cuda => Ok(()),
        }
    }

    /// A lower bound of the size on disk of a run's files, in bytes: its last checkpoint, with the optimiser's moments,
    /// and the weights of `kept` steps.
    pub fn bytes_on_disk(definition: &TrainDefinition, corpus: &Corpus, kept: usize) -> f64 {
        let arrays = 1 + definition.least_moments() + kept;
        arrays as f64 * room::bytes_of_weights(definition, corpus.vocabulary.size())
    }

    /// Resumes a run from a file that [`Self::save`] wrote. On the same machine
    /// its later steps are bitwise equal to those of an uninterrupted run. The definition and corpus must be those of the
    /// run that was saved.
    ///
    /// # Errors
    /// A file that cannot be read, or that is not a checkpoint of a model of this shape.
    pub fn resume(
        definition: &'a TrainDefinition,
        corpus: &'a Corpus,
        device: Device,
        path: &Path,
    ) -> Result<Self, LmError> {
        let file = SafetensorsFile::open_unchanged(path)?;
        let mut trainer = Self::new(definition, corpus, device)?;
        trainer.steps = file.parsed_note(STEPS)?;
        trainer.diverged = file.parsed_note(DIVERGED)?;
        trainer.earlier_s = file.parsed_note(WALL_TIME)?;
        trainer.windows.set_word_pos(file.parsed_note(WINDOW_POSITION)?);
        trainer.model = Model::from_file(trainer.model.shape().clone(), &file)?.on(device)?;
        let weights = trainer.model.weights();
        trainer.optimiser = Descent::from_file(definition, weights, trainer.steps, &file)?;
        Ok(trainer)
    }

    /// Trains with several workers, each with the same definition, corpus and weights: data
    /// parallelism. The windows of a step, from all of its `accumulation` batches, are distributed to the workers in order.
    /// Gradients and statistics of heads are combined, and every worker makes the same update.
    ///
    /// # Errors
    /// A step whose windows cannot be shared evenly.
    pub fn together(mut self, workers: &'a dyn Workers) -> Result<Self, LmError> {
        self.share = Share::of(self.definition, workers)?;
        self.workers = workers;
        Ok(self)
    }

    /// Writes everything that [`Self::resume`] needs, atomically: a safetensors file with the
    /// weights under the names of [`Model::save`], the optimiser's moments under these names followed by
    /// `.first_moment` and, of AdamW, `.second_moment`, and the notes `steps`, `diverged`,
    /// `wall_time_s` and `window_position`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), LmError> {
        let mut tensors = self.model.named();
        tensors.extend(self.optimiser.named(self.model.weights())?);
        let notes = HashMap::from([
            (STEPS.to_owned(), self.steps.to_string()),
            (DIVERGED.to_owned(), self.diverged.to_string()),
            (WALL_TIME.to_owned(), self.wall_time_s().to_string()),
            (WINDOW_POSITION.to_owned(), self.windows.get_word_pos().to_string()),
        ]);
        tensor_file::write(path, &tensors, notes)
    }

    /// Seconds of run time, without the time between a stop and its resumption.
    pub(super) fn wall_time_s(&self) -> f64 {
        self.earlier_s + self.start.elapsed().as_secs_f64()
    }

    /// Number of steps taken so far, including one that diverged.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The current model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Checks that the weights of all workers are bitwise equal to those of rank 0.
    ///
    /// # Errors
    /// A worker with other weights.
    pub(super) fn check_same_weights(&self) -> Result<(), LmError> {
        if self.workers.size() == 1 {
            return Ok(());
        }
        let mut hash = DefaultHasher::new();
        for (_, tensor) in self.model.named() {
            hash.write(bytemuck::cast_slice(&tensor.flatten_all()?.to_vec1::<f32>()?));
        }
        let all = self.workers.gather(&hash.finish().to_le_bytes());
        match all.iter().position(|hash| *hash != all[0]) {
            Some(rank) => Err(LmError::Refused(format!(
                "worker {rank} has other weights than worker 0 after step {}; nothing of it is kept. Check \
                 the machines' memory, and please report this",
                self.steps
            ))),
            None => Ok(()),
        }
    }

    /// Statistics of each layer's heads in the last step; empty before the first.
    pub fn heads(&self) -> &[Vec<HeadStatistics>] {
        &self.heads
    }

    /// Takes one step: reads `accumulation` batches of random windows, and runs forward and backward pass,
    /// clipping and update. If the loss or the gradient is not finite, the row says so and nothing is updated.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub fn step(&mut self) -> Result<StepRow, LmError> {
        let found = self.batches()?;
        self.steps += 1;
        let learning_rate = learning_rate(self.definition, self.steps);
        let grad_norm = match &found.gradients {
            Some(gradients) => self.update(gradients, &found.heads, learning_rate)?,
            None => f64::NAN,
        };
        self.heads = found.heads;
        Ok(StepRow {
            step: self.steps,
            tokens: (self.steps * self.definition.tokens_per_step()) as u64,
            loss_nats: found.loss_nats,
            learning_rate,
            grad_norm,
            wall_time_s: to_microseconds(self.wall_time_s()),
        })
    }

    /// The mean gradients of a step's random windows: all of its `accumulation` batches, shared by the
    /// workers.
    fn batches(&mut self) -> Result<BatchGradients, LmError> {
        let TrainDefinition { batch, accumulation, context, .. } = *self.definition;
        let text = self.corpus.split(self.split());
        let mut start = || self.windows.random_range(0..text.len() - context);
        // Every worker draws all windows, so a step's windows do not depend on the number of workers.
        let starts: Vec<usize> = (0..batch * accumulation).map(|_| start()).collect();
        let share = self.share;
        let mut parts = share.parts();
        let first = parts.next().unwrap_or_default();
        let mut sum = self.batch(&starts, first)?;
        for part in parts {
            let more = self.batch(&starts, part)?;
            sum.add(more)?;
        }
        sum.add_over(self.workers)?;
        if share.all_parts > 1 {
            sum.divide(share.all_parts)?;
        }
        Ok(sum)
    }

    /// The split that the next step reads.
    fn split(&self) -> Split {
        match self.steps < self.definition.upstream_steps {
            true => Split::Upstream,
            false => Split::Train,
        }
    }

    /// Gradients of the windows `part` of a step, whose windows begin at `starts`.
    fn batch(&self, starts: &[usize], part: Range<usize>) -> Result<BatchGradients, LmError> {
        let TrainDefinition { context, recompute, .. } = *self.definition;
        let text = self.corpus.split(self.split());
        let starts = &starts[part.clone()];
        let (inputs, targets) = batch(text, starts, context, self.model.device())?;
        let targets = match self.definition.label_noise > 0.0 {
            true => self.with_noise(&targets, starts)?,
            false => targets,
        };
        let objective = self.definition.objective();
        Ok(self.model.gradients(&(inputs, targets), objective, recompute)?)
    }

    /// The targets of windows that begin at `starts`, a share `label_noise` of them replaced by other symbols. Which, and by
    /// what, depends on the seed and the place in the text alone: labels are wrong, and stay so.
    pub(super) fn with_noise(&self, targets: &Tensor, starts: &[usize]) -> Result<Tensor, LmError> {
        let TrainDefinition { context, seed, label_noise, .. } = *self.definition;
        let symbols = self.corpus.vocabulary.size() as u64;
        let mut noisy: Vec<u32> = targets.to_vec1()?;
        let places = starts.iter().flat_map(|start| *start..start + context);
        let of_seed = ChaCha8Rng::seed_from_u64(seed);
        for (target, place) in noisy.iter_mut().zip(places) {
            let mut rng = of_seed.clone();
            rng.set_stream(place as u64);
            if symbols > 1 && rng.random_bool(label_noise) {
                let other = rng.random_range(1..symbols);
                *target = ((u64::from(*target) + other) % symbols) as u32;
            }
        }
        Ok(Tensor::from_vec(noisy, targets.shape(), targets.device())?)
    }

    /// Updates the weights and the state derived from them. Returns the gradient's norm before clipping.
    fn update(
        &mut self,
        gradients: &[Tensor],
        heads: &[Vec<HeadStatistics>],
        learning_rate: f64,
    ) -> Result<f64, LmError> {
        // The norm of worker 0: on a GPU sums have no fixed order, but all workers must make the same update.
        let norm = self.workers.gather_numbers(&[gradient_norm(gradients)?])[0][0];
        let decay = weight_decay(self.definition, self.steps);
        self.optimiser.step(self.model.weights(), gradients, norm, learning_rate, decay)?;
        if norm.is_finite() {
            if self.definition.has(Stabiliser::QkClip) {
                self.model.clip_queries_and_keys(heads, self.definition.qk_clip)?;
            }
            self.model.track_spectral_norms()?;
        }
        Ok(norm)
    }

    /// The mean loss over `eval_batches` batches of windows spread evenly over a split: the same
    /// windows at every call.
    ///
    /// # Errors
    /// Only errors of the tensor library.
    pub fn evaluate(&self, split: Split) -> Result<EvaluationRow, LmError> {
        let TrainDefinition { eval_batches, batch, .. } = *self.definition;
        let (vocabulary, text) = (&self.corpus.vocabulary, self.corpus.split(split));
        let found = evaluate(&self.model, vocabulary, text, eval_batches, batch, self.workers)?;
        Ok(EvaluationRow::new(self.steps, split, &found))
    }
}
