//! Tests of the training loop: records, outcomes and reproducibility.

use std::io;
use std::sync::atomic::AtomicBool;

use candle_core::Tensor;

use super::*;
use crate::lm::{
    Arm, Corpus, Device, Dtype, LmError, Optimiser, Positions, RecursionKeys, Router, Split,
    SyntheticCorpus, TrainDefinition,
};

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

/// Runs whose tokens pass blocks up to three times.
fn routed() -> [TrainDefinition; 3] {
    let with = |router, recursion_keys| TrainDefinition {
        layers: 3,
        recursions: 3,
        router,
        recursion_keys,
        positions: Positions::Rope,
        ..tiny()
    };
    [
        with(Router::Expert, RecursionKeys::Own),
        with(Router::Expert, RecursionKeys::Shared),
        with(Router::Token, RecursionKeys::Own),
    ]
}

#[derive(Default)]
struct Kept {
    steps: Vec<StepRow>,
    heads: Vec<HeadLogRow>,
    evals: Vec<EvaluationRow>,
}

impl Recorder for Kept {
    fn step(&mut self, record: &StepRow) -> io::Result<()> {
        self.steps.push(record.clone());
        Ok(())
    }
    fn head(&mut self, record: &HeadLogRow) -> io::Result<()> {
        self.heads.push(record.clone());
        Ok(())
    }
    fn eval(&mut self, record: &EvaluationRow) -> io::Result<()> {
        self.evals.push(record.clone());
        Ok(())
    }
}

fn run(definition: &TrainDefinition) -> (TrainSummary, Kept) {
    let corpus = Corpus::synthetic(definition).unwrap();
    let mut kept = Kept::default();
    let mut trainer = Trainer::new(definition, &corpus, Device::Cpu).unwrap();
    let summary = trainer.run(&mut kept, &AtomicBool::new(false)).unwrap();
    (summary, kept)
}

#[test]
fn a_tiny_run_follows_its_golden_trajectory() {
    let (summary, kept) = run(&tiny());
    assert_eq!(summary.outcome, Outcome::Completed);
    // Recorded from this test's first run, to detect later changes.
    let golden =
        [3.87661, 3.80656, 3.63916, 3.54715, 3.47008, 3.42611, 3.42072, 3.36371, 3.31746, 3.27915];
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
    // A window as long as the context is equivalent to a global head.
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
        arm: Arm::LocalOnly,
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
fn a_loss_above_the_threshold_ends_the_run_once_warm_up_is_over() {
    let definition = TrainDefinition { diverged_above: 1.0, warmup_steps: 3, ..tiny() };
    let (summary, kept) = run(&definition);
    assert_eq!(summary.outcome, Outcome::Diverged { step: 4 });
    assert!(kept.steps.iter().all(|step| step.loss_nats > 1.0), "{:?}", kept.steps);
    assert_eq!((kept.steps.len(), kept.evals.len()), (4, 0));
    let (summary, _) = run(&TrainDefinition { diverged_above: 100.0, ..definition });
    assert_eq!(summary.outcome, Outcome::Completed);
}

#[test]
fn a_diverged_run_that_is_resumed_takes_no_step() {
    let definition = TrainDefinition { diverged_above: 1.0, warmup_steps: 3, ..tiny() };
    let corpus = Corpus::synthetic(&definition).unwrap();
    let never = AtomicBool::new(false);
    let mut trainer = Trainer::new(&definition, &corpus, Device::Cpu).unwrap();
    let ended = trainer.run(&mut (), &never).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    trainer.save(&path).unwrap();
    let mut resumed = Trainer::resume(&definition, &corpus, Device::Cpu, &path).unwrap();
    let summary = resumed.run(&mut (), &never).unwrap();
    assert_eq!((summary.outcome, summary.steps), (ended.outcome, 4));
}

#[test]
fn a_run_that_is_asked_to_stop_says_so() {
    let definition = tiny();
    let corpus = Corpus::synthetic(&definition).unwrap();
    let mut trainer = Trainer::new(&definition, &corpus, Device::Cpu).unwrap();
    let summary = trainer.run(&mut (), &AtomicBool::new(true)).unwrap();
    assert_eq!((summary.outcome, summary.steps), (Outcome::Stopped, 0));
}

#[test]
fn a_record_that_cannot_be_kept_ends_the_run() {
    struct Full;
    impl Recorder for Full {
        fn head(&mut self, _record: &HeadLogRow) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let definition = tiny();
    let corpus = Corpus::synthetic(&definition).unwrap();
    let mut trainer = Trainer::new(&definition, &corpus, Device::Cpu).unwrap();
    let error = trainer.run(&mut Full, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, LmError::Write(_)), "{error}");
}

#[test]
fn the_run_does_not_depend_on_the_number_of_threads() {
    let losses = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let definition = TrainDefinition { optimiser: Optimiser::Muon, ..tiny() };
        let (_, kept) = pool.install(|| run(&definition));
        kept.steps.iter().map(|record| record.loss_nats).collect::<Vec<_>>()
    };
    assert_eq!(losses(1), losses(3));
}

#[test]
fn a_resumed_run_is_the_same_run() {
    for definition in [
        tiny(),
        TrainDefinition { arm: Arm::SigmaReparam, ..tiny() },
        TrainDefinition { optimiser: Optimiser::Muon, ..tiny() },
        TrainDefinition { arm: Arm::Ls, dtype: Dtype::Bfloat16, ..tiny() },
        TrainDefinition { arm: Arm::Ls, accumulation: 2, ..tiny() },
        TrainDefinition { upstream_steps: 7, ..tiny() },
    ] {
        resumes(definition);
    }
    routed().into_iter().for_each(resumes);
}

fn resumes(definition: TrainDefinition) {
    struct At5(std::path::PathBuf);
    impl Recorder for At5 {
        fn checkpoint(&mut self, trainer: &Trainer) -> Result<(), LmError> {
            if trainer.steps() == 5 { trainer.save(&self.0) } else { Ok(()) }
        }
    }
    let definition = TrainDefinition { checkpoint_every: 5, ..definition };
    let corpus = Corpus::synthetic(&definition).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let never = AtomicBool::new(false);
    let whole = Trainer::new(&definition, &corpus, Device::Cpu)
        .unwrap()
        .run(&mut At5(path.clone()), &never)
        .unwrap();
    let mut resumed = Trainer::resume(&definition, &corpus, Device::Cpu, &path).unwrap();
    assert_eq!(resumed.steps(), 5);
    let mut kept = Kept::default();
    let summary = resumed.run(&mut kept, &never).unwrap();
    assert_eq!(kept.steps.len(), 5);
    assert_eq!(summary.valid_loss_nats, whole.valid_loss_nats);
    assert_eq!(summary.upstream_loss_nats, whole.upstream_loss_nats);
    assert_eq!(summary.max_abs_logit, whole.max_abs_logit);
    assert!(summary.wall_time_s > kept.steps[0].wall_time_s);

    resumed.model().save(&path).unwrap();
    let Err(error) = Trainer::resume(&definition, &corpus, Device::Cpu, &path) else {
        panic!("weights alone were taken for a checkpoint")
    };
    assert!(error.to_string().contains("not a checkpoint"), "{error}");
}

/// All numbers that a run recorded, as bits.
fn bits(kept: &Kept) -> Vec<u64> {
    let steps = kept.steps.iter().flat_map(|step| [step.loss_nats, step.grad_norm]);
    let heads = kept.heads.iter().flat_map(|head| [head.max_logit, head.entropy_nats]);
    steps.chain(heads).map(f64::to_bits).collect()
}

#[test]
fn a_run_in_bfloat16_learns_as_one_in_float32_does() {
    let definition = TrainDefinition { steps: 40, ..tiny() };
    let (_, exact) = run(&definition);
    let (_, rounded) = run(&TrainDefinition { dtype: Dtype::Bfloat16, ..definition });
    assert!(bits(&exact) != bits(&rounded), "nothing was rounded");
    let [first, last] = [0, 39].map(|at| exact.steps[at].loss_nats);
    assert!(last < first - 0.5, "{first} to {last}: too little is learned to compare");
    for (exact, rounded) in exact.steps.iter().zip(&rounded.steps) {
        let off = (exact.loss_nats - rounded.loss_nats).abs();
        assert!(off < 0.02, "{exact:?} against {rounded:?}");
    }
}

#[test]
fn recomputed_activations_give_the_same_run_bit_for_bit() {
    let of_arm = |arm| {
        let mut definition = tiny();
        definition.set("arm", arm).unwrap();
        definition
    };
    let arms = ["ls", "sigma-reparam", "z-loss"].map(of_arm);
    for definition in arms.into_iter().chain(routed()) {
        let definition = TrainDefinition { steps: 4, ..definition };
        let (_, kept) = run(&definition);
        let (_, again) = run(&TrainDefinition { recompute: true, ..definition.clone() });
        assert!(bits(&kept) == bits(&again), "{definition:?}: {:?}, {:?}", kept.steps, again.steps);
    }
}

#[test]
fn batches_added_up_are_one_larger_batch() {
    std::iter::once(tiny()).chain(routed()).for_each(|definition| batches_add_up(&definition));
}

fn batches_add_up(definition: &TrainDefinition) {
    let of = |batch: usize, accumulation: usize| {
        run(&TrainDefinition { steps: 3, batch, accumulation, ..definition.clone() })
    };
    let ((_, whole), (_, parts)) = (of(4, 1), of(2, 2));
    for (whole, parts) in whole.steps.iter().zip(&parts.steps) {
        assert_eq!(whole.tokens, parts.tokens);
        let off = (whole.loss_nats - parts.loss_nats).abs() / whole.loss_nats;
        let off = off.max((whole.grad_norm - parts.grad_norm).abs() / whole.grad_norm);
        assert!(off < 1e-5, "{whole:?} against {parts:?}");
    }
    // In the mean entropy a batch with few active tokens counts as much as one with many.
    let tolerance = if definition.router == Router::Token { 0.1 } else { 1e-3 };
    for (whole, parts) in whole.heads.iter().zip(&parts.heads) {
        let off = (whole.max_abs_logit - parts.max_abs_logit).abs();
        assert!(off < 1e-3, "{whole:?} against {parts:?}");
        let off = (whole.entropy_nats - parts.entropy_nats).abs();
        assert!(off < tolerance, "{whole:?} against {parts:?}");
    }
}

/// A place of the text has the same label in every window.
#[test]
fn the_upstream_text_is_read_first_and_evaluated_to_the_end() {
    let definition = TrainDefinition { upstream_steps: 4, ..tiny() };
    let (summary, found) = run(&definition);
    let with_seed = |seed: u64| {
        let corpus = SyntheticCorpus { seed, ..tiny().corpus };
        run(&TrainDefinition { steps: 4, warmup_steps: 1, corpus, ..tiny() }).1
    };
    // The upstream text has the next seed; its rates are those of four steps with one of warm-up.
    let losses = |kept: &Kept| kept.steps.iter().map(|step| step.loss_nats).collect::<Vec<f64>>();
    assert_eq!(losses(&found)[..4], losses(&with_seed(1)));
    assert_ne!(losses(&found)[..4], losses(&with_seed(0)));
    let splits: Vec<(usize, Split)> = found.evals.iter().map(|row| (row.step, row.split)).collect();
    let both = |step| [(step, Split::Valid), (step, Split::UpstreamValid)];
    assert_eq!(splits, [both(5), both(10)].concat());
    assert_eq!(summary.valid_loss_nats, Some(found.evals[2].loss_nats));
    assert_eq!(summary.upstream_loss_nats, Some(found.evals[3].loss_nats));
    assert_eq!(run(&tiny()).0.upstream_loss_nats, None);
}

#[test]
fn a_share_of_labels_is_wrong_and_stays_so() {
    let definition = TrainDefinition { label_noise: 0.2, ..tiny() };
    let corpus = Corpus::synthetic(&definition).unwrap();
    let trainer = Trainer::new(&definition, &corpus, Device::Cpu).unwrap();
    let (symbols, t) = (corpus.vocabulary.size(), definition.context);
    let starts: Vec<usize> = (0..400).map(|window| window * t).collect();
    let labels = vec![3u32; starts.len() * t];
    let noisy = |starts: &[usize]| -> Vec<u32> {
        let labels = Tensor::new(&labels[..starts.len() * t], trainer.model().device()).unwrap();
        trainer.with_noise(&labels, starts).unwrap().to_vec1().unwrap()
    };
    let found = noisy(&starts);
    let wrong: Vec<u32> = found.iter().copied().filter(|&label| label != 3).collect();
    let share = wrong.len() as f64 / found.len() as f64;
    assert!((share - 0.2).abs() < 0.01, "{share}");
    for symbol in (0..symbols as u32).filter(|&symbol| symbol != 3) {
        let own = wrong.iter().filter(|&&label| label == symbol).count() as f64;
        let expected = wrong.len() as f64 / (symbols - 1) as f64;
        assert!((own - expected).abs() < 6.0 * expected.sqrt(), "{symbol}: {own}");
    }
    assert_eq!(noisy(&[t + 5])[..t - 5], found[t + 5..2 * t]);
    let (_, plain) = run(&tiny());
    let (_, kept) = run(&definition);
    assert!(kept.steps[0].loss_nats > plain.steps[0].loss_nats);
    assert!(kept.evals[0].loss_nats > 0.0 && kept.evals[0] != plain.evals[0]);
}
