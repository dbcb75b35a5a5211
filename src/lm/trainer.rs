//! The training loop, written once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use candle_core::{Device, Tensor};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::optimiser::AdamW;
use super::schedule::learning_rate;
use super::{
    Corpus, EvalRecord, HeadRecord, HeadStatistics, LmError, Model, ModelShape, Outcome, Recorder,
    Split, StepRecord, TrainDefinition, TrainSummary,
};

/// The generator's stream that windows of text come from; weights come from stream 0, so two arms
/// of one seed read the same text whatever their weights took.
const WINDOW_STREAM: u64 = 1;

/// One training run: a model, its optimiser, and where it stands in its steps.
pub struct Trainer<'a> {
    definition: &'a TrainDefinition,
    corpus: &'a Corpus,
    model: Model,
    optimiser: AdamW,
    windows: ChaCha8Rng,
    heads: Vec<Vec<HeadStatistics>>,
    steps: usize,
    start: Instant,
}

impl<'a> Trainer<'a> {
    /// A run at its start.
    ///
    /// # Errors
    /// Of the tensor library only: a definition and its corpus have been checked.
    pub fn new(definition: &'a TrainDefinition, corpus: &'a Corpus) -> Result<Self, LmError> {
        let shape = ModelShape::new(definition, corpus.vocabulary.size());
        let model = Model::new(shape, definition.initial_deviation, definition.seed)?;
        let optimiser = AdamW::new(definition, model.weights());
        let mut windows = ChaCha8Rng::seed_from_u64(definition.seed);
        windows.set_stream(WINDOW_STREAM);
        Ok(Self {
            definition,
            corpus,
            model,
            optimiser,
            windows,
            heads: Vec::new(),
            steps: 0,
            start: Instant::now(),
        })
    }

    /// The model as it stands.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Each layer's heads in the last step; empty before the first.
    pub fn heads(&self) -> &[Vec<HeadStatistics>] {
        &self.heads
    }

    /// Steps until the definition's number of them, a loss or gradient that is not finite, or
    /// `stop`; tells `recorder` of every step, and of an evaluation on the validation split every
    /// `eval_every` steps and after the last.
    ///
    /// # Errors
    /// A record that could not be kept.
    pub fn run(
        &mut self,
        recorder: &mut dyn Recorder,
        stop: &AtomicBool,
    ) -> Result<TrainSummary, LmError> {
        let mut outcome = Outcome::Completed;
        let mut valid_loss_nats = None;
        while self.steps < self.definition.steps {
            if stop.load(Ordering::Relaxed) {
                outcome = Outcome::Stopped;
                break;
            }
            let record = self.step()?;
            recorder.step(&record)?;
            for head in self.head_records() {
                recorder.head(&head)?;
            }
            if !record.loss_nats.is_finite() || !record.grad_norm.is_finite() {
                outcome = Outcome::Diverged { step: record.step };
                valid_loss_nats = None;
                break;
            }
            let last = self.steps == self.definition.steps;
            if last || self.steps.is_multiple_of(self.definition.eval_every) {
                let record = self.evaluate(Split::Valid)?;
                recorder.eval(&record)?;
                valid_loss_nats = Some(record.loss_nats);
            }
        }
        Ok(TrainSummary {
            outcome,
            steps: self.steps,
            parameters: self.model.parameters(),
            valid_loss_nats,
            max_abs_logit: self.max_abs_logit(),
            wall_time_s: self.start.elapsed().as_secs_f64(),
        })
    }

    /// One step: a batch of random windows, forward, backward, clip, update. Where the loss or the
    /// gradient is not finite, the record says so and nothing is updated.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn step(&mut self) -> Result<StepRecord, LmError> {
        let text = self.corpus.split(Split::Train);
        let last = text.len() - self.definition.context;
        let starts: Vec<usize> =
            (0..self.definition.batch).map(|_| self.windows.random_range(0..last)).collect();
        let (inputs, targets) = batch(text, &starts, self.definition.context)?;
        let forward = self.model.forward(&inputs)?;
        let loss = forward.loss(&targets)?;
        let loss_nats = f64::from(loss.to_scalar::<f32>()?);
        self.steps += 1;
        let learning_rate = learning_rate(self.definition, self.steps);
        let grad_norm = if loss_nats.is_finite() {
            let gradients = loss.backward()?;
            self.optimiser.step(self.model.weights(), &gradients, learning_rate)?
        } else {
            f64::NAN
        };
        self.heads = forward.heads;
        Ok(StepRecord {
            step: self.steps,
            tokens: (self.steps * self.definition.batch * self.definition.context) as u64,
            loss_nats,
            learning_rate,
            grad_norm,
            wall_time_s: self.start.elapsed().as_secs_f64(),
        })
    }

    /// The mean loss over `eval_batches` batches of windows spread evenly over a split: the same
    /// ones at every call.
    ///
    /// # Errors
    /// Of the tensor library only.
    pub fn evaluate(&self, split: Split) -> Result<EvalRecord, LmError> {
        let (batches, size) = (self.definition.eval_batches, self.definition.batch);
        let context = self.definition.context;
        let text = self.corpus.split(split);
        let last = text.len() - context - 1;
        let starts: Vec<usize> =
            (0..batches * size).map(|i| i * last / (batches * size - 1).max(1)).collect();
        let mut total = 0.0;
        for starts in starts.chunks(size) {
            let (inputs, targets) = batch(text, starts, context)?;
            let loss = self.model.predict(&inputs)?.loss(&targets)?;
            total += f64::from(loss.to_scalar::<f32>()?);
        }
        let loss_nats = total / batches as f64;
        Ok(EvalRecord {
            step: self.steps,
            split,
            tokens: (batches * size * context) as u64,
            loss_nats,
            perplexity: loss_nats.exp(),
        })
    }

    fn head_records(&self) -> impl Iterator<Item = HeadRecord> {
        let kinds = &self.model.shape().heads;
        self.heads.iter().enumerate().flat_map(move |(layer, heads)| {
            heads.iter().zip(kinds).enumerate().map(move |(head, (seen, &kind))| HeadRecord {
                step: self.steps,
                layer,
                head,
                kind,
                max_logit: seen.max_logit.into(),
                min_logit: seen.min_logit.into(),
                max_abs_logit: seen.max_abs_logit().into(),
                entropy_nats: seen.entropy_nats.into(),
            })
        })
    }

    fn max_abs_logit(&self) -> Option<f64> {
        let heads = self.heads.iter().flatten();
        heads.map(|head| f64::from(head.max_abs_logit())).reduce(f64::max)
    }
}

/// The windows of `context` tokens at `starts`, (B, T), and the tokens that follow each, (B·T).
fn batch(text: &[u32], starts: &[usize], context: usize) -> Result<(Tensor, Tensor), LmError> {
    let windows = |shift: usize| -> Vec<u32> {
        let window = |start: &usize| &text[start + shift..][..context];
        starts.iter().flat_map(window).copied().collect()
    };
    let inputs = Tensor::from_vec(windows(0), (starts.len(), context), &Device::Cpu)?;
    let targets = Tensor::from_vec(windows(1), starts.len() * context, &Device::Cpu)?;
    Ok((inputs, targets))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::lm::SyntheticCorpus;

    fn tiny() -> TrainDefinition {
        TrainDefinition {
            layers: 2,
            d_model: 32,
            heads: 2,
            context: 64,
            steps: 10,
            warmup_steps: 2,
            eval_every: 5,
            eval_batches: 2,
            corpus: SyntheticCorpus { tokens: 40_000, ..SyntheticCorpus::default() },
            ..TrainDefinition::default()
        }
    }

    #[derive(Default)]
    struct Kept {
        steps: Vec<StepRecord>,
        heads: Vec<HeadRecord>,
        evals: Vec<EvalRecord>,
    }

    impl Recorder for Kept {
        fn step(&mut self, record: &StepRecord) -> io::Result<()> {
            self.steps.push(*record);
            Ok(())
        }
        fn head(&mut self, record: &HeadRecord) -> io::Result<()> {
            self.heads.push(*record);
            Ok(())
        }
        fn eval(&mut self, record: &EvalRecord) -> io::Result<()> {
            self.evals.push(*record);
            Ok(())
        }
    }

    fn run(definition: &TrainDefinition) -> (TrainSummary, Kept) {
        let corpus = Corpus::synthetic(definition).unwrap();
        let mut kept = Kept::default();
        let mut trainer = Trainer::new(definition, &corpus).unwrap();
        let summary = trainer.run(&mut kept, &AtomicBool::new(false)).unwrap();
        (summary, kept)
    }

    #[test]
    fn a_tiny_run_follows_its_golden_trajectory() {
        let (summary, kept) = run(&tiny());
        assert_eq!(summary.outcome, Outcome::Completed);
        // Written by this test's own first run, to notice any later change.
        let golden = [
            3.87661, 3.80656, 3.63916, 3.54715, 3.47008, 3.42611, 3.42072, 3.36371, 3.31746,
            3.27915,
        ];
        let losses: Vec<f64> = kept.steps.iter().map(|record| record.loss_nats).collect();
        for (step, (found, expected)) in losses.iter().zip(golden).enumerate() {
            assert!((found - expected).abs() < 1e-4, "step {}: {losses:?}", step + 1);
        }
    }

    #[test]
    fn every_step_head_and_evaluation_is_recorded() {
        let definition = TrainDefinition { steps: 7, ..tiny() };
        let (summary, kept) = run(&definition);
        assert_eq!(kept.steps.len(), 7);
        assert_eq!(kept.steps[6].tokens, 7 * 4 * 64);
        assert_eq!(kept.heads.len(), 7 * 2 * 2);
        let steps: Vec<usize> = kept.evals.iter().map(|record| record.step).collect();
        assert_eq!(steps, [5, 7]);
        assert_eq!(summary.valid_loss_nats, Some(kept.evals[1].loss_nats));
        let last = kept.heads[24..].iter().map(|head| head.max_abs_logit).fold(0.0, f64::max);
        assert_eq!(summary.max_abs_logit, Some(last));
        for head in &kept.heads {
            assert!(head.min_logit <= head.max_logit && head.entropy_nats >= 0.0, "{head:?}");
        }
    }

    #[test]
    fn arms_of_one_seed_start_alike_and_read_alike() {
        let mhsa = run(&TrainDefinition { steps: 1, ..tiny() });
        // A window as long as the context sees what a global head sees.
        let mut definition = TrainDefinition { steps: 1, window: 64, ..tiny() };
        definition.set("arm", "ls").unwrap();
        let ls = run(&definition);
        let off = (mhsa.1.steps[0].loss_nats - ls.1.steps[0].loss_nats).abs();
        assert!(off < 1e-6, "{off}");
    }

    #[test]
    fn the_loss_falls_far_below_what_symbol_counts_allow() {
        let definition = TrainDefinition {
            layers: 1,
            steps: 300,
            arm: crate::lm::Arm::LocalOnly,
            window: 4,
            learning_rate: 1e-2,
            corpus: SyntheticCorpus {
                tokens: 40_000,
                alphabet: 8,
                concentration: 0.1,
                vote: 0.0,
                recall: 0.0,
                ..SyntheticCorpus::default()
            },
            ..tiny()
        };
        let corpus = Corpus::synthetic(&definition).unwrap();
        let text = corpus.split(Split::Train);
        let mut counts = vec![0.0f64; corpus.vocabulary.size()];
        for &token in text {
            counts[token as usize] += 1.0 / text.len() as f64;
        }
        let unigram: f64 = counts.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
        let (summary, _) = run(&definition);
        let loss = summary.valid_loss_nats.unwrap();
        let entropy = corpus.entropy_nats.unwrap();
        assert!(loss < 0.8 * unigram, "loss {loss}, unigram entropy {unigram}");
        assert!(loss > 0.95 * entropy, "loss {loss} below the source's entropy {entropy}");
    }

    #[test]
    fn a_learning_rate_out_of_all_bounds_diverges_as_an_outcome() {
        let definition = TrainDefinition { learning_rate: 1e30, weight_decay: 0.0, ..tiny() };
        let (summary, kept) = run(&definition);
        let Outcome::Diverged { step } = summary.outcome else { panic!("{summary:?}") };
        assert_eq!(kept.steps.len(), step);
        assert_eq!(summary.valid_loss_nats, None);
    }

    #[test]
    fn a_run_that_is_asked_to_stop_says_so() {
        let definition = tiny();
        let corpus = Corpus::synthetic(&definition).unwrap();
        let mut trainer = Trainer::new(&definition, &corpus).unwrap();
        let summary = trainer.run(&mut (), &AtomicBool::new(true)).unwrap();
        assert_eq!((summary.outcome, summary.steps), (Outcome::Stopped, 0));
    }

    #[test]
    fn a_record_that_cannot_be_kept_ends_the_run() {
        struct Full;
        impl Recorder for Full {
            fn head(&mut self, _record: &HeadRecord) -> io::Result<()> {
                Err(io::ErrorKind::StorageFull.into())
            }
        }
        let definition = tiny();
        let corpus = Corpus::synthetic(&definition).unwrap();
        let mut trainer = Trainer::new(&definition, &corpus).unwrap();
        let error = trainer.run(&mut Full, &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, LmError::Recorder(_)), "{error}");
    }

    #[test]
    fn the_run_does_not_depend_on_the_number_of_threads() {
        let losses = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (_, kept) = pool.install(|| run(&tiny()));
            kept.steps.iter().map(|record| record.loss_nats).collect::<Vec<_>>()
        };
        assert_eq!(losses(1), losses(3));
    }
}
