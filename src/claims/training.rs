//! Verdicts on training: logits, divergence and loss of LS-attention against multi-head attention.

use statrs::distribution::{Beta, ContinuousCDF};

use super::claim::{Claim, Group, Origin, Rule};
use super::pairs::{Pairs, PairsOfSetting, difference, log_ratio};
use super::phrases::{all_apart, apart, from_to, times, times_or};
use super::scale::{listed, of_runs};
use super::tuning::{Tuned, tuned};
use super::verdict::{Verdict, VerdictStatus};
use crate::table::{Interval, Spread, TrainingRun, Trainings, arm_name, plural, significant};

pub(super) const LOGITS_IN_TRAINING: Claim = Claim {
    id: "LogitsInTraining",
    text: "In training, max |logit| grows to 200–400 with multi-head attention and stays below \
            50 with LS-attention",
    group: Group::Training,
    origin: Origin::Paper,
    place: "Figure 1",
    paper_says: Some("200–400 against < 50"),
    rule: || Rule {
        confirmed: tuned(format!(
            "Every run of ls peaks below {LS_AT_MOST} and every run of mhsa at {MHSA_AT_LEAST} or \
            more; at every setting the whole interval of the ratio lies below 1/{LOGITS_ALIKE}."
        )),
        refuted: tuned(format!(
            "At every setting in which ls or mhsa reaches {LS_AT_MOST}, the whole interval of the \
            ratio lies above 1/{LOGITS_ALIKE}."
        )),
    },
    ..Claim::PLAIN
};

pub(super) const DIVERGES: Claim = Claim {
    id: "Diverges",
    text: "Multi-head attention at n = 2,048 diverges after 20–30 thousand steps; LS-attention \
            does not",
    group: Group::Training,
    origin: Origin::Paper,
    place: "Figure 1",
    paper_says: Some("divergence after 20–30 thousand steps"),
    rule: || Rule {
        confirmed: format!(
            "Every run of mhsa diverges and no run of ls, at n ≥ {PAPER_CONTEXT} and \
            {PAPER_STEPS} steps or more."
        ),
        refuted:
            "The whole Clopper–Pearson interval of the share of diverged runs lies below one half \
            for mhsa, or above it for ls."
                .to_owned(),
    },
    ..Claim::PLAIN
};

pub(super) const NO_WORSE: Claim = Claim {
    id: "NoWorse",
    text: "LS-attention's loss is no higher than multi-head attention's",
    group: Group::Training,
    origin: Origin::Paper,
    place: "abstract",
    rule: || Rule {
        confirmed: tuned(format!(
            "In every pair of runs, and by every whole interval, the loss of ls is at most \
            {NO_WORSE_NATS} nats above mhsa's, and multi-head attention with RoPE is not better \
            by more."
        )),
        refuted: tuned(format!(
            "At every setting the whole interval lies above {NO_WORSE_NATS} nats."
        )),
    },
    ..Claim::PLAIN
};

/// A validation loss this much above the other's, in nats, still counts as no higher: a hundredth of a nat is one per
/// cent of perplexity, and less than seeds of one setting differ by.
pub(super) const NO_WORSE_NATS: f64 = 0.01;
/// Peaks within this factor of each other are alike. The paper reports four times and more (200 against 50), of whose
/// logarithm this is a sixth.
pub(super) const LOGITS_ALIKE: f64 = 1.25;
/// The paper's bound on LS-attention's logits, and the least that it reports of multi-head attention.
const LS_AT_MOST: f64 = 50.0;
const MHSA_AT_LEAST: f64 = 200.0;
/// The paper's length of context and steps for divergence.
const PAPER_CONTEXT: usize = 2048;
const PAPER_STEPS: usize = 20_000;
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
    let value = if claim == LOGITS_IN_TRAINING {
        format!("peaks {}", all(&|run| number(run.peak_max_abs_logit, 3)))
    } else if claim == NO_WORSE {
        format!("losses {}", all(&|run| number(run.valid_loss_nats, 4)))
    } else {
        "none diverged".to_owned()
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
        return missing(LOGITS_IN_TRAINING);
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
    let status = if large.is_empty() {
        VerdictStatus::NotMeasured
    } else if as_told == pairs.len() && pairs.every(log_ratio, |i| i.is_at_most(alike)) {
        VerdictStatus::Confirmed
    } else if large.iter().all(not_smaller) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let (status, rate) = at_rates(&tuned, status);
    let ratio = |setting: &PairsOfSetting| {
        let interval = setting.interval(log_ratio).map(Interval::exp);
        times_or(interval, setting.mean(log_ratio).exp(), 2)
    };
    let headline = format!(
        "multi-head {}, LS-attention {}; ratio {}, {}",
        shown(pairs.theirs(), 3),
        shown(pairs.ours(), 3),
        overall_ratio(&pairs, &ratio),
        plural(pairs.seeds(), "paired seed")
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
    Verdict::over(LOGITS_IN_TRAINING, [headline, measured], status, pairs.seeds_each())
}

/// The status on a comparison of `ls` with `mhsa`, and what to say of their learning rates.
fn at_rates(tuned: &Tuned, status: VerdictStatus) -> (VerdictStatus, &'static str) {
    let is_compared = |run: &TrainingRun| ["ls", "mhsa"].contains(&&*run.arm);
    (tuned.decided(status, is_compared), tuned.note(is_compared))
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
        return Verdict::lacking(DIVERGES, lacking, needs);
    }
    let [mhsa_share, ls_share] = [(mhsa_diverged, mhsa), (ls_diverged, ls)].map(share);
    let status = if mhsa_share.1 < HALF || ls_share.0 > HALF {
        VerdictStatus::Refuted
    } else if mhsa_diverged == mhsa && ls_diverged == 0 {
        VerdictStatus::Confirmed
    } else {
        VerdictStatus::Qualified
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
    Verdict::new(DIVERGES, [headline, measured], status, mhsa.min(ls))
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
        return missing(NO_WORSE);
    };
    let no_worse = pairs.count(|ls, mhsa| ls <= mhsa + NO_WORSE_NATS);
    let all = no_worse == pairs.len();
    let status = if all && pairs.every(difference, |i| i.is_at_most(NO_WORSE_NATS)) {
        VerdictStatus::Confirmed
    } else if pairs.every(difference, |i| i.is_at_least(NO_WORSE_NATS)) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let against_rope = against_rope(&tuned.study);
    let status = match against_rope {
        // With the better positions multi-head attention wins.
        Some(lost) if lost.is_at_least(NO_WORSE_NATS) && status == VerdictStatus::Confirmed => {
            VerdictStatus::Qualified
        }
        _ => status,
    };
    let (status, rate) = at_rates(&tuned, status);
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
    Verdict::over(NO_WORSE, [headline, measured], status, pairs.seeds_each())
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
#[path = "training_tests.rs"]
mod tests;
