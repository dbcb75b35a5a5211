//! Verdicts on training: logits, divergence and loss of LS-attention against multi-head attention.

use statrs::distribution::{Beta, ContinuousCDF};

use super::claims::Claim;
use super::pairs::{Pairs, PairsOfSetting, difference, log_ratio};
use super::scale::of_runs;
use super::verdict::{Verdict, Word};
use crate::table::{Spread, TrainingRun, Trainings, plural, significant};

/// A validation loss this much above the other's, in nats, still counts as no worse: a hundredth of a nat is one per
/// cent of perplexity, and less than what seeds of one setting differ by.
pub(super) const NO_WORSE_NATS: f64 = 0.01;
/// Peaks within this factor of each other are alike. The paper tells of four times and more (200 against 50), of whose
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

/// The verdicts of a study of trainings, on those of its runs that ended; of the others it is told how far they came. Of
/// divergence shorter contexts than the paper's tell nothing.
pub(crate) fn training(study: &Trainings) -> Vec<Verdict> {
    let ended = study.ended();
    let long = study.runs.iter().any(|run| run.context.is_some_and(|n| n >= PAPER_CONTEXT));
    let mut verdicts = vec![logits(&ended)];
    verdicts.extend(long.then(|| divergence(&ended)));
    verdicts.push(no_worse(&ended));
    if let Some(so_far) = so_far(study) {
        for verdict in &mut verdicts {
            verdict.measured.push_str(&so_far);
        }
    }
    verdicts
}

/// What runs that were stopped have come to, in a sentence that follows others; none where there are none.
fn so_far(study: &Trainings) -> Option<String> {
    let one = |run: &TrainingRun| {
        let number =
            |value: Option<f64>, digits| value.map_or("?".to_owned(), |v| significant(v, digits));
        format!(
            "{} {} steps at n = {}, peak {} nats, validation loss {} nats",
            run.arm,
            run.steps.unwrap_or(0),
            run.context.unwrap_or(0),
            number(run.peak_max_abs_logit, 3),
            number(run.valid_loss_nats, 4)
        )
    };
    let runs: Vec<String> = study.runs.iter().filter(|run| run.is_so_far()).map(one).collect();
    (!runs.is_empty())
        .then(|| format!(" So far, none of them ended or diverged: {}.", runs.join("; ")))
}

/// Logits: `ls` against `mhsa` by the peak of max |logit| over the run, seed by seed at one setting. Intervals are
/// Student's over seeds, of the difference of the peaks' logarithms.
///
/// *Not yet measured*: one of the arms is missing, or lacks its logits; or neither comes to [`LS_AT_MOST`] at any setting,
/// so that there are no large logits that `ls` could avoid. A setting without such logits refutes nothing.
fn logits(study: &Trainings) -> Verdict {
    let value = |run: &TrainingRun| run.peak_max_abs_logit;
    let Some(pairs) = Pairs::of(study, ["ls", "mhsa"], value) else {
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
    let none_large = match large.is_empty() {
        true => format!(
            " No run comes to {LS_AT_MOST} nats: there are no large logits that ls could avoid."
        ),
        false => String::new(),
    };
    let measured = format!(
        "Peak max |logit| {} (ls) and {} (mhsa), {}; logarithm of ls's less mhsa's, seed by seed, {}: lower with ls in \
         {lower} of {} pairs. {}.{none_large}",
        shown(pairs.ours(), 3),
        shown(pairs.theirs(), 3),
        by_setting(&pairs, 3),
        pairs.shown(log_ratio, 2),
        pairs.len(),
        scale(study, pairs.seeds())
    );
    Verdict::over(Claim::LogitsInTraining, measured, word, pairs.seeds_each())
}

/// Divergence, told only by runs of the paper's length and long enough.
///
/// *Not yet measured*: no runs of 2,048 tokens or more and 20,000 steps asked for, of both arms.
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
        let needs = "No runs of both arms at n ≥ 2,048 for 20,000 steps: analysis/paper-2048.toml has them, for a GPU.";
        let measured = match study.runs.len() {
            0 => needs.to_owned(),
            all => {
                let diverged = study.runs.iter().filter(|run| run.outcome == "diverged").count();
                format!("{needs} Of the {} here, {diverged} diverged.", plural(all, "run"))
            }
        };
        return Verdict::new(Claim::Diverges, measured, Word::NotYetMeasured, 0);
    }
    let [mhsa_share, ls_share] = [(mhsa_diverged, mhsa), (ls_diverged, ls)].map(share);
    let word = if mhsa_share.1 < HALF || ls_share.0 > HALF {
        Word::Refuted
    } else if mhsa_diverged == mhsa && ls_diverged == 0 {
        Word::Confirmed
    } else {
        Word::Qualified
    };
    let measured = format!(
        "Diverged: {mhsa_diverged} of {} of mhsa, {ls_diverged} of {} of ls. {}.",
        plural(mhsa, "run"),
        plural(ls, "run"),
        of_runs(&study.runs)
    );
    Verdict::new(Claim::Diverges, measured, word, mhsa.min(ls))
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
/// *Not yet measured*: one of the arms is missing.
pub(super) fn no_worse(study: &Trainings) -> Verdict {
    let value = |run: &TrainingRun| run.valid_loss_nats;
    let Some(pairs) = Pairs::of(study, ["ls", "mhsa"], value) else {
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
    let measured = format!(
        "Validation loss {} nats (ls) and {} nats (mhsa), {}; ls's less mhsa's, seed by seed, {}: no worse with ls in \
         {no_worse} of {} pairs. {}.",
        shown(pairs.ours(), 4),
        shown(pairs.theirs(), 4),
        by_setting(&pairs, 3),
        pairs.shown(difference, 2),
        pairs.len(),
        scale(study, pairs.seeds())
    );
    Verdict::over(Claim::NoWorse, measured, word, pairs.seeds_each())
}

fn missing(claim: Claim) -> Verdict {
    let why = "Needs finished runs of both arms, ls and mhsa, at one length and learning rate.";
    Verdict::new(claim, why.to_owned(), Word::NotYetMeasured, 0)
}

fn shown(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or_else(String::new, |spread| spread.shown(digits))
}

/// The medians of both arms at each setting.
fn by_setting(pairs: &Pairs, digits: usize) -> String {
    let one = |setting: &PairsOfSetting| {
        let [ours, theirs] = [|p: &(usize, f64, f64)| p.1, |p: &(usize, f64, f64)| p.2]
            .map(|value| Spread::of(setting.seeds.iter().map(value)).map(|s| s.median));
        let [ours, theirs] = [ours?, theirs?].map(|v| significant(v, digits));
        Some(format!("{ours} and {theirs} at n = {}", setting.context?))
    };
    pairs.settings.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

fn scale(study: &Trainings, seeds: usize) -> String {
    let arms = study.arm("ls").chain(study.arm("mhsa"));
    format!("{} a setting, 95 % intervals, {}", plural(seeds, "seed"), of_runs(arms))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        training(&study).iter().map(|verdict| verdict.word).collect()
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
    fn runs_that_were_stopped_are_told_of_and_decide_nothing() {
        let long = |run: TrainingRun| TrainingRun { context: Some(2048), ..run };
        let ended =
            (0..3).flat_map(|seed| [run("ls", seed, 12.0, 1.9), run("mhsa", seed, 220.0, 2.4)]);
        let stopped = TrainingRun {
            outcome: "stopped".to_owned(),
            steps: Some(700),
            ..run("ls", 3, 300.0, 3.0)
        };
        let runs = ended.chain([stopped]).map(long).collect();
        let verdicts = training(&Trainings { runs, failed: 0 });
        let words: Vec<Word> = verdicts.iter().map(|verdict| verdict.word).collect();
        assert_eq!(words, [Word::Confirmed, Word::NotYetMeasured, Word::Confirmed]);
        for verdict in verdicts {
            let told = "ls 700 steps at n = 2048, peak 300 nats, validation loss 3.000 nats.";
            assert!(verdict.measured.ends_with(told), "{}", verdict.measured);
        }
    }

    #[test]
    fn runs_are_held_against_those_of_their_own_length() {
        let mut runs = Vec::new();
        for (context, ls, mhsa) in [(256, 20.0, 30.0), (1024, 40.0, 50.0)] {
            for seed in 0..3 {
                let pair = [run("ls", seed, ls, 1.9), run("mhsa", seed, mhsa, 2.4)];
                runs.extend(pair.map(|run| TrainingRun { context: Some(context), ..run }));
            }
        }
        let verdict = logits(&Trainings { runs: runs.clone(), failed: 0 });
        assert!(verdict.measured.contains("lower with ls in 6 of 6 pairs"), "{}", verdict.measured);
        assert!(verdict.measured.contains("20.0 and 30.0 at n = 256"), "{}", verdict.measured);
        runs.retain(|run| (run.arm == "ls") == (run.context == Some(256)));
        assert_eq!(logits(&Trainings { runs, failed: 0 }).word, Word::NotYetMeasured);
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
            Trainings { runs: (0..3).flat_map(pair).collect(), failed: 0 }
        };
        assert_eq!(no_worse(&runs([1.9, 1.91, 1.9])).word, Word::Confirmed);
        assert_eq!(no_worse(&runs([1.5, 2.0, 1.99])).word, Word::Qualified, "too far apart");
        assert_eq!(no_worse(&runs([2.2, 2.21, 2.2])).word, Word::Refuted);
        assert_eq!(no_worse(&runs([2.5, 2.02, 2.02])).word, Word::Qualified, "too far apart");
    }
}
