//! Verdicts on training: logits, divergence and loss of LS-attention against multi-head attention.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::table::{Spread, TrainingRun, Trainings, plural, significant};

/// A validation loss this much above the other's, in nats, still counts as no worse.
const NO_WORSE_NATS: f64 = 0.01;
/// The paper's bound on LS-attention's logits, and the least that it reports of multi-head attention.
const LS_AT_MOST: f64 = 50.0;
const MHSA_AT_LEAST: f64 = 200.0;
/// The paper's length of context and steps for divergence.
const PAPER_CONTEXT: usize = 2048;
const PAPER_STEPS: usize = 20_000;

/// The three verdicts of a study of trainings.
pub(crate) fn training(study: &Trainings) -> Vec<Verdict> {
    vec![logits(study), divergence(study), no_worse(study)]
}

/// Logits: `ls` against `mhsa`, by the peak of max |logit| over the run, seed against seed with all pairs
/// of one length of context and one learning rate.
///
/// - *confirmed*: every `ls` run peaks under 50 and every `mhsa` run at 200 or more, three seeds or more;
/// - *refuted*: no `ls` run has the lower peak;
/// - *qualified*: anything between, or few seeds;
/// - *not yet measured*: one of the arms is missing, or lacks its logits.
fn logits(study: &Trainings) -> Verdict {
    let pairs = Pairs::of(study, |run| run.peak_max_abs_logit);
    let Some(pairs) = pairs else { return missing(Claim::LogitsInTraining) };
    let lower = pairs.count(|ls, mhsa| ls < mhsa);
    let as_told = pairs.count(|ls, mhsa| ls < LS_AT_MOST && mhsa >= MHSA_AT_LEAST);
    let word = match (lower, as_told) {
        (0, _) => Word::Refuted,
        (_, told) if told == pairs.values.len() => Word::Confirmed,
        _ => Word::Qualified,
    };
    let measured = format!(
        "Peak max |logit| {} (ls) and {} (mhsa), {}: lower with ls in {lower} of {} pairs of runs. {}.",
        pairs.ls.shown(3),
        pairs.mhsa.shown(3),
        pairs.by_context(study, |run| run.peak_max_abs_logit),
        pairs.values.len(),
        scale(study, pairs.seeds)
    );
    Verdict::new(Claim::LogitsInTraining, measured, word, pairs.seeds)
}

/// Divergence, told only by runs of the paper's length and long enough.
///
/// - *confirmed*: every `mhsa` run diverges and no `ls` run, three seeds or more;
/// - *refuted*: no `mhsa` run diverges, or every `ls` run does;
/// - *qualified*: anything between, or few seeds;
/// - *not yet measured*: no runs of 2,048 tokens or more and 20,000 steps asked for, of both arms.
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
        let diverged = study.runs.iter().filter(|run| run.outcome == "diverged").count();
        let measured = format!(
            "No runs of both arms at n ≥ 2,048 for 20,000 steps. Of the {} here, {diverged} diverged.",
            plural(study.runs.len(), "run")
        );
        return Verdict::new(Claim::Diverges, measured, Word::NotYetMeasured, 0);
    }
    let word = if mhsa_diverged == 0 || ls_diverged == ls {
        Word::Refuted
    } else if mhsa_diverged == mhsa && ls_diverged == 0 {
        Word::Confirmed
    } else {
        Word::Qualified
    };
    let measured = format!(
        "Diverged: {mhsa_diverged} of {} of mhsa, {ls_diverged} of {} of ls.",
        plural(mhsa, "run"),
        plural(ls, "run")
    );
    Verdict::new(Claim::Diverges, measured, word, mhsa.min(ls))
}

/// Loss: `ls` against `mhsa` by the last validation loss, paired as for logits.
///
/// - *confirmed*: in every pair `ls` is no worse by more than [`NO_WORSE_NATS`], three seeds or more;
/// - *refuted*: in none;
/// - *qualified*: in some, or few seeds;
/// - *not yet measured*: one of the arms is missing.
pub(crate) fn no_worse(study: &Trainings) -> Verdict {
    let pairs = Pairs::of(study, |run| run.valid_loss_nats);
    let Some(pairs) = pairs else { return missing(Claim::NoWorse) };
    let no_worse = pairs.count(|ls, mhsa| ls <= mhsa + NO_WORSE_NATS);
    let word = match no_worse {
        0 => Word::Refuted,
        all if all == pairs.values.len() => Word::Confirmed,
        _ => Word::Qualified,
    };
    let measured = format!(
        "Validation loss {} nats (ls) and {} nats (mhsa), {}: no worse with ls in {no_worse} of {} pairs of \
         runs. {}.",
        pairs.ls.shown(4),
        pairs.mhsa.shown(4),
        pairs.by_context(study, |run| run.valid_loss_nats),
        pairs.values.len(),
        scale(study, pairs.seeds)
    );
    Verdict::new(Claim::NoWorse, measured, word, pairs.seeds)
}

fn missing(claim: Claim) -> Verdict {
    let why = "Needs finished runs of both arms, ls and mhsa, at one length and learning rate.";
    Verdict::new(claim, why.to_owned(), Word::NotYetMeasured, 0)
}

/// A value of every `ls` run beside that of every `mhsa` run of one length and learning rate.
struct Pairs {
    values: Vec<(f64, f64)>,
    ls: Spread,
    mhsa: Spread,
    /// The fewest runs of an arm at any setting.
    seeds: usize,
}

type Value = fn(&TrainingRun) -> Option<f64>;

fn setting(run: &TrainingRun) -> (Option<usize>, Option<f64>) {
    (run.context, run.learning_rate)
}

impl Pairs {
    fn of(study: &Trainings, value: Value) -> Option<Self> {
        let ends = |arm| -> Vec<_> {
            study.arm(arm).filter_map(|run| Some((setting(run), value(run)?))).collect()
        };
        let (ls, mhsa) = (ends("ls"), ends("mhsa"));
        let mut values = Vec::new();
        let mut seeds = usize::MAX;
        for (setting, ours) in &ls {
            let theirs = || mhsa.iter().filter(|(other, _)| other == setting);
            let own = ls.iter().filter(|(other, _)| other == setting).count();
            values.extend(theirs().map(|(_, theirs)| (*ours, *theirs)));
            if theirs().next().is_some() {
                seeds = seeds.min(own.min(theirs().count()));
            }
        }
        let ls = Spread::of(values.iter().map(|pair| pair.0))?;
        let mhsa = Spread::of(values.iter().map(|pair| pair.1))?;
        Some(Self { values, ls, mhsa, seeds })
    }

    fn count(&self, holds: impl Fn(f64, f64) -> bool) -> usize {
        self.values.iter().filter(|(ls, mhsa)| holds(*ls, *mhsa)).count()
    }

    /// The medians of both arms at each length.
    fn by_context(&self, study: &Trainings, value: Value) -> String {
        let median = |arm, context| {
            let here = study.arm(arm).filter(|run| run.context == Some(context));
            Spread::of(here.filter_map(value)).map(|spread| significant(spread.median, 3))
        };
        let one = |&context: &usize| {
            Some(format!(
                "{} and {} at n = {context}",
                median("ls", context)?,
                median("mhsa", context)?
            ))
        };
        study.contexts().iter().filter_map(one).collect::<Vec<_>>().join(", ")
    }
}

fn scale(study: &Trainings, seeds: usize) -> String {
    let run = study.arm("ls").next();
    let parts = run.map(|run| {
        [
            run.parameters.map(|count| format!("{} parameters", significant(count as f64, 3))),
            run.steps.map(|steps| format!("{steps} steps")),
            (!run.corpus.is_empty()).then(|| format!("text: {}", run.corpus)),
        ]
    });
    let known: Vec<String> = parts.into_iter().flatten().flatten().collect();
    format!("{} a setting, {}", plural(seeds, "seed"), known.join(", "))
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
        use Word::{Confirmed, NotYetMeasured, Qualified, Refuted};
        let unmeasured = NotYetMeasured;
        assert_eq!(judged(3, (12.0, 1.9), (220.0, 2.4)), [Confirmed, unmeasured, Confirmed]);
        assert_eq!(judged(3, (12.0, 1.9), (60.0, 2.4)), [Qualified, unmeasured, Confirmed]);
        assert_eq!(judged(1, (12.0, 1.9), (220.0, 2.4)), [Qualified, unmeasured, Qualified]);
        assert_eq!(judged(3, (70.0, 2.6), (60.0, 2.4)), [Refuted, unmeasured, Refuted]);
        assert_eq!(judged(0, (0.0, 0.0), (0.0, 0.0)), [unmeasured; 3]);
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
        assert!(verdict.measured.contains("lower with ls in 18 of 18"), "{}", verdict.measured);
        assert!(verdict.measured.contains("20.0 and 30.0 at n = 256"), "{}", verdict.measured);
        runs.retain(|run| (run.arm == "ls") == (run.context == Some(256)));
        assert_eq!(logits(&Trainings { runs, failed: 0 }).word, Word::NotYetMeasured);
    }

    #[test]
    fn divergence_needs_the_papers_length_and_steps() {
        let word = |mhsa: [&str; 3], ls: &str| {
            let long = |arm: &str, seed, outcome: &str| TrainingRun {
                context: Some(2048),
                steps: Some(40_000),
                outcome: outcome.to_owned(),
                ..run(arm, seed, 1.0, 1.0)
            };
            let runs = (0..3)
                .flat_map(|seed| [long("mhsa", seed, mhsa[seed]), long("ls", seed, ls)])
                .collect();
            divergence(&Trainings { runs, failed: 0 }).word
        };
        assert_eq!(word(["diverged"; 3], "completed"), Word::Confirmed);
        assert_eq!(word(["completed"; 3], "completed"), Word::Refuted);
        assert_eq!(word(["diverged", "completed", "diverged"], "completed"), Word::Qualified);
        assert_eq!(word(["diverged"; 3], "diverged"), Word::Refuted);
    }
}
