//! Verdicts on training: logits, divergence and loss of LS-attention against multi-head attention.

use statrs::distribution::{Beta, ContinuousCDF};

use super::claims::Claim;
use super::pairs::{Pairs, PairsOfSetting, difference, log_ratio};
use super::phrases::{all_apart, apart, from_to, times, times_or};
use super::scale::{listed, of_runs};
use super::tuning::Tuned;
use super::verdict::{Verdict, Word};
use crate::table::{Interval, Spread, TrainingRun, Trainings, arm_name, plural, significant};

/// A validation loss this much above the other's, in nats, still counts as no higher: a hundredth of a nat is one per
/// cent of perplexity, and less than seeds of one setting differ by.
pub(super) const NO_WORSE_NATS: f64 = 0.01;
/// Peaks within this factor of each other are alike. The paper reports four times and more (200 against 50), of whose
/// logarithm this is a sixth.
pub(super) const LOGITS_ALIKE: f64 = 1.25;
/// The paper's bound on LS-attention's logits, and the least that it reports of multi-head attention.
pub(super) const LS_AT_MOST: f64 = 50.0;
pub(super) const MHSA_AT_LEAST: f64 = 200.0;
/// The paper's length of context and steps for divergence.
pub(super) const PAPER_CONTEXT: usize = 2048;
pub(super) const PAPER_STEPS: usize = 20_000;
/// Fewer than half of the runs do not make "diverges" true of a model.
const HALF: f64 = 0.5;

/// The verdicts of a study of trainings, on those of its runs that ended. Runs that were stopped are named beside them.
/// Contexts shorter than the paper's give no verdict on divergence.
pub(crate) fn training(study: &Trainings) -> Vec<Verdict> {
    let ended = study.ended();
    let long = study.runs.iter().any(|run| run.context.is_some_and(|n| n >= PAPER_CONTEXT));
    let mut verdicts = vec![logits(&ended)];
    verdicts.extend(long.then(|| divergence(&ended)));
    verdicts.push(no_worse(&ended));
    for verdict in &mut verdicts {
        if let Some([headline, so_far]) = so_far(study, verdict.claim) {
            // Runs that were stopped are the only ones there.
            if verdict.seeds == 0 {
                [verdict.headline, verdict.measured] = [headline, so_far];
            } else {
                verdict.measured.push_str(&format!(" {so_far}"));
            }
        }
    }
    verdicts
}

/// What the stopped runs of both variants have of a claim's quantity, as a headline and a sentence; none where there are
/// none.
fn so_far(study: &Trainings, claim: Claim) -> Option<[String; 2]> {
    let number =
        |value: Option<f64>, digits| value.map_or("?".to_owned(), |v| significant(v, digits));
    let stopped = || {
        let stopped = study.runs.iter().filter(|run| run.is_so_far());
        stopped.filter(|run| ["ls", "mhsa"].contains(&&*run.arm))
    };
    let all = |one: &dyn Fn(&TrainingRun) -> String| {
        stopped()
            .map(|run| format!("{} {}", arm_name(&run.arm), one(run)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let steps = |run: &TrainingRun| run.steps.unwrap_or(0);
    stopped().next()?;
    let value = match claim {
        Claim::LogitsInTraining => {
            format!("peaks {}", all(&|run| number(run.peak_max_abs_logit, 3)))
        }
        Claim::NoWorse => format!("losses {}", all(&|run| number(run.valid_loss_nats, 4))),
        _ => "none diverged".to_owned(),
    };
    let most = stopped().map(steps).max().unwrap_or(0);
    let lengths = listed(stopped().filter_map(|run| run.context)).unwrap_or_default();
    Some([
        format!("stopped by step {most}: {value}, one seed"),
        format!(
            "Runs at n = {lengths} were stopped early: {} steps; {value}. A verdict needs finished runs of both variants.",
            all(&|run| steps(run).to_string())
        ),
    ])
}

/// Logits: `ls` against `mhsa` by the peak of max |logit| over the run, seed by seed at one setting. Intervals are
/// Student's over seeds, of the difference of the peaks' logarithms.
///
/// *Not measured*: one of the arms is missing, or lacks its logits; or neither comes to [`LS_AT_MOST`] at any setting,
/// so that there are no large logits that `ls` could avoid. A setting without such logits refutes nothing.
fn logits(study: &Trainings) -> Verdict {
    let tuned = Tuned::of(study, &[]);
    let value = |run: &TrainingRun| run.peak_max_abs_logit;
    let Some(pairs) = Pairs::of(&tuned.study, ["ls", "mhsa"], value) else {
        return missing(Claim::LogitsInTraining);
    };
    let lower = pairs.count(|ls, mhsa| ls < mhsa);
    let as_told = pairs.count(|ls, mhsa| ls < LS_AT_MOST && mhsa >= MHSA_AT_LEAST);
    let alike = -LOGITS_ALIKE.ln();
    let is_large = |setting: &&PairsOfSetting| {
        setting.seeds.iter().any(|(_, ls, mhsa)| ls.max(*mhsa) >= LS_AT_MOST)
    };
    let large: Vec<&PairsOfSetting> = pairs.settings.iter().filter(is_large).collect();
    let not_smaller =
        |s: &&PairsOfSetting| s.interval(log_ratio).is_some_and(|i| i.is_at_least(alike));
    let word = if large.is_empty() {
        Word::NotYetMeasured
    } else if as_told == pairs.len() && pairs.every(log_ratio, |i| i.is_at_most(alike)) {
        Word::Confirmed
    } else if large.iter().all(not_smaller) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let (word, rate) = at_rates(&tuned, word);
    let ratio = |setting: &PairsOfSetting| {
        let interval = setting.interval(log_ratio).map(Interval::exp);
        times_or(interval, setting.mean(log_ratio).exp(), 2)
    };
    let headline = format!(
        "multi-head {}, LS-attention {}; ratio {}, {}",
        shown(pairs.theirs(), 3),
        shown(pairs.ours(), 3),
        overall_ratio(&pairs, &ratio),
        plural(pairs.seeds(), "seed")
    );
    let none_large = match large.is_empty() {
        true => format!(" No run reaches {LS_AT_MOST}: there is nothing to avoid."),
        false => String::new(),
    };
    let measured = format!(
        "Ratio of peak max |logit|: {}. Lower in {lower} of {}. {}.{rate}{none_large}",
        pairs.by_setting(ratio),
        plural(pairs.len(), "pair"),
        scale(&tuned.study)
    );
    Verdict::over(Claim::LogitsInTraining, [headline, measured], word, pairs.seeds_each())
}

/// The word on a comparison of `ls` with `mhsa`, and what to say of their learning rates.
fn at_rates(tuned: &Tuned, word: Word) -> (Word, &'static str) {
    let is_compared = |run: &TrainingRun| ["ls", "mhsa"].contains(&&*run.arm);
    (tuned.decided(word, is_compared), tuned.note(is_compared))
}

/// The ratio over all settings; of one setting, its own.
fn overall_ratio(pairs: &Pairs, of_setting: &dyn Fn(&PairsOfSetting) -> String) -> String {
    match (&pairs.settings[..], pairs.overall(log_ratio)) {
        ([one], _) => of_setting(one),
        (_, Some(overall)) => times(overall.exp(), 2),
        (settings, None) => {
            let ratios = settings.iter().map(|s| s.mean(log_ratio).exp());
            format!("{}×", from_to(ratios, 2))
        }
    }
}

/// Divergence, of runs of the paper's length and number of steps alone.
///
/// *Not measured*: no runs of 2,048 tokens or more and 20,000 steps asked for, of both arms.
fn divergence(study: &Trainings) -> Verdict {
    let long = |arm| {
        let long = |run: &&TrainingRun| {
            run.context.is_some_and(|n| n >= PAPER_CONTEXT)
                && run.steps.is_some_and(|steps| steps >= PAPER_STEPS)
        };
        let runs: Vec<&TrainingRun> = study.arm(arm).filter(long).collect();
        let diverged = runs.iter().filter(|run| run.outcome == "diverged").count();
        (runs.len(), diverged)
    };
    let ((mhsa, mhsa_diverged), (ls, ls_diverged)) = (long("mhsa"), long("ls"));
    if mhsa == 0 || ls == 0 {
        let lacking = "no runs at n ≥ 2,048 for 20,000 steps";
        let diverged = study.runs.iter().filter(|run| run.outcome == "diverged").count();
        let needs = format!(
            "Needs both variants at n ≥ 2,048 for 20,000 steps (analysis/paper-2048.toml, on a GPU). Of the {} here, \
             {diverged} diverged.",
            plural(study.runs.len(), "run")
        );
        return Verdict::lacking(Claim::Diverges, lacking, needs);
    }
    let [mhsa_share, ls_share] = [(mhsa_diverged, mhsa), (ls_diverged, ls)].map(share);
    let word = if mhsa_share.1 < HALF || ls_share.0 > HALF {
        Word::Refuted
    } else if mhsa_diverged == mhsa && ls_diverged == 0 {
        Word::Confirmed
    } else {
        Word::Qualified
    };
    let headline = format!(
        "diverged: {mhsa_diverged} of {} of mhsa, {ls_diverged} of {} of LS-attention",
        plural(mhsa, "run"),
        ls
    );
    let measured = format!(
        "Of multi-head attention {mhsa_diverged} of {} diverged, of LS-attention {ls_diverged} of {ls}. {}.",
        plural(mhsa, "run"),
        of_runs(&study.runs)
    );
    Verdict::new(Claim::Diverges, [headline, measured], word, mhsa.min(ls))
}

/// The 95 % interval of a share, of which `times` of `of` were seen: Clopper and Pearson's.
fn share((times, of): (usize, usize)) -> (f64, f64) {
    let (times, of) = (times as f64, of as f64);
    let quantile = |a: f64, b: f64, share: f64| Beta::new(a, b).map(|beta| beta.inverse_cdf(share));
    (
        quantile(times, of - times + 1.0, 0.025).unwrap_or(0.0),
        quantile(times + 1.0, of - times, 0.975).unwrap_or(1.0),
    )
}

/// Loss: `ls` against `mhsa` by the last validation loss, paired as for logits; intervals of the difference in nats.
///
/// *Not measured*: one of the arms is missing.
pub(super) fn no_worse(study: &Trainings) -> Verdict {
    let tuned = Tuned::of(study, &[]);
    let value = |run: &TrainingRun| run.valid_loss_nats;
    let Some(pairs) = Pairs::of(&tuned.study, ["ls", "mhsa"], value) else {
        return missing(Claim::NoWorse);
    };
    let no_worse = pairs.count(|ls, mhsa| ls <= mhsa + NO_WORSE_NATS);
    let all = no_worse == pairs.len();
    let word = if all && pairs.every(difference, |i| i.is_at_most(NO_WORSE_NATS)) {
        Word::Confirmed
    } else if pairs.every(difference, |i| i.is_at_least(NO_WORSE_NATS)) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let against_rope = against_rope(&tuned.study);
    let word = match against_rope {
        // With the better positions multi-head attention wins.
        Some(lost) if lost.is_at_least(NO_WORSE_NATS) && word == Word::Confirmed => Word::Qualified,
        _ => word,
    };
    let (word, rate) = at_rates(&tuned, word);
    let difference_of = |setting: &PairsOfSetting, unit: &str| match setting.interval(difference) {
        Some(interval) => apart(interval, 2, unit),
        None => all_apart(&[setting.mean(difference)], 2, unit),
    };
    let overall = match (&pairs.settings[..], pairs.overall(difference)) {
        ([one], _) => difference_of(one, " nats"),
        (_, Some(overall)) => apart(overall, 2, " nats"),
        (settings, None) => {
            let means: Vec<f64> = settings.iter().map(|s| s.mean(difference)).collect();
            all_apart(&means, 2, " nats")
        }
    };
    let rope = against_rope.map_or_else(String::new, |lost| {
        let word = if lost.mean < 0.0 { "lower" } else { "higher" };
        format!("; {} {word} than RoPE", significant(lost.mean.abs(), 2))
    });
    let headline = format!(
        "LS-attention {overall}{rope}{}, {}",
        if rate.is_empty() { "" } else { "; one learning rate" },
        plural(pairs.seeds(), "seed")
    );
    let beside = against_rope
        .map_or_else(String::new, |lost| format!(" Against RoPE {}.", apart(lost, 2, " nats")));
    let measured = format!(
        "Validation loss against multi-head attention's, nats: {}. No higher in {no_worse} of {}.{beside} {}.{rate}",
        pairs.by_setting(|setting| difference_of(setting, "")),
        plural(pairs.len(), "pair"),
        scale(&tuned.study)
    );
    Verdict::over(Claim::NoWorse, [headline, measured], word, pairs.seeds_each())
}

/// The loss of `ls` less that of multi-head attention with RoPE, seed by seed, of equal size, length and steps; none without
/// such runs.
fn against_rope(study: &Trainings) -> Option<Interval> {
    let size = |run: &TrainingRun| {
        (run.seed, run.context, run.steps, run.d_model, run.heads, run.corpus.clone())
    };
    let rope = |ls: &TrainingRun| {
        let mut all = study.arm("mhsa").filter(|run| run.positions == "rope");
        all.find(|run| size(run) == size(ls) && run.learning_rate == ls.learning_rate)
    };
    let losses =
        study.arm("ls").filter_map(|ls| Some(ls.valid_loss_nats? - rope(ls)?.valid_loss_nats?));
    Interval::of(losses)
}

fn missing(claim: Claim) -> Verdict {
    let needs = "Needs finished runs of ls and mhsa at one length and learning rate.";
    Verdict::lacking(claim, "no finished runs of both variants", needs)
}

fn shown(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or_else(String::new, |spread| spread.shown(digits))
}

/// The scale without the lengths, which stand with the numbers.
fn scale(study: &Trainings) -> String {
    let runs = study.arm("ls").chain(study.arm("mhsa")).cloned();
    let runs: Vec<TrainingRun> = runs.map(|run| TrainingRun { context: None, ..run }).collect();
    of_runs(&runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tuning::at_three_rates;

    fn run(arm: &str, seed: usize, peak: f64, loss: f64) -> TrainingRun {
        TrainingRun {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            seed,
            context: Some(512),
            learning_rate: Some(3e-3),
            parameters: Some(165_000),
            steps: Some(1500),
            outcome: "completed".to_owned(),
            peak_max_abs_logit: Some(peak),
            valid_loss_nats: Some(loss),
            ..TrainingRun::default()
        }
    }

    fn judged(seeds: usize, ls: (f64, f64), mhsa: (f64, f64)) -> Vec<Word> {
        let ls = (0..seeds).map(|seed| run("ls", seed, ls.0, ls.1));
        let mhsa = (0..seeds).map(|seed| run("mhsa", seed, mhsa.0, mhsa.1));
        let study = Trainings { runs: ls.chain(mhsa).collect(), failed: 0 };
        training(&at_three_rates(&study)).iter().map(|verdict| verdict.word).collect()
    }

    #[test]
    fn logits_and_losses_have_every_word() {
        use Word::{Confirmed, NotYetMeasured, Qualified, Refuted, SeenOnce};
        assert_eq!(judged(3, (12.0, 1.9), (220.0, 2.4)), [Confirmed, Confirmed]);
        assert_eq!(judged(3, (12.0, 1.9), (60.0, 2.4)), [Qualified, Confirmed]);
        assert_eq!(judged(1, (12.0, 1.9), (220.0, 2.4)), [SeenOnce, SeenOnce]);
        assert_eq!(judged(2, (12.0, 1.9), (220.0, 2.4)), [Qualified, Qualified]);
        // Where nothing is large there is nothing to avoid.
        assert_eq!(judged(3, (20.0, 1.9), (20.0, 2.4)), [NotYetMeasured, Confirmed]);
        assert_eq!(judged(2, (70.0, 2.6), (60.0, 2.4)), [Qualified, Qualified]);
        // Lower by a tenth is alike, by a third is not.
        assert_eq!(judged(3, (54.0, 1.9), (60.0, 2.4)), [Refuted, Confirmed]);
        assert_eq!(judged(3, (40.0, 1.9), (60.0, 2.4)), [Qualified, Confirmed]);
        assert_eq!(judged(3, (70.0, 2.6), (60.0, 2.4)), [Refuted, Refuted]);
        assert_eq!(judged(0, (0.0, 0.0), (0.0, 0.0)), [NotYetMeasured; 2]);
    }

    #[test]
    fn one_learning_rate_decides_nothing() {
        let of = |seed| [run("ls", seed, 12.0, 1.9), run("mhsa", seed, 220.0, 2.4)];
        let study = Trainings { runs: (0..3).flat_map(of).collect(), failed: 0 };
        let words: Vec<Word> = training(&study).iter().map(|verdict| verdict.word).collect();
        assert_eq!(words, [Word::Qualified; 2]);
    }

    #[test]
    fn stopped_runs_are_named_and_decide_nothing() {
        let long = |run: TrainingRun| TrainingRun { context: Some(2048), ..run };
        let ended =
            (0..3).flat_map(|seed| [run("ls", seed, 12.0, 1.9), run("mhsa", seed, 220.0, 2.4)]);
        let stopped = TrainingRun {
            outcome: "stopped".to_owned(),
            steps: Some(700),
            ..run("ls", 3, 300.0, 3.0)
        };
        let ended = Trainings { runs: ended.map(long).collect(), failed: 0 };
        let mut study = at_three_rates(&ended);
        study.runs.push(long(stopped));
        let verdicts = training(&study);
        let words: Vec<Word> = verdicts.iter().map(|verdict| verdict.word).collect();
        assert_eq!(words, [Word::Confirmed, Word::NotYetMeasured, Word::Confirmed]);
        assert!(verdicts.iter().all(|verdict| verdict.measured.contains("700")), "{verdicts:?}");
    }

    #[test]
    fn runs_are_compared_with_those_of_their_own_length() {
        let mut runs = Vec::new();
        for (context, ls, mhsa) in [(256, 20.0, 30.0), (1024, 40.0, 50.0)] {
            for seed in 0..3 {
                let pair = [run("ls", seed, ls, 1.9), run("mhsa", seed, mhsa, 2.4)];
                runs.extend(pair.map(|run| TrainingRun { context: Some(context), ..run }));
            }
        }
        let verdict = logits(&Trainings { runs: runs.clone(), failed: 0 });
        for number in ["6 of 6", "0.67", "0.80"] {
            assert!(verdict.measured.contains(number), "{}", verdict.measured);
        }
        runs.retain(|run| (run.arm == "ls") == (run.context == Some(256)));
        assert_eq!(logits(&Trainings { runs, failed: 0 }).word, Word::NotYetMeasured);
    }

    #[test]
    fn a_better_loss_with_rope_keeps_the_loss_from_being_confirmed() {
        let judged = |rope: f64| {
            let of = |seed| {
                let rotary = TrainingRun {
                    positions: "rope".to_owned(),
                    run: "mhsa-rotary".to_owned(),
                    ..run("mhsa", seed, 60.0, rope)
                };
                [run("ls", seed, 12.0, 1.9), run("mhsa", seed, 220.0, 2.4), rotary]
            };
            let study = Trainings { runs: (0..3).flat_map(of).collect(), failed: 0 };
            no_worse(&at_three_rates(&study)).word
        };
        assert_eq!(judged(1.8), Word::Qualified);
        assert_eq!(judged(2.0), Word::Confirmed);
    }

    #[test]
    fn divergence_needs_the_papers_length_and_steps() {
        let word = |mhsa: &[&str], ls: &str| {
            let long = |arm: &str, seed, outcome: &str| TrainingRun {
                context: Some(2048),
                steps: Some(40_000),
                outcome: outcome.to_owned(),
                ..run(arm, seed, 1.0, 1.0)
            };
            let runs = (0..mhsa.len())
                .flat_map(|seed| [long("mhsa", seed, mhsa[seed]), long("ls", seed, ls)])
                .collect();
            divergence(&Trainings { runs, failed: 0 }).word
        };
        assert_eq!(word(&["diverged"; 3], "completed"), Word::Confirmed);
        assert_eq!(word(&["diverged"; 2], "completed"), Word::Qualified, "two seeds");
        assert_eq!(word(&["completed"; 6], "completed"), Word::Refuted);
        assert_eq!(word(&["completed"; 3], "completed"), Word::Qualified, "may be up to 71 %");
        assert_eq!(word(&["diverged", "completed", "diverged"], "completed"), Word::Qualified);
        assert_eq!(word(&["diverged"; 6], "diverged"), Word::Refuted);
    }

    #[test]
    fn shares_have_clopper_and_pearson_s_interval() {
        // None of 3: 1 − 0.025^(1/3); 5 of 10: the table's 0.187 to 0.813.
        let (low, high) = share((0, 3));
        assert!(low == 0.0 && (high - (1.0 - 0.025f64.cbrt())).abs() < 1e-6, "{low} to {high}");
        let (low, high) = share((5, 10));
        assert!((low - 0.187).abs() < 1e-3 && (high - 0.813).abs() < 1e-3, "{low} to {high}");
        assert_eq!(share((4, 4)).1, 1.0);
    }

    #[test]
    fn seeds_that_disagree_decide_nothing() {
        let runs = |ls: [f64; 3]| {
            let pair =
                |seed: usize| [run("ls", seed, 20.0, ls[seed]), run("mhsa", seed, 60.0, 2.0)];
            at_three_rates(&Trainings { runs: (0..3).flat_map(pair).collect(), failed: 0 })
        };
        assert_eq!(no_worse(&runs([1.9, 1.91, 1.9])).word, Word::Confirmed);
        assert_eq!(no_worse(&runs([1.5, 2.0, 1.99])).word, Word::Qualified, "too far apart");
        assert_eq!(no_worse(&runs([2.2, 2.21, 2.2])).word, Word::Refuted);
        assert_eq!(no_worse(&runs([2.5, 2.02, 2.02])).word, Word::Qualified, "too far apart");
    }
}
