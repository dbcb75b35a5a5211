//! Verdicts on variants side by side: the global head, and tasks from local to long-range.

use super::claim::{Claim, Group, Origin, Rule};
use super::pairs::{Pairs, PairsOfSetting, difference};
use super::phrases::times;
use super::scale::of_runs;
use super::stabilisers::stabilisers;
use super::training;
use super::training::{NO_WORSE_NATS, no_worse};
use super::tuning::{Tuned, tuned};
use super::verdict::{Verdict, VerdictStatus};
use crate::table::{Interval, Spread, TrainingRun, Trainings, plural, significant};

pub(super) const GLOBAL_HEAD: Claim = Claim {
    id: "GlobalHead",
    text: "Without the global head, validation perplexity rises from 36 to 42",
    group: Group::Training,
    origin: Origin::Paper,
    place: "ablation",
    paper_says: Some("perplexity 36 → 42"),
    rule: || Rule {
        confirmed: tuned(format!(
            "Without the global head perplexity is {WITHOUT_GLOBAL} times or more (the paper's \
            42/36) in the mean, higher in every run, and the whole interval lies above \
            {PERPLEXITIES_ALIKE}."
        )),
        refuted: tuned(format!(
            "The whole interval lies below {0}, while some variant with global heads is better \
            than local-only by more than {0} times: far context helps in this setting.",
            PERPLEXITIES_ALIKE
        )),
    },
    ..Claim::PLAIN
};

pub(super) const LONG_RANGE_LIMIT: Claim = Claim {
    id: "LongRangeLimit",
    text: "On long-range tasks, local heads cost accuracy",
    group: Group::Training,
    origin: Origin::Paper,
    place: "limitations",
    rule: || Rule {
        confirmed: tuned(format!(
            "At the largest share of look-ups ls and local-only are both worse than mhsa in every \
            pair, by more than {} nats with the whole interval.",
            training::NO_WORSE_NATS
        )),
        refuted: tuned(format!(
            "No run is worse by more than {} nats, and no interval reaches above that.",
            training::NO_WORSE_NATS
        )),
    },
    ..Claim::PLAIN
};

/// 42/36, the paper's: perplexity without the global head over that with it.
const WITHOUT_GLOBAL: f64 = 1.17;
/// Perplexities within this ratio of each other are alike: less than a fifth of the effect that the paper reports.
const PERPLEXITIES_ALIKE: f64 = 1.03;

/// The verdicts of a study of variants.
pub(crate) fn arms(study: &Trainings) -> Vec<Verdict> {
    let mut verdicts = vec![no_worse(study)];
    verdicts.extend(stabilisers(study));
    verdicts.push(global_head(study));
    verdicts
}

fn missing(claim: Claim) -> Verdict {
    let needs = "Needs finished runs of ls, mhsa and local-only with the same seeds.";
    Verdict::lacking(claim, "no finished runs of every variant", needs)
}

/// `local-only` against `ls`, by the ratio of perplexities: e to the difference in loss, seed by seed, with Student's
/// interval over seeds.
///
/// *Not measured*: one of the two is missing; or no variant with a global head has a perplexity lower than `local-only`'s
/// by more than [`PERPLEXITIES_ALIKE`], so that nothing shows a need of context beyond the windows.
fn global_head(study: &Trainings) -> Verdict {
    let tuned = Tuned::of(study, &[]);
    let pairs = Pairs::of(&tuned.study, ["local-only", "ls"], |run| run.valid_loss_nats);
    let Some(pairs) = pairs else { return missing(GLOBAL_HEAD) };
    let ratios: Vec<Option<Interval>> =
        pairs.settings.iter().map(|s| s.interval(difference).map(Interval::exp)).collect();
    let every =
        |holds: &dyn Fn(&Interval) -> bool| ratios.iter().all(|r| r.as_ref().is_some_and(holds));
    let worse = pairs.count(|without, with| without > with);
    let gain = gain_of_far_context(&tuned.study);
    let needs_far = gain.is_some_and(|gain| gain > PERPLEXITIES_ALIKE);
    let status = if !needs_far {
        VerdictStatus::NotMeasured
    } else if every(&|ratio| ratio.is_at_most(PERPLEXITIES_ALIKE)) {
        VerdictStatus::Refuted
    } else if worse == pairs.len()
        && every(&|r| r.mean >= WITHOUT_GLOBAL && r.is_at_least(PERPLEXITIES_ALIKE))
    {
        VerdictStatus::Confirmed
    } else {
        VerdictStatus::Qualified
    };
    let is_compared = |run: &TrainingRun| ["ls", "local-only"].contains(&&*run.arm);
    let status = tuned.decided(status, is_compared);
    let perplexity = |spread: Option<Spread>| {
        spread.map_or_else(String::new, |spread| significant(spread.median.exp(), 3))
    };
    let ratio = |setting: &PairsOfSetting| match setting.interval(difference) {
        Some(interval) => times(interval.exp(), 3),
        None => format!("{}×", significant(setting.mean(difference).exp(), 3)),
    };
    let each: Vec<String> = pairs.settings.iter().map(ratio).collect();
    let need = match needs_far {
        true => "",
        false => "; nothing here needs far context",
    };
    let headline = format!(
        "perplexity {} without a global head{need}, {}",
        each.join(", "),
        plural(pairs.seeds(), "seed")
    );
    let best = gain.filter(|_| !needs_far).map_or_else(String::new, |gain| {
        format!(
            " The best variant with global heads is only {} times better than local-only.",
            significant(gain, 3)
        )
    });
    let measured = format!(
        "Perplexity {} with one global head per layer; without: {} ({}). {}.{}{best}",
        perplexity(pairs.theirs()),
        perplexity(pairs.ours()),
        each.join(", "),
        of_runs(study.arm("ls").chain(study.arm("local-only"))),
        tuned.note(is_compared)
    );
    Verdict::over(GLOBAL_HEAD, [headline, measured], status, pairs.seeds_each())
}

/// The perplexity of `local-only` over the lowest one of a variant with global heads, of medians over the seeds of a run;
/// the greatest over settings.
fn gain_of_far_context(study: &Trainings) -> Option<f64> {
    let median = |runs: &[TrainingRun]| {
        Some(Spread::of(runs.iter().filter_map(|run| run.valid_loss_nats))?.median)
    };
    let locals = study.by_run().filter(|runs| runs[0].arm == "local-only");
    let gains = locals.filter_map(|local| {
        let is_alike = |run: &TrainingRun| {
            let first = &local[0];
            (run.context, run.steps, run.recall) == (first.context, first.steps, first.recall)
                && run.corpus == first.corpus
        };
        let others =
            study.by_run().filter(|runs| runs[0].arm != "local-only" && is_alike(&runs[0]));
        let best = others.filter_map(median).reduce(f64::min)?;
        Some((median(local)? - best).exp())
    });
    gains.reduce(f64::max)
}

/// How far the loss may exceed the entropy on look-ups where they are learned; and how much lower the loss of a variant that
/// learned them is than that of one that did not.
const LEARNED_NATS: f64 = 0.05;

/// How far the median losses of the variants lie above the corpus's entropy, at one share of recall: the least and the
/// greatest.
fn excess(study: &Trainings, recall: f64) -> Option<(f64, f64)> {
    let of_arm = |arm: &str| {
        let here = study.arm(arm).filter(|run| run.recall == Some(recall));
        let values = here.filter_map(|run| Some(run.valid_loss_nats? - run.corpus_entropy_nats?));
        Spread::of(values).map(|spread| spread.median)
    };
    let arms = Spread::of(["mhsa", "ls", "local-only"].into_iter().filter_map(of_arm))?;
    Some((arms.low, arms.high))
}

/// Long-range tasks: the loss of `local-only` and of `ls` less that of `mhsa`, seed by seed, at the largest share of recall, with
/// Student's intervals over seeds.
///
/// *Not measured*: a variant is missing there, or none has learned to look up: the least excess over the corpus's entropy
/// there is more than [`LEARNED_NATS`] above that at the least share, and the variants lie no further apart than at the
/// least share and [`LEARNED_NATS`].
pub(crate) fn dial(study: &Trainings) -> Verdict {
    let tuned = Tuned::of(study, &[]);
    let study = &tuned.study;
    let recalls = || study.runs.iter().filter_map(|run| run.recall);
    let most = recalls().fold(f64::NEG_INFINITY, f64::max);
    let least = recalls().fold(f64::INFINITY, f64::min);
    let loss = |run: &TrainingRun| run.valid_loss_nats.filter(|_| run.recall == Some(most));
    let found = ["ls", "local-only"].map(|arm| Some((arm, Pairs::of(study, [arm, "mhsa"], loss)?)));
    let [Some(ls), Some(local)] = found else { return missing(LONG_RANGE_LIMIT) };
    let arms = [ls, local];
    let seeds = arms.iter().map(|(_, pairs)| pairs.seeds()).min().unwrap_or(0);
    let each_seeds = arms.iter().flat_map(|(_, pairs)| pairs.seeds_each());
    let count = |holds: fn(f64, f64) -> bool| -> usize {
        arms.iter().map(|(_, pairs)| pairs.count(holds)).sum()
    };
    let pairs: usize = arms.iter().map(|(_, pairs)| pairs.len()).sum();
    let worse = count(|ours, mhsa| ours > mhsa);
    let much_worse = count(|ours, mhsa| ours > mhsa + NO_WORSE_NATS);
    let every =
        |holds: fn(Interval) -> bool| arms.iter().all(|(_, pairs)| pairs.every(difference, holds));
    let excesses = excess(study, most).zip(excess(study, least));
    let unlearned = excesses.map(|(most, least)| most.0 - least.0).filter(|&nats| {
        let further = excesses.map(|(most, least)| (most.1 - most.0) - (least.1 - least.0));
        nats > LEARNED_NATS && further.is_some_and(|further| further <= LEARNED_NATS)
    });
    let status = if unlearned.is_some() {
        VerdictStatus::NotMeasured
    } else if worse == pairs && every(|i| i.is_at_least(NO_WORSE_NATS)) {
        VerdictStatus::Confirmed
    } else if much_worse == 0 && every(|i| i.is_at_most(NO_WORSE_NATS)) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let status = tuned.decided(status, |run| ["mhsa", "ls", "local-only"].contains(&&*run.arm));
    let learned = unlearned.map_or_else(String::new, |nats| {
        format!(
            " No variant learned to look keys up: the least excess over the entropy grows by {} nats with look-ups.",
            significant(nats, 2)
        )
    });
    let shown = |pairs: &Pairs| {
        let each = pairs.settings.iter().map(|s| s.shown(difference, |nats| nats, 2));
        each.collect::<Vec<_>>().join(", ")
    };
    let [ls, local] = arms.each_ref().map(|(_, pairs)| shown(pairs));
    let headline = match unlearned {
        Some(_) => "no variant learned to look keys up".to_owned(),
        None => {
            format!(
                "loss − multi-head's: LS-attention {ls}, local-only {local} nats, {}",
                plural(seeds, "seed")
            )
        }
    };
    let measured = format!(
        "With {} % look-up segments, loss minus multi-head attention's: LS-attention {ls}, local-only {local} nats. Higher in \
         {worse} of {pairs} pairs. {}.{}{learned}",
        significant(100.0 * most, 2),
        of_runs(&study.runs),
        tuned.note(|run| ["mhsa", "ls", "local-only"].contains(&&*run.arm))
    );
    Verdict::over(LONG_RANGE_LIMIT, [headline, measured], status, each_seeds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::tuning::at_three_rates;

    fn runs(arm: &str, losses: &[f64]) -> Vec<TrainingRun> {
        let one = |(seed, loss): (usize, &f64)| TrainingRun {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            seed,
            recall: Some(0.9),
            corpus_entropy_nats: Some(0.8),
            valid_loss_nats: Some(*loss),
            ..TrainingRun::default()
        };
        losses.iter().enumerate().map(one).collect()
    }

    fn study(arms: &[(&str, &[f64])]) -> Trainings {
        let runs = arms.iter().flat_map(|(arm, losses)| runs(arm, losses)).collect();
        Trainings { runs, failed: 0 }
    }

    /// The runs of `arms` at three learning rates.
    fn tuned(arms: &[(&str, &[f64])]) -> Trainings {
        at_three_rates(&study(arms))
    }

    #[test]
    fn the_global_head_has_every_word() {
        // Multi-head attention shows that far context is worth a fifth of a nat.
        let status = |local: &[f64], mhsa: f64| {
            let arms: [(&str, &[f64]); 3] =
                [("ls", &[1.0; 3]), ("local-only", local), ("mhsa", &[mhsa; 3])];
            global_head(&tuned(&arms)).status
        };
        let head = |local: &[f64]| status(local, 0.7);
        assert_eq!(head(&[1.2; 3]), VerdictStatus::Confirmed);
        assert_eq!(head(&[1.2; 2]), VerdictStatus::Qualified, "two seeds");
        assert_eq!(head(&[1.05; 3]), VerdictStatus::Qualified, "worse, not by so much");
        assert_eq!(head(&[1.1, 1.2, 1.3]), VerdictStatus::Qualified, "seeds too far apart");
        assert_eq!(head(&[1.01, 1.0, 1.01]), VerdictStatus::Refuted, "alike");
        assert_eq!(head(&[1.02, 1.0, 1.05]), VerdictStatus::Qualified, "alike or not");
        assert_eq!(head(&[0.9; 3]), VerdictStatus::Refuted);
        assert_eq!(head(&[0.9; 2]), VerdictStatus::Qualified, "two seeds");
        assert_eq!(head(&[]), VerdictStatus::NotMeasured);
        assert_eq!(status(&[1.0; 3], 1.0), VerdictStatus::NotMeasured, "nothing needs far context");
        let untuned = study(&[("ls", &[1.0; 3]), ("local-only", &[1.2; 3])]);
        assert_eq!(global_head(&untuned).status, VerdictStatus::Qualified, "one learning rate");
    }

    #[test]
    fn long_range_tasks_have_every_word() {
        let of = |ls: &[f64], local: &[f64]| {
            dial(&tuned(&[("mhsa", &[1.0; 3]), ("ls", ls), ("local-only", local)])).status
        };
        assert_eq!(of(&[1.1; 3], &[1.2; 3]), VerdictStatus::Confirmed);
        assert_eq!(of(&[0.9; 3], &[1.2; 3]), VerdictStatus::Qualified);
        assert_eq!(of(&[0.9; 3], &[0.9; 3]), VerdictStatus::Refuted);
        assert_eq!(of(&[0.9; 2], &[0.9; 2]), VerdictStatus::Qualified, "two seeds");
        assert_eq!(
            of(&[1.1; 3], &[1.02, 1.2, 1.4]),
            VerdictStatus::Qualified,
            "seeds too far apart"
        );
        assert_eq!(
            of(&[0.9; 3], &[0.6, 0.9, 0.99]),
            VerdictStatus::Qualified,
            "seeds too far apart"
        );
        assert_eq!(of(&[], &[]), VerdictStatus::NotMeasured);
        let beside_easy = |hard: [f64; 3]| {
            let arms = ["mhsa", "ls", "local-only"].into_iter().zip(hard);
            let mut study = Trainings {
                runs: arms.flat_map(|(arm, loss)| runs(arm, &[loss; 3])).collect(),
                failed: 0,
            };
            let easy = study.runs.clone().into_iter().map(|run| TrainingRun {
                recall: Some(0.0),
                valid_loss_nats: Some(0.9),
                ..run
            });
            study.runs.extend(easy.collect::<Vec<_>>());
            dial(&at_three_rates(&study))
        };
        let unlearned = beside_easy([1.0, 1.02, 1.04]);
        assert_eq!(
            unlearned.status,
            VerdictStatus::NotMeasured,
            "0.2 against 0.1 nats, and all alike"
        );
        assert!(unlearned.measured.contains("0.10 nats"), "{}", unlearned.measured);
        assert_eq!(
            beside_easy([1.0, 1.1, 1.2]).status,
            VerdictStatus::Confirmed,
            "one has learned something"
        );
        assert_eq!(
            beside_easy([0.93, 0.95, 0.97]).status,
            VerdictStatus::Confirmed,
            "near to the entropy"
        );
    }
}
