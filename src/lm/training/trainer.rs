//! One training run: its steps, its evaluations, and how it is saved and resumed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use candle_core::Tensor;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::adamw::{AdamW, gradient_norm};
use super::records::{EvalRecord, StepRecord};
use super::schedule::learning_rate;
use super::share::Share;
use crate::lm::evaluation::{Windows, batch, evaluate_over};
use crate::lm::memory_estimate::{self as room, Kept};
use crate::lm::model::{BatchGradients, cannot_teach};
use crate::lm::objective::Batch;
use crate::lm::tensor_file::{self, TensorFile};
use crate::lm::workers::{Alone, Workers};
use crate::lm::{
    Corpus, Device, HeadStatistics, LmError, Model, ModelShape, Split, Stabiliser, Teacher,
    TrainDefinition,
};

/// The generator's stream that windows of text come from; weights come from stream 0, so two arms
/// of one seed read the same text whatever their weights took.
const WINDOW_STREAM: u64 = 1;

/// The names of a checkpoint's notes.
const STEPS: &str = "steps";
const WALL_TIME: &str = "wall_time_s";
const WINDOW_POSITION: &str = "window_position";
const DIVERGED: &str = "diverged";

/// One training run: a model, its optimiser, and where it stands in its steps.
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
    corpus: &'a Corpus,
    teacher: Option<&'a Teacher>,
    /// How far the heads were from the teacher's in the last step.
    pattern_kl_nats: Option<f64>,
    model: Model,
    optimiser: AdamW,
    windows: ChaCha8Rng,
    heads: Vec<Vec<HeadStatistics>>,
    /// The workers that train the model, and this one's share of a step's windows.
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
    /// A run at its start.
    ///
    /// # Errors
    /// A value that its key cannot take, or a device that is not there.
    pub fn new(
        definition: &'a TrainDefinition,
        corpus: &'a Corpus,
        device: Device,
    ) -> Result<Self, LmError> {
        definition.check()?;
        let shape = ModelShape::new(definition, corpus.vocabulary.size());
        let model = Model::new(shape, definition.initial_deviation, definition.seed)?.on(device)?;
        let optimiser = AdamW::new(definition, model.weights())?;
        let mut windows = ChaCha8Rng::seed_from_u64(definition.seed);
        windows.set_stream(WINDOW_STREAM);
        Ok(Self {
            definition,
            corpus,
            teacher: None,
            pattern_kl_nats: None,
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

    /// Holds a run to the memory that the machine has: what its weights take at least, and on the CPU the activations of
    /// one worker's share of a step.
    ///
    /// # Errors
    /// A value that its key cannot take, a step that cannot be dealt evenly, or a run that is too large.
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
        room::check_weights(definition, corpus.vocabulary.size(), Kept::Training)?;
        match device {
            Device::Cpu => room::check_activations(definition, share.at_once()),
            Device::Cuda => Ok(()),
        }
    }

    /// What the files of a run take on a disk, at least: its last checkpoint, with AdamW's moments, and the weights of as
    /// many `kept` steps, in bytes.
    pub fn bytes_on_disk(definition: &TrainDefinition, corpus: &Corpus, kept: usize) -> f64 {
        (3 + kept) as f64 * room::bytes_of_weights(definition, corpus.vocabulary.size())
    }

    /// A run that goes on where [`Self::save`] left it, as if it had never stopped: on one machine
    /// its later steps are the same, bit for bit. The definition and corpus must be those of the
    /// run that was saved.
    ///
    /// # Errors
    /// A file that cannot be read, or that is no checkpoint of a model of this shape.
    pub fn resume(
        definition: &'a TrainDefinition,
        corpus: &'a Corpus,
        device: Device,
        path: &Path,
    ) -> Result<Self, LmError> {
        let mut file = TensorFile::read(path)?;
        let mut trainer = Self::new(definition, corpus, device)?;
        trainer.steps = file.note(STEPS)?;
        trainer.diverged = file.note(DIVERGED)?;
        trainer.earlier_s = file.note(WALL_TIME)?;
        trainer.windows.set_word_pos(file.note(WINDOW_POSITION)?);
        trainer.model = Model::from_file(trainer.model.shape().clone(), &mut file)?.on(device)?;
        let weights = trainer.model.weights();
        trainer.optimiser = AdamW::from_file(definition, weights, trainer.steps, &mut file)?;
        Ok(trainer)
    }

    /// Has a run at its start begin with the weights of `start`, a model of its shape, in place of those that were drawn.
    ///
    /// # Errors
    /// As [`ModelShape::check_start`].
    pub fn started_from(self, start: &Model) -> Result<Self, LmError> {
        self.model.set_weights(start)?;
        Ok(self)
    }

    /// Makes the heads attend as those of `teacher` do, by a term of the loss.
    ///
    /// # Errors
    /// A device other than the CPU.
    pub fn taught_by(mut self, teacher: &'a Teacher) -> Result<Self, LmError> {
        if !self.model.device().is_cpu() {
            return Err(cannot_teach("distillation runs on the CPU only"));
        }
        self.teacher = Some(teacher);
        Ok(self)
    }

    /// Has several workers train the model, each of them with the same definition, corpus and weights: data
    /// parallelism. The windows of a step, all of its `accumulation` batches, are dealt to the workers in order, gradients
    /// and what was seen of the heads are put together, and each rank moves its weights alike.
    ///
    /// # Errors
    /// A step whose windows cannot be dealt evenly.
    pub fn together(mut self, workers: &'a dyn Workers) -> Result<Self, LmError> {
        self.share = Share::of(self.definition, workers)?;
        self.workers = workers;
        Ok(self)
    }

    /// Σ over layers and heads of the mean over rows of KL(teacher ‖ student) in the last step, in nats, where there
    /// is a teacher.
    pub fn pattern_kl_nats(&self) -> Option<f64> {
        self.pattern_kl_nats
    }

    /// Writes all that [`Self::resume`] needs, whole or not at all: a safetensors file with the
    /// weights as [`Model::save`] names them, AdamW's moments as the same names with
    /// `.first_moment` and `.second_moment` after them, and the notes `steps`, `diverged`,
    /// `wall_time_s` and `window_position`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), LmError> {
        let mut tensors = self.model.named()?;
        tensors.extend(self.optimiser.named(self.model.weights())?);
        let notes = HashMap::from([
            (STEPS.to_owned(), self.steps.to_string()),
            (DIVERGED.to_owned(), self.diverged.to_string()),
            (WALL_TIME.to_owned(), self.wall_time_s().to_string()),
            (WINDOW_POSITION.to_owned(), self.windows.get_word_pos().to_string()),
        ]);
        tensor_file::write(path, &tensors, notes)
    }

    /// Seconds since the run started, without those between a stop and its resumption.
    pub(super) fn wall_time_s(&self) -> f64 {
        self.earlier_s + self.start.elapsed().as_secs_f64()
    }

    /// Steps taken so far, that of a divergence included.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The model as it stands.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Holds the weights of all workers to those of rank 0, bit for bit.
    ///
    /// # Errors
    /// A rank whose weights are others.
    pub(super) fn check_same_weights(&self) -> Result<(), LmError> {
        if self.workers.size() == 1 {
            return Ok(());
        }
        let mut hash = DefaultHasher::new();
        for tensor in self.model.named()? {
            hash.write(bytemuck::cast_slice(&tensor.data));
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

    /// Each layer's heads in the last step; empty before the first.
    pub fn heads(&self) -> &[Vec<HeadStatistics>] {
        &self.heads
    }

    /// One step: `accumulation` batches of random windows, of records whole ones, forward, backward, clip, update. Where the loss or the
    /// gradient is not finite, the record says so and nothing is updated.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn step(&mut self) -> Result<StepRecord, LmError> {
        let found = self.batches()?;
        self.steps += 1;
        let learning_rate = learning_rate(self.definition, self.steps);
        let grad_norm = match &found.gradients {
            Some(gradients) => self.update(gradients, &found.heads, learning_rate)?,
            None => f64::NAN,
        };
        self.heads = found.heads;
        self.pattern_kl_nats = found.pattern_kl_nats;
        Ok(StepRecord {
            step: self.steps,
            tokens: (self.steps * self.definition.tokens_per_step()) as u64,
            loss_nats: found.loss_nats,
            learning_rate,
            grad_norm,
            wall_time_s: self.wall_time_s(),
        })
    }

    /// The mean gradients of a step's random windows: of `accumulation` batches, or where several workers train,
    /// of the share that each has of them.
    fn batches(&mut self) -> Result<BatchGradients, LmError> {
        let TrainDefinition { batch, accumulation, context, .. } = *self.definition;
        let text = self.corpus.split(Split::Train);
        let windows = Windows::of(&self.corpus.vocabulary, text, context);
        let mut start = || windows.start(self.windows.random_range(0..windows.count));
        // All workers draw all of them, so which windows a step has does not hang on how many workers there are.
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
        if share.all_parts() > 1 {
            sum.divide(share.all_parts())?;
        }
        Ok(sum)
    }

    /// The gradients of some of a step's windows, which begin at `starts`.
    fn batch(&self, starts: &[usize], part: Range<usize>) -> Result<BatchGradients, LmError> {
        let TrainDefinition { context, recompute, .. } = *self.definition;
        let text = self.corpus.split(Split::Train);
        let (inputs, targets) = batch(text, &starts[part.clone()], context, self.model.device())?;
        let z_loss =
            if self.definition.has(Stabiliser::ZLoss) { self.definition.z_loss } else { 0.0 };
        let batch = match self.model.shape().masking() {
            None => Batch::next(inputs, &targets)?,
            Some(masking) => {
                let before = self.steps * starts.len() + part.start;
                let seed = self.definition.seed;
                Batch::masked(&targets, inputs.dims2()?, masking, seed, before as u64)?
            }
        };
        let target = self.teacher.map(|teacher| teacher.target(&batch.inputs)).transpose()?;
        Ok(self.model.gradients(&batch, z_loss, recompute, target.as_ref())?)
    }

    /// Moves the weights and what follows them, and returns the gradient's norm before clipping.
    fn update(
        &mut self,
        gradients: &[Tensor],
        heads: &[Vec<HeadStatistics>],
        learning_rate: f64,
    ) -> Result<f64, LmError> {
        // Of worker 0: on a GPU sums are not added in a fixed order, and all must move alike.
        let norm = self.workers.gather_numbers(&[gradient_norm(gradients)?])[0][0];
        self.optimiser.step(self.model.weights(), gradients, norm, learning_rate)?;
        if norm.is_finite() {
            if self.definition.has(Stabiliser::QkClip) {
                self.model.clip_queries_and_keys(heads, self.definition.qk_clip)?;
            }
            self.model.track_spectral_norms()?;
        }
        Ok(norm)
    }

    /// The mean loss over `eval_batches` batches of windows spread evenly over a split: the same
    /// ones at every call.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn evaluate(&self, split: Split) -> Result<EvalRecord, LmError> {
        let TrainDefinition { eval_batches, batch, .. } = *self.definition;
        let (vocabulary, text) = (&self.corpus.vocabulary, self.corpus.split(split));
        let evaluation =
            evaluate_over(&self.model, vocabulary, text, eval_batches, batch, self.workers)?;
        Ok(EvalRecord { step: self.steps, split, evaluation })
    }
}
