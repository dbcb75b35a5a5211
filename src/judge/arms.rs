//! Verdicts on arms side by side: other stabilisers, the global head, and the dial between local and long-range.

use super::claims::Claim;
use super::training::no_worse;
use super::verdict::{Verdict, Word};
use crate::table::{Spread, TrainingRun, Trainings, plural, significant};

/// The stabilisers of others.
const STABILISERS: [&str; 5] = ["qk-norm", "sigma-reparam", "softcap", "qk-clip", "z-loss"];
/// Two fifths, and what still rounds to it.
const TWO_FIFTHS: f64 = 0.45;
/// A twentieth, and what still rounds to it.
const TWENTIETH: f64 = 0.075;
/// 42/36, the paper's: perplexity without the global head over that with it.
const WITHOUT_GLOBAL: f64 = 1.17;

/// The verdicts of a study of arms.
pub(crate) fn arms(study: &Trainings) -> Vec<Verdict> {
    vec![no_worse(study), two_fifths(study), twentieth(study), global_head(study)]
}

fn perplexities(study: &Trainings, arm: &str) -> Vec<f64> {
    study.arm(arm).filter_map(TrainingRun::perplexity).collect()
}

fn missing(claim: Claim) -> Verdict {
    let why = "Needs finished runs of ls and of the arms that it is held against.";
    Verdict::new(claim, why.to_owned(), Word::NotYetMeasured, 0)
}

/// The ratio of perplexities, `ls` over each stabiliser of others, medians over seeds.
///
/// - *confirmed*: some stabiliser has 1/0.45 times `ls`'s perplexity or more, three seeds or more;
/// - *refuted*: `ls`'s is above that of every stabiliser;
/// - *qualified*: it is under some, by less, or few seeds;
/// - *not yet measured*: no stabiliser's runs, or none of `ls`.
fn two_fifths(study: &Trainings) -> Verdict {
    let ls = perplexities(study, "ls");
    let ratios: Vec<(&str, f64, usize)> = STABILISERS
        .iter()
        .filter_map(|&arm| {
            let theirs = perplexities(study, arm);
            let seeds = ls.len().min(theirs.len());
            let ratio = Spread::of(ls.iter().copied())?.median / Spread::of(theirs)?.median;
            Some((arm, ratio, seeds))
        })
        .collect();
    let Some(seeds) = ratios.iter().map(|r| r.2).min() else { return missing(Claim::TwoFifths) };
    let least = ratios.iter().map(|r| r.1).fold(f64::INFINITY, f64::min);
    let word = match least {
        least if least <= TWO_FIFTHS => Word::Confirmed,
        least if least < 1.0 => Word::Qualified,
        _ => Word::Refuted,
    };
    let each: Vec<String> = ratios
        .iter()
        .map(|(arm, ratio, _)| format!("{} of {arm}'s", significant(*ratio, 3)))
        .collect();
    let measured = format!(
        "ls's perplexity is {}. {} each{}.",
        each.join(", "),
        plural(seeds, "seed"),
        scale(study)
    );
    Verdict::new(Claim::TwoFifths, measured, word, seeds)
}

/// The time in which `ls` first has a stabiliser's final perplexity, over that stabiliser's, both at the pace of
/// their fastest run.
///
/// - *confirmed*: for some stabiliser it is 0.075 or less, three seeds or more;
/// - *refuted*: `ls` never reaches any stabiliser's, or only in more time;
/// - *qualified*: in less time, but not in so little, or few seeds;
/// - *not yet measured*: as for perplexity, or without evaluations.
fn twentieth(study: &Trainings) -> Verdict {
    let shares: Vec<(&str, Option<f64>, usize)> = STABILISERS
        .iter()
        .filter_map(|&arm| {
            let (ours, theirs): (Vec<_>, Vec<_>) =
                (study.arm("ls").collect(), study.arm(arm).collect());
            let shares: Vec<f64> = theirs
                .iter()
                .flat_map(|theirs| ours.iter().filter_map(move |ours| share(study, ours, theirs)))
                .collect();
            let known = theirs.iter().any(|run| !run.log.valid_loss.is_empty()) && !ours.is_empty();
            let seeds = ours.len().min(theirs.len());
            let all = ours.len() * theirs.len();
            let median = Spread::of(shares.iter().copied()).map(|spread| spread.median);
            known.then_some((arm, median.filter(|_| 2 * shares.len() > all), seeds))
        })
        .collect();
    let Some(seeds) = shares.iter().map(|s| s.2).min() else { return missing(Claim::Twentieth) };
    let least = shares.iter().filter_map(|s| s.1).fold(f64::INFINITY, f64::min);
    let word = match least {
        least if least <= TWENTIETH => Word::Confirmed,
        least if least < 1.0 => Word::Qualified,
        _ => Word::Refuted,
    };
    let text = |(arm, share, _): &(&str, Option<f64>, usize)| match share {
        Some(share) => format!("{} of {arm}'s time", significant(*share, 2)),
        None => format!("{arm}'s never"),
    };
    let each: Vec<String> = shares.iter().map(text).collect();
    let measured = format!(
        "ls reaches the final perplexity of others in {}. {} each, CPU time{}.",
        each.join(", "),
        plural(seeds, "seed"),
        scale(study)
    );
    Verdict::new(Claim::Twentieth, measured, word, seeds)
}

/// The time until `ours` is as good as `theirs` in the end, over the time of `theirs`.
fn share(study: &Trainings, ours: &TrainingRun, theirs: &TrainingRun) -> Option<f64> {
    let &(last, goal) = theirs.log.valid_loss.last()?;
    let &(step, _) = ours.log.valid_loss.iter().find(|(_, loss)| *loss <= goal)?;
    let whole = last * study.seconds_per_step(&theirs.run);
    (whole > 0.0).then(|| step * study.seconds_per_step(&ours.run) / whole)
}

/// `local-only` against `ls`, by perplexity, medians over seeds.
///
/// - *confirmed*: the ratio is 1.17, the paper's 42/36, or more, and every `local-only` run is worse than every
///   `ls` run, three seeds or more;
/// - *refuted*: no `local-only` run is worse than any `ls` run;
/// - *qualified*: anything between, or few seeds;
/// - *not yet measured*: one of the two is missing.
fn global_head(study: &Trainings) -> Verdict {
    let (ls, local) = (perplexities(study, "ls"), perplexities(study, "local-only"));
    let (Some(with), Some(without)) =
        (Spread::of(ls.iter().copied()), Spread::of(local.iter().copied()))
    else {
        return missing(Claim::GlobalHead);
    };
    let ratio = without.median / with.median;
    let word = if without.high <= with.low {
        Word::Refuted
    } else if ratio >= WITHOUT_GLOBAL && without.low > with.high {
        Word::Confirmed
    } else {
        Word::Qualified
    };
    let seeds = ls.len().min(local.len());
    let measured = format!(
        "Perplexity {} with one global head a layer, {} without: {} times (the paper's: 1.17). {} each{}.",
        with.shown(3),
        without.shown(3),
        significant(ratio, 3),
        plural(seeds, "seed"),
        scale(study)
    );
    Verdict::new(Claim::GlobalHead, measured, word, seeds)
}

/// How much more the loss may exceed the entropy where keys are asked for, if they are looked up.
const LEARNED_NATS: f64 = 0.05;

/// The least excess of any arm's median loss over the corpus's entropy, at one share of recall.
fn least_excess(study: &Trainings, recall: f64) -> f64 {
    let excess = |arm: &str| {
        let here = study.arm(arm).filter(|run| run.recall == Some(recall));
        let values = here.filter_map(|run| Some(run.valid_loss_nats? - run.corpus_entropy_nats?));
        Spread::of(values).map(|spread| spread.median)
    };
    let arms = ["mhsa", "ls", "local-only"];
    arms.into_iter().filter_map(excess).fold(f64::INFINITY, f64::min)
}

fn scale(study: &Trainings) -> String {
    let Some(run) = study.runs.first() else { return String::new() };
    let part = |name: &str, value: Option<usize>| value.map(|value| format!(", {name} {value}"));
    let text = (!run.corpus.is_empty()).then(|| format!(", text: {}", run.corpus));
    [part("n =", run.context), part("steps:", run.steps), text].into_iter().flatten().collect()
}

/// The dial: the loss of `local-only` and of `ls` above that of `mhsa` at the largest share of recall.
///
/// - *confirmed*: both are worse than `mhsa` in every pair of runs there, three seeds or more;
/// - *refuted*: neither is worse in any;
/// - *qualified*: anything between, or few seeds;
/// - *not yet measured*: an arm is missing there, or no arm has learned to look up: the least excess over the
///   corpus's entropy there is more than [`LEARNED_NATS`] above that at the least share.
pub(crate) fn dial(study: &Trainings) -> Verdict {
    let most = study.runs.iter().filter_map(|run| run.recall).fold(f64::NEG_INFINITY, f64::max);
    let losses = |arm, recall: f64| -> Vec<f64> {
        let here = study.arm(arm).filter(|run| run.recall == Some(recall));
        here.filter_map(|run| run.valid_loss_nats).collect()
    };
    let mhsa = losses("mhsa", most);
    let (mut worse, mut pairs, mut seeds) = (0, 0, mhsa.len());
    let mut texts = Vec::new();
    for arm in ["ls", "local-only"] {
        let ours = losses(arm, most);
        seeds = seeds.min(ours.len());
        worse += ours.iter().flat_map(|a| mhsa.iter().map(move |b| a > b)).filter(|w| *w).count();
        pairs += ours.len() * mhsa.len();
        let medians = Spread::of(ours).zip(Spread::of(mhsa.iter().copied()));
        if let Some((ours, mhsa)) = medians {
            texts.push(format!("{:+.3} nats with {arm}", ours.median - mhsa.median));
        }
    }
    if seeds == 0 {
        return missing(Claim::LongRangeLimit);
    }
    let least = study.runs.iter().filter_map(|run| run.recall).fold(f64::INFINITY, f64::min);
    let unlearned = least_excess(study, most) - least_excess(study, least);
    let word = match worse {
        _ if unlearned > LEARNED_NATS => Word::NotYetMeasured,
        0 => Word::Refuted,
        all if all == pairs => Word::Confirmed,
        _ => Word::Qualified,
    };
    let learned = match unlearned > LEARNED_NATS {
        true => format!(
            " But no arm has learned to look keys up: the least loss above the possible is {unlearned:.2} nats more \
             there than where nothing is asked for."
        ),
        false => String::new(),
    };
    let measured = format!(
        "Where {} % of the segments ask for a stored key: loss against mhsa's {}; worse in {worse} of {pairs} \
         pairs of runs. {} each{}.{learned}",
        significant(100.0 * most, 2),
        texts.join(" and "),
        plural(seeds, "seed"),
        scale(study)
    );
    Verdict::new(Claim::LongRangeLimit, measured, word, seeds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::RunLog;

    fn runs(arm: &str, losses: &[f64]) -> Vec<TrainingRun> {
        let one = |(seed, loss): (usize, &f64)| TrainingRun {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            seed,
            recall: Some(0.9),
            corpus_entropy_nats: Some(0.8),
            valid_loss_nats: Some(*loss),
            log: RunLog {
                // Half-way through a run is a nat worse than at its end.
                valid_loss: vec![(10.0, loss + 1.0), (100.0, *loss)],
                seconds_per_step: 0.1,
                ..RunLog::default()
            },
            ..TrainingRun::default()
        };
        losses.iter().enumerate().map(one).collect()
    }

    fn study(arms: &[(&str, &[f64])]) -> Trainings {
        let runs = arms.iter().flat_map(|(arm, losses)| runs(arm, losses)).collect();
        Trainings { runs, failed: 0 }
    }

    #[test]
    fn perplexity_against_stabilisers_has_every_word() {
        let word =
            |theirs: &[f64]| two_fifths(&study(&[("ls", &[1.0; 3]), ("qk-norm", theirs)])).word;
        assert_eq!(word(&[2.0; 3]), Word::Confirmed);
        assert_eq!(word(&[2.0; 2]), Word::Qualified, "two seeds");
        assert_eq!(word(&[1.1; 3]), Word::Qualified);
        assert_eq!(word(&[0.9; 3]), Word::Refuted);
        assert_eq!(word(&[]), Word::NotYetMeasured);
    }

    #[test]
    fn time_against_stabilisers_has_every_word() {
        let word =
            |theirs: &[f64]| twentieth(&study(&[("ls", &[1.0; 3]), ("qk-norm", theirs)])).word;
        // ls is there at its first evaluation: a tenth of the time.
        assert_eq!(word(&[2.5; 3]), Word::Qualified);
        assert_eq!(word(&[0.5; 3]), Word::Refuted, "never reached");
        assert_eq!(word(&[]), Word::NotYetMeasured);
        let mut quick = study(&[("ls", &[1.0; 3]), ("qk-norm", &[2.5; 3])]);
        for run in quick.runs.iter_mut().filter(|run| run.arm == "ls") {
            run.log.seconds_per_step = 0.05;
        }
        assert_eq!(twentieth(&quick).word, Word::Confirmed);
    }

    #[test]
    fn the_global_head_and_the_dial_have_every_word() {
        let head =
            |local: &[f64]| global_head(&study(&[("ls", &[1.0; 3]), ("local-only", local)])).word;
        assert_eq!(head(&[1.2; 3]), Word::Confirmed);
        assert_eq!(head(&[1.05; 3]), Word::Qualified);
        assert_eq!(head(&[0.9; 3]), Word::Refuted);
        assert_eq!(head(&[]), Word::NotYetMeasured);
        let of = |ls: &[f64], local: &[f64]| {
            dial(&study(&[("mhsa", &[1.0; 3]), ("ls", ls), ("local-only", local)])).word
        };
        assert_eq!(of(&[1.1; 3], &[1.2; 3]), Word::Confirmed);
        assert_eq!(of(&[0.9; 3], &[1.2; 3]), Word::Qualified);
        assert_eq!(of(&[0.9; 3], &[0.9; 3]), Word::Refuted);
        assert_eq!(of(&[], &[]), Word::NotYetMeasured);
        let mut unlearned =
            study(&[("mhsa", &[1.0; 3]), ("ls", &[1.1; 3]), ("local-only", &[1.2; 3])]);
        let easy = unlearned.runs.clone().into_iter().map(|run| TrainingRun {
            recall: Some(0.0),
            valid_loss_nats: Some(0.9),
            ..run
        });
        unlearned.runs.extend(easy.collect::<Vec<_>>());
        assert_eq!(dial(&unlearned).word, Word::NotYetMeasured, "0.2 against 0.1 nats");
    }
}
