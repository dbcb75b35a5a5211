//! Verdicts on training that compare LS-attention with multi-head attention: logits, divergence and loss.

use statrs::distribution::{Beta, ContinuousCDF};

use super::{scale_of_runs, size_of_runs};
use crate::claims::estimate::shown;
use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::from_to;
use crate::claims::{Claim, Group, Verdict};
use crate::experiments::training::claims::pairs::{Pairs, PairsOfSetting, difference, log_ratio};
use crate::experiments::training::claims::tuning::Tuned;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::{Estimate, plural};

/// A validation loss that is higher by at most this, in nats, still counts as no higher. 0.01 nats are 1 % of
/// perplexity, and less than the differences between seeds of one setting.
pub(crate) const NO_WORSE_NATS: f64 = 0.01;
/// Peaks with a ratio up to this count as equal. The paper reports a ratio of four or more (200 to 50); the logarithm
/// of this one is a sixth of that.
pub(crate) const LOGITS_ALIKE: f64 = 1.25;
/// The paper's bound on LS-attention's logits, and the smallest value that it reports for multi-head attention.
const LS_AT_MOST: f64 = 50.0;
const MHSA_AT_LEAST: f64 = 200.0;
/// The paper's context length and number of steps for divergence.
const PAPER_CONTEXT: usize = 2048;
const PAPER_STEPS: usize = 20_000;

const LACKING: [&str; 2] = [
    "no finished runs of both variants",
    "Needs finished runs of ls and mhsa at one length and learning rate.",
];

/// The claims that [`verdicts`] decides, and those on the same subject for which no study has rows.
pub(crate) const CLAIMS: &[Claim] =
    &[LOGITS_IN_TRAINING, DIVERGES, NO_WORSE, STEPS_TO_CONVERGE, GLOBAL_HEAD, WINDOW_RULE];

pub(crate) const LOGITS_IN_TRAINING: Claim = Claim {
    id: "LogitsInTraining",
    text: "In training, max |logit| grows to 200–400 with multi-head attention and stays below \
            50 with LS-attention",
    group: Group::Training,
    place: "Figure 1",
    paper_says: Some("200–400 against < 50"),
    rule: [
        "Every run of ls peaks below {0} and every run of mhsa at {1} or more; at every setting the \
            whole interval of the ratio lies below 1/{2}.",
        "At every setting in which ls or mhsa reaches {0}, the whole interval of the ratio lies \
            above 1/{2}.",
    ],
    bounds: &[LS_AT_MOST, MHSA_AT_LEAST, LOGITS_ALIKE],
    needs_tuning: true,
    lacking: LACKING,
    ..Claim::PLAIN
};

pub(crate) const DIVERGES: Claim = Claim {
    id: "Diverges",
    text: "Multi-head attention at n = 2,048 diverges after 20–30 thousand steps; LS-attention \
            does not",
    group: Group::Training,
    place: "Figure 1",
    paper_says: Some("divergence after 20–30 thousand steps"),
    rule: [
        "Every run of mhsa diverges and no run of ls, at n ≥ {0} and {1} steps or more.",
        "The whole Clopper–Pearson interval of the share of diverged runs lies below one half for \
            mhsa, or above it for ls.",
    ],
    bounds: &[PAPER_CONTEXT as f64, PAPER_STEPS as f64],
    ..Claim::PLAIN
};

pub(crate) const NO_WORSE: Claim = Claim {
    id: "NoWorse",
    text: "LS-attention's loss is no higher than multi-head attention's",
    group: Group::Training,
    place: "abstract",
    rule: [
        "In every pair of runs, and by every whole interval, the loss of ls is at most {0} nats \
            above mhsa's, and multi-head attention with RoPE is not better by more.",
        "At every setting the whole interval lies above {0} nats.",
    ],
    bounds: &[NO_WORSE_NATS],
    needs_tuning: true,
    lacking: LACKING,
    ..Claim::PLAIN
};

const STEPS_TO_CONVERGE: Claim = Claim {
    id: "StepsToConverge",
    text: "LS-attention converges in fewer steps than multi-head attention",
    group: Group::Training,
    place: "text",
    not_measured: [
        "no run was trained until its loss stopped falling",
        "Not measured as claimed: runs end after a fixed number of steps. lm-best-rate has \
            the validation loss over steps.",
    ],
    rule: [
        "No rule yet: it needs runs that end when their loss stops falling, and fewer steps of ls in \
            all of them.",
        "No rule yet: such runs, and no fewer steps of ls in any of them.",
    ],
    ..Claim::PLAIN
};

const GLOBAL_HEAD: Claim = Claim {
    id: "GlobalHead",
    text: "Without the global head, validation perplexity rises from 36 to 42",
    group: Group::Training,
    place: "ablation",
    paper_says: Some("perplexity 36 → 42"),
    not_measured: [
        "no tuned run without global heads",
        "Not measured as claimed: no committed study compares ls with local-only heads at tuned rates.",
    ],
    rule: [
        "No rule yet: it needs both at tuned rates, on text that needs far context, and the paper's 42/36.",
        "No rule yet: such runs, and a perplexity that does not rise.",
    ],
    ..Claim::PLAIN
};

const WINDOW_RULE: Claim = Claim {
    id: "WindowRule",
    text: "A local window far shorter than the sequence is enough",
    group: Group::Training,
    place: "text",
    paper_says: Some("window 50 at n = 2,048"),
    not_measured: [
        "no comparison of windows at n = 2,048",
        "Not measured as claimed: no committed study compares windows at n = 2,048.",
    ],
    rule: [
        "No rule yet: it needs several windows at n = 2,048 with every other setting equal.",
        "No rule yet: such runs, in which a wide window has the lower loss.",
    ],
    ..Claim::PLAIN
};

/// The verdicts of a study of training runs, from the runs that ended; each says how many were stopped. Contexts shorter
/// than the paper's give no verdict on divergence.
pub(crate) fn verdicts(study: &Trainings) -> Vec<Verdict> {
    let ended = study.ended();
    let long = study.runs.iter().any(|run| run.of.context >= PAPER_CONTEXT);
    let mut verdicts = vec![logits(&ended)];
    verdicts.extend(long.then(|| divergence(study)));
    verdicts.push(no_worse(&ended));
    let stopped = study.runs.len() - ended.runs.len();
    if stopped > 0 {
        let left_out = format!(" Stopped early and left out: {}.", plural(stopped, "run"));
        verdicts.iter_mut().for_each(|verdict| verdict.measured.push_str(&left_out));
    }
    verdicts
}

/// Logits: compares the peak max |logit| of `ls` with that of `mhsa`, seed by seed in each setting. Intervals are
/// Student's over seeds, of the difference of the logarithms of the peaks.
///
/// *Not measured*: a variant is missing or lacks its logits. Or neither reaches [`LS_AT_MOST`] in any setting, so that
/// there are no large logits for `ls` to avoid. A setting without such logits refutes nothing.
fn logits(study: &Trainings) -> Verdict {
    let tuned = Tuned::of_arms(study, &["ls", "mhsa"]);
    let Some(pairs) = Pairs::of_arms(&tuned.study, ["ls", "mhsa"], TrainingRun::peak) else {
        return Verdict::lacking(LOGITS_IN_TRAINING);
    };
    let as_in_paper = pairs.count(|ls, mhsa| ls < LS_AT_MOST && mhsa >= MHSA_AT_LEAST);
    let is_smaller = |ratio: Estimate| ratio.at_most(-LOGITS_ALIKE.ln());
    let is_large = |setting: &&PairsOfSetting| {
        setting.seeds.iter().any(|(_, ls, mhsa)| ls.max(*mhsa) >= LS_AT_MOST)
    };
    let large = || pairs.settings.iter().filter(is_large);
    let in_large = Ruling::every(large().map(|setting| is_smaller(setting.estimate(log_ratio))));
    let is_everywhere =
        as_in_paper == pairs.len() && pairs.every(log_ratio, is_smaller) == Ruling::Holds;
    let ruling = in_large
        .undecided_if_holds(!is_everywhere)
        .hidden_if(large().next().is_none())
        .undecided_if(!tuned.is_tuned);
    let ratio = |setting: &PairsOfSetting| setting.estimate(log_ratio).exp().times(2);
    let means = pairs.estimates(log_ratio).map(|one| one.value.exp());
    let overall = match pairs.overall(log_ratio) {
        Some(overall) => overall.exp().times(2),
        None => format!("{}×", from_to(means, 2)),
    };
    let headline = format!(
        "multi-head {}, LS-attention {}; ratio {overall}",
        shown(Estimate::median(pairs.all().map(|pair| pair.1)), 3),
        shown(Estimate::median(pairs.all().map(|pair| pair.0)), 3),
    );
    let none_large = match large().next() {
        None => format!("No run reaches {LS_AT_MOST}: there is nothing to avoid"),
        Some(_) => String::new(),
    };
    let sentences = [
        format!("Ratio of peak max |logit|: {}", pairs.by_setting(ratio)),
        format!(
            "Lower in {} of {}",
            pairs.count(|ls, mhsa| ls < mhsa),
            plural(pairs.len(), "pair")
        ),
        scale(&tuned.study),
        tuned.note().to_owned(),
        none_large,
    ];
    Verdict::new(
        LOGITS_IN_TRAINING,
        ruling,
        pairs.seeds().called("paired seed"),
        headline,
        sentences,
    )
}

/// Divergence of ended runs with the paper's length.
///
/// *Not measured*: a variant has no such run. Or one has none with the paper's number of steps: divergence would come
/// after their end.
fn divergence(study: &Trainings) -> Verdict {
    let of_arms = |steps: usize| {
        let is_long = move |run: &&TrainingRun| {
            !run.is_so_far() && run.of.context >= PAPER_CONTEXT && run.of.steps >= steps
        };
        ["mhsa", "ls"].map(|arm| study.arm(arm).filter(is_long).collect::<Vec<_>>())
    };
    let lacks_one = |runs: &[Vec<&TrainingRun>; 2]| runs.iter().any(Vec::is_empty);
    let is_short = lacks_one(&of_arms(PAPER_STEPS));
    let runs = of_arms(if is_short { 0 } else { PAPER_STEPS });
    if lacks_one(&runs) {
        let needs = "Needs both variants at n ≥ 2,048 for 20,000 steps.".to_owned();
        return Verdict::unmeasured(DIVERGES, "no runs of both at n ≥ 2,048", needs);
    }
    let [mhsa, ls] = runs.each_ref().map(|runs| {
        (runs.iter().filter(|run| run.found.outcome == "diverged").count(), runs.len())
    });
    // "Diverges" is not true of a model if fewer than half of its runs do.
    let is_refuted = [share(mhsa).at_least(0.5), share(ls).at_most(0.5)].contains(&Ruling::Fails);
    let ruling = Ruling::of_rule(mhsa.0 == mhsa.1 && ls.0 == 0, is_refuted).hidden_if(is_short);
    let counts =
        format!("multi-head attention {} of {}, LS-attention {} of {}", mhsa.0, mhsa.1, ls.0, ls.1);
    let all = || runs.iter().flatten().copied();
    let steps = all().map(|run| run.of.steps).max().unwrap_or(0);
    let tokens = all().map(|run| (run.of.steps * run.of.batch * run.of.context) as f64 / 1e6);
    let sentences = [
        format!("Runs that diverged: {counts}"),
        scale_of_runs(all()),
        format!("{} M tokens a run", from_to(tokens, 2)),
        match is_short {
            true => "Too few steps to see what the paper reports after 20,000".to_owned(),
            false => String::new(),
        },
    ];
    let seeds = Seeds::all(mhsa.1.min(ls.1)).called("run");
    let headline = format!("diverged in {steps} steps: {counts}");
    Verdict::new(DIVERGES, ruling, seeds, headline, sentences)
}

/// The share `times` / `of` with its 95 % interval by Clopper and Pearson.
fn share((times, of): (usize, usize)) -> Estimate {
    let (times, of) = (times as f64, of as f64);
    let quantile = |a: f64, b: f64, share: f64| Beta::new(a, b).map(|beta| beta.inverse_cdf(share));
    let ends = [
        quantile(times, of - times + 1.0, 0.025).unwrap_or(0.0),
        quantile(times + 1.0, of - times, 0.975).unwrap_or(1.0),
    ];
    Estimate::range(times / of, ends)
}

/// Loss: compares the last validation loss of `ls` with that of `mhsa`, paired as for logits; intervals are in nats.
///
/// *Not measured*: a variant is missing.
pub(crate) fn no_worse(study: &Trainings) -> Verdict {
    let tuned = Tuned::of_arms(study, &["ls", "mhsa"]);
    let Some(pairs) = Pairs::of_arms(&tuned.study, ["ls", "mhsa"], TrainingRun::loss) else {
        return Verdict::lacking(NO_WORSE);
    };
    let no_worse = pairs.count(|ls, mhsa| ls <= mhsa + NO_WORSE_NATS);
    let against_rope = against_rope(&tuned.study);
    // With RoPE, the better positional encoding, multi-head attention has the lower loss.
    let loses_to_rope =
        against_rope.is_some_and(|lost| lost.at_most(NO_WORSE_NATS) == Ruling::Fails);
    let ruling = pairs
        .every(difference, |lost| lost.at_most(NO_WORSE_NATS))
        .undecided_if_holds(no_worse < pairs.len() || loses_to_rope)
        .undecided_if(!tuned.is_tuned);
    let overall = match pairs.overall(difference) {
        Some(overall) => overall.apart(2, " nats"),
        None => all_apart(pairs.estimates(difference).map(|one| one.value)),
    };
    let rope = against_rope.map_or_else(String::new, |lost| {
        format!("; {} than RoPE", lost.without_ends().apart(2, ""))
    });
    let one_rate = if tuned.is_tuned { "" } else { "; one learning rate" };
    let by_setting = pairs.by_setting(|setting| setting.estimate(difference).shown(2));
    let sentences = [
        format!("Validation loss minus multi-head attention's, nats: {by_setting}"),
        against_rope
            .map_or_else(String::new, |lost| format!("Against RoPE {}", lost.apart(2, " nats"))),
        scale(&tuned.study),
        tuned.note().to_owned(),
    ];
    let headline = format!("LS-attention {overall}{rope}{one_rate}");
    Verdict::new(NO_WORSE, ruling, pairs.seeds(), headline, sentences)
}

/// Formats differences: `0.011–0.044 nats lower` if all have one sign, else `-0.02 to 0.01 nats`.
fn all_apart(differences: impl Iterator<Item = f64> + Clone) -> String {
    let sizes = from_to(differences.clone().map(f64::abs), 2);
    if differences.clone().all(|value| value < 0.0) {
        format!("{sizes} nats lower")
    } else if differences.clone().all(|value| value >= 0.0) {
        format!("{sizes} nats higher")
    } else {
        format!("{} nats", from_to(differences, 2))
    }
}

/// The loss of `ls` with learned positions minus that of multi-head attention with RoPE, seed by seed, at equal size,
/// length and steps. Returns `None` with fewer than two pairs.
fn against_rope(study: &Trainings) -> Option<Estimate> {
    let is_pair = |ls: &TrainingRun, rope: &TrainingRun| {
        let size = |run: &TrainingRun| (run.setting(), run.of.model.d_model, run.of.model.heads);
        (ls.arm(), &*ls.of.model.positions) == ("ls", "learned")
            && (rope.arm(), &*rope.of.model.positions) == ("mhsa", "rope")
            && size(ls) == size(rope)
            && (&ls.of.corpus, ls.learning_rate()) == (&rope.of.corpus, rope.learning_rate())
    };
    let pairs = Pairs::matching(study, is_pair, TrainingRun::loss)?;
    Estimate::mean(pairs.all().map(|(ls, rope)| ls - rope)).filter(|lost| lost.ends().is_some())
}

/// The scale without the lengths, which are given with the numbers.
fn scale(study: &Trainings) -> String {
    size_of_runs(study.runs.iter().filter(|run| ["ls", "mhsa"].contains(&run.arm())))
}

#[cfg(test)]
mod tests;
