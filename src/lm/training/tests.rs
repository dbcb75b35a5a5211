//! Tests of the training loop: records, outcomes and reproducibility.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use candle_core::Tensor;

use super::*;
use crate::lm::{Corpus, Device, LmError, Router, Split, TrainDefinition};

fn tiny() -> TrainDefinition {
    TrainDefinition::default().with(
        "layers=2 d_model=32 heads=2 context=64 steps=10 warmup_steps=2 eval_every=5 eval_batches=2 \
         corpus.tokens=40000",
    )
}

/// Runs whose tokens pass blocks up to three times.
fn routed() -> [TrainDefinition; 3] {
    let routed = tiny().with("layers=3 recursions=3 positions=rope");
    ["router=expert", "router=expert recursion_keys=shared", "router=token"]
        .map(|settings| routed.clone().with(settings))
}

#[derive(Default)]
struct Kept {
    steps: Vec<StepRow>,
    heads: Vec<HeadLogRow>,
    evals: Vec<EvaluationRow>,
    /// Where the run is saved after step 5.
    checkpoint: PathBuf,
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
    fn checkpoint(&mut self, trainer: &Trainer) -> Result<(), LmError> {
        if trainer.steps() == 5 { trainer.save(&self.checkpoint) } else { Ok(()) }
    }
}

fn run_with(
    definition: &TrainDefinition,
    recorder: &mut dyn Recorder,
    stop: bool,
) -> Result<TrainSummary, LmError> {
    let corpus = Corpus::synthetic(definition).unwrap();
    let mut trainer = Trainer::new(definition, &corpus, Device::Cpu).unwrap();
    trainer.run(recorder, &AtomicBool::new(stop))
}

fn run(definition: &TrainDefinition) -> (TrainSummary, Kept) {
    let mut kept = Kept::default();
    (run_with(definition, &mut kept, false).unwrap(), kept)
}

fn losses(kept: &Kept) -> Vec<f64> {
    kept.steps.iter().map(|step| step.loss_nats).collect()
}

#[test]
fn a_tiny_run_follows_its_golden_trajectory() {
    let (summary, kept) = run(&tiny());
    assert_eq!(summary.outcome, Outcome::Completed);
    // Recorded from this test's first run, to detect later changes.
    let golden =
        [3.87661, 3.80656, 3.63916, 3.54715, 3.47008, 3.42611, 3.42072, 3.36371, 3.31746, 3.27915];
    for (found, expected) in losses(&kept).iter().zip(golden) {
        assert!((found - expected).abs() < 1e-4, "{:?}, not {golden:?}", losses(&kept));
    }
}

#[test]
fn every_step_head_and_evaluation_is_recorded() {
    let (summary, kept) = run(&tiny().with("steps=7"));
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
    // A window as long as the context is equivalent to a global head.
    let [mhsa, ls] = ["steps=1", "steps=1 window=64 arm=ls"]
        .map(|settings| run(&tiny().with(settings)).1.steps[0].loss_nats);
    let off = (mhsa - ls).abs();
    assert!(off < 1e-6, "{off}");
}

#[test]
fn the_loss_falls_far_below_what_symbol_counts_allow() {
    let definition = tiny().with(
        "layers=1 steps=300 arm=local-only window=4 learning_rate=1e-2 corpus.alphabet=8 \
         corpus.concentration=0.1 corpus.vote=0 corpus.recall=0",
    );
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
    let (summary, kept) = run(&tiny().with("learning_rate=1e30 weight_decay=0"));
    let Outcome::Diverged { step } = summary.outcome else { panic!("{summary:?}") };
    assert_eq!(kept.steps.len(), step);
    assert_eq!(summary.valid_loss_nats, None);
}

#[test]
fn a_loss_above_the_threshold_ends_the_run_after_warm_up_for_good() {
    let definition = tiny().with("diverged_above=1 warmup_steps=3");
    let (summary, kept) = run(&definition);
    assert_eq!(summary.outcome, Outcome::Diverged { step: 4 });
    assert!(kept.steps.iter().all(|step| step.loss_nats > 1.0), "{:?}", kept.steps);
    assert_eq!((kept.steps.len(), kept.evals.len()), (4, 0));
    let (other, _) = run(&definition.clone().with("diverged_above=100"));
    assert_eq!(other.outcome, Outcome::Completed);

    // Resumed, it takes no step.
    let corpus = Corpus::synthetic(&definition).unwrap();
    let never = AtomicBool::new(false);
    let mut trainer = Trainer::new(&definition, &corpus, Device::Cpu).unwrap();
    trainer.run(&mut (), &never).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    trainer.save(&path).unwrap();
    let mut resumed = Trainer::resume(&definition, &corpus, Device::Cpu, &path).unwrap();
    let again = resumed.run(&mut (), &never).unwrap();
    assert_eq!((again.outcome, again.steps), (summary.outcome, 4));
}

#[test]
fn a_run_that_is_asked_to_stop_or_cannot_be_recorded_ends() {
    struct Full;
    impl Recorder for Full {
        fn head(&mut self, _record: &HeadLogRow) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let summary = run_with(&tiny(), &mut (), true).unwrap();
    assert_eq!((summary.outcome, summary.steps), (Outcome::Stopped, 0));
    let error = run_with(&tiny(), &mut Full, false).unwrap_err();
    assert!(matches!(error, LmError::Write(_)), "{error}");
}

#[test]
fn the_run_does_not_depend_on_the_number_of_threads() {
    let of_threads = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        losses(&pool.install(|| run(&tiny().with("optimiser=muon"))).1)
    };
    assert_eq!(of_threads(1), of_threads(3));
}

#[test]
fn a_resumed_run_is_the_same_run() {
    let settings = [
        "arm=mhsa",
        "arm=sigma-reparam",
        "optimiser=muon",
        "arm=ls dtype=bfloat16",
        "arm=ls accumulation=2",
        "upstream_steps=7",
    ];
    for definition in settings.map(|settings| tiny().with(settings)).into_iter().chain(routed()) {
        let definition = definition.with("checkpoint_every=5");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.safetensors");
        let mut kept = Kept { checkpoint: path.clone(), ..Kept::default() };
        let whole = run_with(&definition, &mut kept, false).unwrap();

        let corpus = Corpus::synthetic(&definition).unwrap();
        let mut resumed = Trainer::resume(&definition, &corpus, Device::Cpu, &path).unwrap();
        assert_eq!(resumed.steps(), 5);
        let mut rest = Kept::default();
        let summary = resumed.run(&mut rest, &AtomicBool::new(false)).unwrap();
        assert_eq!(rest.steps.len(), 5);
        assert_eq!(summary.valid_loss_nats, whole.valid_loss_nats);
        assert_eq!(summary.upstream_loss_nats, whole.upstream_loss_nats);
        assert_eq!(summary.max_abs_logit, whole.max_abs_logit);
        assert!(summary.wall_time_s > rest.steps[0].wall_time_s);

        resumed.model().save(&path).unwrap();
        let weights_alone = Trainer::resume(&definition, &corpus, Device::Cpu, &path);
        let error = weights_alone.err().expect("weights alone are no checkpoint").to_string();
        assert!(error.contains("checkpoint"), "{error}");
    }
}

/// All numbers that a run recorded, as bits.
fn bits(kept: &Kept) -> Vec<u64> {
    let steps = kept.steps.iter().flat_map(|step| [step.loss_nats, step.grad_norm]);
    let heads = kept.heads.iter().flat_map(|head| [head.max_logit, head.entropy_nats]);
    steps.chain(heads).map(f64::to_bits).collect()
}

#[test]
fn a_run_in_bfloat16_learns_as_one_in_float32_does() {
    let (_, exact) = run(&tiny().with("steps=40"));
    let (_, rounded) = run(&tiny().with("steps=40 dtype=bfloat16"));
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
    let arms = ["arm=ls", "arm=sigma-reparam", "arm=z-loss"].map(|arm| tiny().with(arm));
    for definition in arms.into_iter().chain(routed()) {
        let definition = definition.with("steps=4");
        let (_, kept) = run(&definition);
        let (_, again) = run(&definition.clone().with("recompute=true"));
        assert!(bits(&kept) == bits(&again), "{definition:?}: {:?}, {:?}", kept.steps, again.steps);
    }
}

#[test]
fn batches_added_up_are_one_larger_batch() {
    for definition in std::iter::once(tiny()).chain(routed()) {
        let of = |batches: &str| run(&definition.clone().with("steps=3").with(batches)).1;
        let [whole, parts] = [of("batch=4"), of("batch=2 accumulation=2")];
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
}

#[test]
fn the_upstream_text_is_read_first_and_evaluated_to_the_end() {
    let (summary, found) = run(&tiny().with("upstream_steps=4"));
    // The upstream text has the next seed; its rates are those of four steps with one of warm-up.
    let of_seed = |seed: &str| run(&tiny().with("steps=4 warmup_steps=1").with(seed)).1;
    assert_eq!(losses(&found)[..4], losses(&of_seed("corpus.seed=1")));
    assert_ne!(losses(&found)[..4], losses(&of_seed("corpus.seed=0")));
    let splits: Vec<(usize, Split)> = found.evals.iter().map(|row| (row.step, row.split)).collect();
    let both = |step| [(step, Split::Valid), (step, Split::UpstreamValid)];
    assert_eq!(splits, [both(5), both(10)].concat());
    assert_eq!(summary.valid_loss_nats, Some(found.evals[2].loss_nats));
    assert_eq!(summary.upstream_loss_nats, Some(found.evals[3].loss_nats));
    assert_eq!(run(&tiny()).0.upstream_loss_nats, None);
}

/// A place of the text has the same label in every window.
#[test]
fn a_share_of_labels_is_wrong_and_stays_so() {
    let definition = tiny().with("label_noise=0.2");
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
