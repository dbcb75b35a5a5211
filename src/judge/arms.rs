//! Verdicts on arms side by side: the global head, and the dial between local and long-range.

use super::claims::Claim;
use super::pairs::{Pairs, difference};
use super::scale::of_runs;
use super::stabilisers::stabilisers;
use super::training::{NO_WORSE_NATS, no_worse};
use super::verdict::{Verdict, Word};
use crate::table::{Interval, Spread, TrainingRun, Trainings, plural, significant};

/// 42/36, the paper's: perplexity without the global head over that with it.
pub(super) const WITHOUT_GLOBAL: f64 = 1.17;
/// Perplexities within this ratio of each other are alike: less than a fifth of what the paper tells of.
pub(super) const PERPLEXITIES_ALIKE: f64 = 1.03;

/// The verdicts of a study of arms.
pub(crate) fn arms(study: &Trainings) -> Vec<Verdict> {
    let mut verdicts = vec![no_worse(study)];
    verdicts.extend(stabilisers(study));
    verdicts.push(global_head(study));
    verdicts
}

fn missing(claim: Claim) -> Verdict {
    let why =
        "Needs finished runs of ls and of the arms that it is held against, of the same seeds.";
    Verdict::new(claim, why.to_owned(), Word::NotYetMeasured, 0)
}

/// `local-only` against `ls`, by the ratio of perplexities: e to the difference in loss, seed by seed, with Student's
/// interval over seeds.
///
/// *Not yet measured*: one of the two is missing.
fn global_head(study: &Trainings) -> Verdict {
    let pairs = Pairs::of(study, ["local-only", "ls"], |run| run.valid_loss_nats);
    let Some(pairs) = pairs else { return missing(Claim::GlobalHead) };
    let ratios: Vec<Option<Interval>> =
        pairs.settings.iter().map(|s| s.interval(difference).map(Interval::exp)).collect();
    let every =
        |holds: &dyn Fn(&Interval) -> bool| ratios.iter().all(|r| r.as_ref().is_some_and(holds));
    let worse = pairs.count(|without, with| without > with);
    let word = if every(&|ratio| ratio.is_at_most(PERPLEXITIES_ALIKE)) {
        Word::Refuted
    } else if worse == pairs.len()
        && every(&|r| r.mean >= WITHOUT_GLOBAL && r.is_at_least(PERPLEXITIES_ALIKE))
    {
        Word::Confirmed
    } else {
        Word::Qualified
    };
    let perplexity = |spread: Option<Spread>| {
        let Some(Spread { median, low, high }) = spread else { return String::new() };
        Spread { median: median.exp(), low: low.exp(), high: high.exp() }.shown(3)
    };
    let each: Vec<String> =
        pairs.settings.iter().map(|s| s.shown(difference, f64::exp, 3)).collect();
    let measured = format!(
        "Perplexity {} with one global head a layer, {} without: {} times (the paper's: 1.17). {} each, 95 % interval, {}.",
        perplexity(pairs.theirs()),
        perplexity(pairs.ours()),
        each.join(", "),
        plural(pairs.seeds(), "seed"),
        of_runs(study.arm("ls").chain(study.arm("local-only")))
    );
    Verdict::over(Claim::GlobalHead, measured, word, pairs.seeds_each())
}

/// How much more the loss may exceed the entropy where keys are asked for, if they are looked up; and how much less an arm
/// that looks them up loses than one that does not.
const LEARNED_NATS: f64 = 0.05;

/// How far the median losses of the arms lie above the corpus's entropy, at one share of recall: the least and the greatest.
fn excess(study: &Trainings, recall: f64) -> Option<(f64, f64)> {
    let of_arm = |arm: &str| {
        let here = study.arm(arm).filter(|run| run.recall == Some(recall));
        let values = here.filter_map(|run| Some(run.valid_loss_nats? - run.corpus_entropy_nats?));
        Spread::of(values).map(|spread| spread.median)
    };
    let arms = Spread::of(["mhsa", "ls", "local-only"].into_iter().filter_map(of_arm))?;
    Some((arms.low, arms.high))
}

/// The dial: the loss of `local-only` and of `ls` less that of `mhsa`, seed by seed, at the largest share of recall, with
/// Student's intervals over seeds.
///
/// *Not yet measured*: an arm is missing there, or no arm has learned to look up: the least excess over the
/// corpus's entropy there is more than [`LEARNED_NATS`] above that at the least share, and the arms lie no further
/// apart than they do at the least share and [`LEARNED_NATS`].
pub(crate) fn dial(study: &Trainings) -> Verdict {
    let recalls = || study.runs.iter().filter_map(|run| run.recall);
    let most = recalls().fold(f64::NEG_INFINITY, f64::max);
    let least = recalls().fold(f64::INFINITY, f64::min);
    let loss = |run: &TrainingRun| run.valid_loss_nats.filter(|_| run.recall == Some(most));
    let found = ["ls", "local-only"].map(|arm| Some((arm, Pairs::of(study, [arm, "mhsa"], loss)?)));
    let [Some(ls), Some(local)] = found else { return missing(Claim::LongRangeLimit) };
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
    let word = if unlearned.is_some() {
        Word::NotYetMeasured
    } else if worse == pairs && every(|i| i.is_at_least(NO_WORSE_NATS)) {
        Word::Confirmed
    } else if much_worse == 0 && every(|i| i.is_at_most(NO_WORSE_NATS)) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let learned = unlearned.map_or_else(String::new, |nats| {
        format!(
            " But no arm has learned to look keys up: the least loss above the possible is {nats:.2} nats more there than \
             where nothing is asked for, and all arms lose as much."
        )
    });
    let texts = arms.each_ref().map(|(arm, pairs)| {
        let each: Vec<String> = pairs
            .settings
            .iter()
            .map(|setting| setting.shown(difference, |nats| nats, 2))
            .collect();
        format!("{} nats with {arm}", each.join(", "))
    });
    let measured = format!(
        "Where {} % of the segments ask for a stored key: loss less mhsa's, seed by seed, {}; worse in {worse} of {pairs} \
         pairs. {} each, 95 % intervals, {}.{learned}",
        significant(100.0 * most, 2),
        texts.join(" and "),
        plural(seeds, "seed"),
        of_runs(&study.runs)
    );
    Verdict::over(Claim::LongRangeLimit, measured, word, each_seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_global_head_and_the_dial_have_every_word() {
        let head =
            |local: &[f64]| global_head(&study(&[("ls", &[1.0; 3]), ("local-only", local)])).word;
        assert_eq!(head(&[1.2; 3]), Word::Confirmed);
        assert_eq!(head(&[1.2; 2]), Word::Qualified, "two seeds");
        assert_eq!(head(&[1.05; 3]), Word::Qualified, "worse, not by so much");
        assert_eq!(head(&[1.1, 1.2, 1.3]), Word::Qualified, "seeds too far apart");
        assert_eq!(head(&[1.01, 1.0, 1.01]), Word::Refuted, "alike");
        assert_eq!(head(&[1.02, 1.0, 1.05]), Word::Qualified, "alike or not");
        assert_eq!(head(&[0.9; 3]), Word::Refuted);
        assert_eq!(head(&[0.9; 2]), Word::Qualified, "two seeds");
        assert_eq!(head(&[]), Word::NotYetMeasured);
        let of = |ls: &[f64], local: &[f64]| {
            dial(&study(&[("mhsa", &[1.0; 3]), ("ls", ls), ("local-only", local)])).word
        };
        assert_eq!(of(&[1.1; 3], &[1.2; 3]), Word::Confirmed);
        assert_eq!(of(&[0.9; 3], &[1.2; 3]), Word::Qualified);
        assert_eq!(of(&[0.9; 3], &[0.9; 3]), Word::Refuted);
        assert_eq!(of(&[0.9; 2], &[0.9; 2]), Word::Qualified, "two seeds");
        assert_eq!(of(&[1.1; 3], &[1.02, 1.2, 1.4]), Word::Qualified, "seeds too far apart");
        assert_eq!(of(&[0.9; 3], &[0.6, 0.9, 0.99]), Word::Qualified, "seeds too far apart");
        assert_eq!(of(&[], &[]), Word::NotYetMeasured);
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
            dial(&study)
        };
        let unlearned = beside_easy([1.0, 1.02, 1.04]);
        assert_eq!(unlearned.word, Word::NotYetMeasured, "0.2 against 0.1 nats, and all alike");
        assert!(unlearned.measured.contains(" is 0.10 nats more there"), "{}", unlearned.measured);
        assert_eq!(beside_easy([1.0, 1.1, 1.2]).word, Word::Confirmed, "one has learned something");
        assert_eq!(beside_easy([0.93, 0.95, 0.97]).word, Word::Confirmed, "near to the entropy");
    }
}
