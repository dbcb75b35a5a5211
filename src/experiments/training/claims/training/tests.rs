//! Tests of the verdicts on training.

use super::*;
use crate::claims::VerdictStatus::{self, Confirmed, NotMeasured, Qualified, Refuted, SingleSeed};
use crate::experiments::training::claims::tuning::at_three_rates;

fn run(arm: &str, seed: u64, peak: f64, loss: f64) -> TrainingRun {
    let mut run = TrainingRun::made_up(arm, arm, seed, peak, loss);
    run.of.model.positions = "learned".to_owned();
    (run.of.context, run.of.steps, run.of.learning_rate) = (512, 1500, 3e-3);
    run.found.outcome = "completed".to_owned();
    run
}

/// Runs of ls and mhsa with these peaks and losses.
fn study(seeds: u64, ls: (f64, f64), mhsa: (f64, f64)) -> Trainings {
    let of = |arm, (peak, loss)| (0..seeds).map(move |seed| run(arm, seed, peak, loss));
    Trainings::made_up(of("ls", ls).chain(of("mhsa", mhsa)))
}

fn statuses(study: &Trainings) -> Vec<VerdictStatus> {
    verdicts(study).iter().map(|verdict| verdict.status).collect()
}

#[test]
fn logits_and_losses_have_every_word() {
    let judged = |seeds, ls, mhsa| statuses(&at_three_rates(&study(seeds, ls, mhsa)));
    assert_eq!(judged(3, (12.0, 1.9), (220.0, 2.4)), [Confirmed, Confirmed]);
    assert_eq!(judged(3, (12.0, 1.9), (60.0, 2.4)), [Qualified, Confirmed]);
    assert_eq!(judged(1, (12.0, 1.9), (220.0, 2.4)), [SingleSeed, SingleSeed]);
    assert_eq!(judged(2, (12.0, 1.9), (220.0, 2.4)), [Qualified, Qualified]);
    // Without large logits there is nothing to avoid.
    assert_eq!(judged(3, (20.0, 1.9), (20.0, 2.4)), [NotMeasured, Confirmed]);
    // Peaks that are lower by a tenth count as equal, by a third they do not.
    assert_eq!(judged(3, (54.0, 1.9), (60.0, 2.4)), [Refuted, Confirmed]);
    assert_eq!(judged(3, (40.0, 1.9), (60.0, 2.4)), [Qualified, Confirmed]);
    assert_eq!(judged(3, (70.0, 2.6), (60.0, 2.4)), [Refuted, Refuted]);
    assert_eq!(judged(0, (0.0, 0.0), (0.0, 0.0)), [NotMeasured; 2]);
    let at_one_rate = study(3, (12.0, 1.9), (220.0, 2.4));
    assert_eq!(statuses(&at_one_rate), [Qualified; 2], "one learning rate decides nothing");
}

#[test]
fn stopped_runs_are_counted_and_decide_nothing() {
    let mut study = at_three_rates(&study(3, (12.0, 1.9), (220.0, 2.4)));
    let mut stopped = run("ls", 3, 300.0, 3.0);
    (stopped.found.outcome, stopped.of.steps) = ("stopped".to_owned(), 700);
    study.runs.push(stopped);
    study.runs.iter_mut().for_each(|run| run.of.context = 2048);
    assert_eq!(statuses(&study), [Confirmed, NotMeasured, Confirmed]);
    let all = verdicts(&study);
    assert!(all.iter().all(|verdict| verdict.measured.ends_with(": 1 run.")), "{all:?}");
}

#[test]
fn runs_are_compared_with_those_of_their_own_length() {
    let of_length = |(context, ls, mhsa)| {
        let mut runs = study(3, (ls, 1.9), (mhsa, 2.4)).runs;
        runs.iter_mut().for_each(|run| run.of.context = context);
        runs
    };
    let lengths = [(256, 20.0, 30.0), (1024, 40.0, 50.0)];
    let mut study = Trainings::made_up(lengths.into_iter().flat_map(of_length));
    let Verdict { measured, .. } = logits(&study);
    for number in ["6 of 6", "0.67", "0.80"] {
        assert!(measured.contains(number), "{measured}");
    }
    study.runs.retain(|run| (run.arm() == "ls") == (run.of.context == 256));
    assert_eq!(logits(&study).status, NotMeasured);
}

#[test]
fn a_better_loss_with_rope_keeps_the_loss_from_being_confirmed() {
    let judged = |rope: f64| {
        let rotary = (0..3).map(|seed| {
            let mut rotary = run("mhsa", seed, 60.0, rope);
            let model = &mut rotary.of.model;
            (model.positions, model.run) = ("rope".to_owned(), "mhsa-rotary".to_owned());
            rotary
        });
        let mut study = study(3, (12.0, 1.9), (220.0, 2.4));
        study.runs.extend(rotary);
        no_worse(&at_three_rates(&study)).status
    };
    assert_eq!(judged(1.8), Qualified);
    assert_eq!(judged(2.0), Confirmed);
}

#[test]
fn divergence_needs_the_papers_length_and_steps() {
    let status_at = |context, steps, mhsa: &[&str], ls: &str| {
        let long = |arm: &str, seed, outcome: &str| {
            let mut run = run(arm, seed, 1.0, 1.0);
            (run.of.context, run.of.steps) = (context, steps);
            run.found.outcome = outcome.to_owned();
            run
        };
        let runs = (0..)
            .zip(mhsa)
            .flat_map(|(seed, mhsa)| [long("mhsa", seed, mhsa), long("ls", seed, ls)]);
        divergence(&Trainings::made_up(runs)).status
    };
    let status = |mhsa: &[&str], ls: &str| status_at(2048, 20_000, mhsa, ls);
    for (context, steps) in [(2047, 20_000), (2048, 19_999)] {
        let measured = status_at(context, steps, &["diverged"; 3], "completed");
        assert_eq!(measured, NotMeasured, "n = {context}, {steps} steps");
    }
    assert_eq!(status(&["diverged"; 3], "completed"), Confirmed);
    assert_eq!(status(&["diverged"; 2], "completed"), Qualified, "two seeds");
    assert_eq!(status(&["completed"; 6], "completed"), Refuted);
    assert_eq!(status(&["completed"; 3], "completed"), Qualified, "may be up to 71 %");
    assert_eq!(status(&["diverged", "completed", "diverged"], "completed"), Qualified);
    assert_eq!(status(&["diverged"; 6], "diverged"), Refuted);
}

#[test]
fn shares_have_clopper_and_pearson_s_interval() {
    // 0 of 3: 1 − 0.025^(1/3); 5 of 10: 0.187 to 0.813 in tables.
    let ends = |counts| share(counts).ends().unwrap();
    let [low, high] = ends((0, 3));
    assert!(low == 0.0 && (high - (1.0 - 0.025f64.cbrt())).abs() < 1e-6, "{low} to {high}");
    let [low, high] = ends((5, 10));
    assert!((low - 0.187).abs() < 1e-3 && (high - 0.813).abs() < 1e-3, "{low} to {high}");
    assert_eq!(ends((4, 4))[1], 1.0);
}

#[test]
fn seeds_that_disagree_decide_nothing() {
    let status = |losses: [f64; 3]| {
        let mut study = study(3, (20.0, 0.0), (60.0, 2.0));
        for (run, loss) in study.runs.iter_mut().zip(losses) {
            run.found.valid_loss_nats = Some(loss);
        }
        no_worse(&at_three_rates(&study)).status
    };
    assert_eq!(status([1.9, 1.91, 1.9]), Confirmed);
    assert_eq!(status([1.5, 2.0, 1.99]), Qualified, "too far apart");
    assert_eq!(status([2.2, 2.21, 2.2]), Refuted);
    assert_eq!(status([2.5, 2.02, 2.02]), Qualified, "too far apart");
}
