//! Tests of the verdicts on training.

use super::*;
use crate::claims::VerdictStatus;
use crate::experiments::training::claims::tuning::at_three_rates;

fn run(arm: &str, seed: u64, peak: f64, loss: f64) -> TrainingRun {
    let mut run = TrainingRun::made_up(arm, arm, seed, peak, loss);
    run.of.model.positions = "learned".to_owned();
    (run.of.context, run.of.steps, run.of.learning_rate) = (512, 1500, 3e-3);
    run.found.outcome = "completed".to_owned();
    run
}

fn at_length(mut run: TrainingRun, context: usize) -> TrainingRun {
    run.of.context = context;
    run
}

fn judged(seeds: u64, ls: (f64, f64), mhsa: (f64, f64)) -> Vec<VerdictStatus> {
    let ls = (0..seeds).map(|seed| run("ls", seed, ls.0, ls.1));
    let mhsa = (0..seeds).map(|seed| run("mhsa", seed, mhsa.0, mhsa.1));
    let study = Trainings { runs: ls.chain(mhsa).collect(), failed: 0 };
    verdicts(&at_three_rates(&study)).iter().map(|verdict| verdict.status).collect()
}

#[test]
fn logits_and_losses_have_every_word() {
    use VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted, SingleSeed};
    assert_eq!(judged(3, (12.0, 1.9), (220.0, 2.4)), [Confirmed, Confirmed]);
    assert_eq!(judged(3, (12.0, 1.9), (60.0, 2.4)), [Qualified, Confirmed]);
    assert_eq!(judged(1, (12.0, 1.9), (220.0, 2.4)), [SingleSeed, SingleSeed]);
    assert_eq!(judged(2, (12.0, 1.9), (220.0, 2.4)), [Qualified, Qualified]);
    // Without large logits there is nothing to avoid.
    assert_eq!(judged(3, (20.0, 1.9), (20.0, 2.4)), [NotMeasured, Confirmed]);
    assert_eq!(judged(2, (70.0, 2.6), (60.0, 2.4)), [Qualified, Qualified]);
    // Peaks that are lower by a tenth count as equal, by a third they do not.
    assert_eq!(judged(3, (54.0, 1.9), (60.0, 2.4)), [Refuted, Confirmed]);
    assert_eq!(judged(3, (40.0, 1.9), (60.0, 2.4)), [Qualified, Confirmed]);
    assert_eq!(judged(3, (70.0, 2.6), (60.0, 2.4)), [Refuted, Refuted]);
    assert_eq!(judged(0, (0.0, 0.0), (0.0, 0.0)), [NotMeasured; 2]);
}

#[test]
fn one_learning_rate_decides_nothing() {
    let of = |seed| [run("ls", seed, 12.0, 1.9), run("mhsa", seed, 220.0, 2.4)];
    let study = Trainings { runs: (0..3).flat_map(of).collect(), failed: 0 };
    let words: Vec<VerdictStatus> = verdicts(&study).iter().map(|verdict| verdict.status).collect();
    assert_eq!(words, [VerdictStatus::Qualified; 2]);
}

#[test]
fn stopped_runs_are_counted_and_decide_nothing() {
    let long = |run: TrainingRun| at_length(run, 2048);
    let ended = (0..3).flat_map(|seed| [run("ls", seed, 12.0, 1.9), run("mhsa", seed, 220.0, 2.4)]);
    let mut stopped = run("ls", 3, 300.0, 3.0);
    (stopped.found.outcome, stopped.of.steps) = ("stopped".to_owned(), 700);
    let ended = Trainings { runs: ended.map(long).collect(), failed: 0 };
    let mut study = at_three_rates(&ended);
    study.runs.push(long(stopped));
    let all = verdicts(&study);
    let words: Vec<VerdictStatus> = all.iter().map(|verdict| verdict.status).collect();
    assert_eq!(
        words,
        [VerdictStatus::Confirmed, VerdictStatus::NotMeasured, VerdictStatus::Confirmed]
    );
    assert!(all.iter().all(|verdict| verdict.measured.ends_with(": 1 run.")), "{all:?}");
}

#[test]
fn runs_are_compared_with_those_of_their_own_length() {
    let mut runs = Vec::new();
    for (context, ls, mhsa) in [(256, 20.0, 30.0), (1024, 40.0, 50.0)] {
        for seed in 0..3 {
            let pair = [run("ls", seed, ls, 1.9), run("mhsa", seed, mhsa, 2.4)];
            runs.extend(pair.map(|run| at_length(run, context)));
        }
    }
    let verdict = logits(&Trainings { runs: runs.clone(), failed: 0 });
    for number in ["6 of 6", "0.67", "0.80"] {
        assert!(verdict.measured.contains(number), "{}", verdict.measured);
    }
    runs.retain(|run| (run.arm() == "ls") == (run.of.context == 256));
    assert_eq!(logits(&Trainings { runs, failed: 0 }).status, VerdictStatus::NotMeasured);
}

#[test]
fn a_better_loss_with_rope_keeps_the_loss_from_being_confirmed() {
    let judged = |rope: f64| {
        let of = |seed| {
            let mut rotary = run("mhsa", seed, 60.0, rope);
            let model = &mut rotary.of.model;
            (model.positions, model.run) = ("rope".to_owned(), "mhsa-rotary".to_owned());
            [run("ls", seed, 12.0, 1.9), run("mhsa", seed, 220.0, 2.4), rotary]
        };
        let study = Trainings { runs: (0..3).flat_map(of).collect(), failed: 0 };
        no_worse(&at_three_rates(&study)).status
    };
    assert_eq!(judged(1.8), VerdictStatus::Qualified);
    assert_eq!(judged(2.0), VerdictStatus::Confirmed);
}

#[test]
fn divergence_needs_the_papers_length_and_steps() {
    let status_at = |context, steps, mhsa: &[&str], ls: &str| {
        let long = |arm: &str, seed, outcome: &str| {
            let mut run = at_length(run(arm, seed, 1.0, 1.0), context);
            (run.of.steps, run.found.outcome) = (steps, outcome.to_owned());
            run
        };
        let runs = (0..)
            .zip(mhsa)
            .flat_map(|(seed, mhsa)| [long("mhsa", seed, mhsa), long("ls", seed, ls)])
            .collect();
        divergence(&Trainings { runs, failed: 0 }).status
    };
    let status = |mhsa: &[&str], ls: &str| status_at(2048, 20_000, mhsa, ls);
    for (context, steps) in [(2047, 20_000), (2048, 19_999)] {
        let measured = status_at(context, steps, &["diverged"; 3], "completed");
        assert_eq!(measured, VerdictStatus::NotMeasured, "n = {context}, {steps} steps");
    }
    assert_eq!(status(&["diverged"; 3], "completed"), VerdictStatus::Confirmed);
    assert_eq!(status(&["diverged"; 2], "completed"), VerdictStatus::Qualified, "two seeds");
    assert_eq!(status(&["completed"; 6], "completed"), VerdictStatus::Refuted);
    assert_eq!(
        status(&["completed"; 3], "completed"),
        VerdictStatus::Qualified,
        "may be up to 71 %"
    );
    assert_eq!(
        status(&["diverged", "completed", "diverged"], "completed"),
        VerdictStatus::Qualified
    );
    assert_eq!(status(&["diverged"; 6], "diverged"), VerdictStatus::Refuted);
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
    let runs = |ls: [f64; 3]| {
        let pair = |(seed, ls)| [run("ls", seed, 20.0, ls), run("mhsa", seed, 60.0, 2.0)];
        at_three_rates(&Trainings { runs: (0..).zip(ls).flat_map(pair).collect(), failed: 0 })
    };
    assert_eq!(no_worse(&runs([1.9, 1.91, 1.9])).status, VerdictStatus::Confirmed);
    assert_eq!(no_worse(&runs([1.5, 2.0, 1.99])).status, VerdictStatus::Qualified, "too far apart");
    assert_eq!(no_worse(&runs([2.2, 2.21, 2.2])).status, VerdictStatus::Refuted);
    assert_eq!(
        no_worse(&runs([2.5, 2.02, 2.02])).status,
        VerdictStatus::Qualified,
        "too far apart"
    );
}
