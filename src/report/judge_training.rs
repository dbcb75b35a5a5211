//! The verdict on training: whether LS-attention keeps logits lower at no loss.

use super::verdict::{Verdict, Word};
use crate::table::{Spread, TrainingRun, Trainings, plural, significant};

const CLAIM: &str =
    "LS-attention keeps logits lower in training, and its loss is no worse (Hajra 2025)";

/// A validation loss this much above the other's, in nats, still counts as no worse.
const NO_WORSE_NATS: f64 = 0.01;

/// Training: `ls` against `mhsa`, by the peak of max |logit| over the run and the last validation
/// loss, seed against seed with all pairs of one length of context and one learning rate.
///
/// - *confirmed*: every `ls` run has the lower peak than every `mhsa` run, and a loss no worse by
///   more than [`NO_WORSE_NATS`], three seeds or more of each;
/// - *refuted*: no `ls` run has the lower peak, or every `ls` run is worse than every `mhsa` run;
/// - *qualified*: anything between, or few seeds;
/// - *not yet measured*: one of the arms is missing, or lacks its logs.
///
/// One study is one scale; the sentence says which.
pub(super) fn training(study: &Trainings) -> Verdict {
    let (ls, mhsa) = (ends(study, "ls"), ends(study, "mhsa"));
    let pairs: Vec<(End, End)> = ls
        .iter()
        .flat_map(|ours| mhsa.iter().map(move |theirs| (*ours, *theirs)))
        .filter(|(ours, theirs)| ours.setting == theirs.setting)
        .collect();
    if pairs.is_empty() {
        let why = "Needs finished runs of both arms, ls and mhsa, with logits and validation loss.";
        return Verdict::new(CLAIM, why.to_owned(), Word::NotYetMeasured);
    }
    let lower = pairs.iter().filter(|(ours, theirs)| ours.peak < theirs.peak).count();
    let no_worse =
        pairs.iter().filter(|(ours, theirs)| ours.loss <= theirs.loss + NO_WORSE_NATS).count();
    let word = if lower == pairs.len() && no_worse == pairs.len() {
        Word::Confirmed
    } else if lower == 0 || no_worse == 0 {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let of_setting =
        |ends: &[End], end: &End| ends.iter().filter(|other| other.setting == end.setting).count();
    let seeds =
        pairs.iter().map(|(ours, theirs)| of_setting(&ls, ours).min(of_setting(&mhsa, theirs)));
    let seeds = seeds.min().unwrap_or(0);
    let measured = format!(
        "ls: {}; mhsa: {}. {} each, at {}.",
        ends_text(&ls),
        ends_text(&mhsa),
        plural(seeds, "seed"),
        scale_text(study)
    );
    Verdict::new(CLAIM, measured, word.with_seeds(seeds))
}

/// Where a run came out.
#[derive(Clone, Copy, Debug)]
struct End {
    /// Context and learning rate.
    setting: (Option<usize>, Option<f64>),
    peak: f64,
    loss: f64,
}

fn ends(study: &Trainings, arm: &str) -> Vec<End> {
    let end = |run: &TrainingRun| {
        Some(End {
            setting: (run.context, run.learning_rate),
            peak: run.log.peak_max_logit()?,
            loss: run.log.final_valid_loss()?,
        })
    };
    study.arm(arm).filter_map(end).collect()
}

fn ends_text(ends: &[End]) -> String {
    let shown = |value: fn(&End) -> f64, digits| {
        Spread::of(ends.iter().map(value)).map_or("none".to_owned(), |spread| spread.shown(digits))
    };
    format!(
        "max |logit| {}, validation loss {} nats",
        shown(|end| end.peak, 3),
        shown(|end| end.loss, 3)
    )
}

fn scale_text(study: &Trainings) -> String {
    let contexts: Vec<String> = study.contexts().iter().map(usize::to_string).collect();
    let context = (!contexts.is_empty()).then(|| format!("a context of {}", contexts.join(" or ")));
    let parts = study.arm("ls").next().map(|run| {
        [
            run.parameters.map(|count| format!("{} parameters", significant(count as f64, 3))),
            context,
            run.steps.map(|steps| format!("{steps} steps")),
        ]
    });
    let known: Vec<String> = parts.into_iter().flatten().flatten().collect();
    let scales = if contexts.len() > 1 { "a scale each" } else { "one scale" };
    if known.is_empty() {
        "an unknown size".to_owned()
    } else {
        format!("{scales}: {}", known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::RunLog;

    fn run(arm: &str, seed: usize, peak: f64, loss: f64) -> TrainingRun {
        TrainingRun {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            seed,
            context: Some(512),
            learning_rate: Some(3e-3),
            parameters: Some(165_000),
            steps: Some(1500),
            outcome: "step-limit".to_owned(),
            wall_time_s: None,
            log: RunLog {
                max_logit: vec![(1.0, peak)],
                valid_loss: vec![(1.0, loss)],
                ..RunLog::default()
            },
        }
    }

    fn judged(seeds: usize, peak: f64, loss: f64) -> Verdict {
        let ls = (0..seeds).map(|seed| run("ls", seed, peak, loss));
        let mhsa = (0..seeds).map(|seed| run("mhsa", seed, 60.0, 2.4));
        training(&Trainings { runs: ls.chain(mhsa).collect(), failed: 0 })
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
        let verdict = training(&Trainings { runs: runs.clone(), failed: 0 });
        assert_eq!(verdict.word, Word::Confirmed, "{}", verdict.measured);
        assert!(verdict.measured.contains("256 or 1024"), "{}", verdict.measured);
        runs.retain(|run| (run.arm == "ls") == (run.context == Some(256)));
        let verdict = training(&Trainings { runs, failed: 0 });
        assert_eq!(verdict.word, Word::NotYetMeasured, "{}", verdict.measured);
    }

    #[test]
    fn every_word_has_its_rows() {
        assert_eq!(judged(3, 12.0, 1.9).word, Word::Confirmed);
        let one = judged(1, 12.0, 1.9);
        assert_eq!(one.word, Word::Qualified, "one seed is too few");
        assert!(one.measured.contains("1 seed each, at one scale: 165000 parameters"));
        assert_eq!(judged(3, 70.0, 1.9).word, Word::Refuted, "logits not lower");
        assert_eq!(judged(3, 12.0, 2.6).word, Word::Refuted, "loss worse");
        assert_eq!(judged(0, 12.0, 1.9).word, Word::NotYetMeasured);
        let mut runs: Vec<_> = (0..3).map(|seed| run("mhsa", seed, 60.0, 2.4)).collect();
        runs.push(run("ls", 0, 12.0, 2.0));
        runs.push(run("ls", 1, 80.0, 2.0));
        assert_eq!(
            training(&Trainings { runs, failed: 0 }).word,
            Word::Qualified,
            "one seed lower"
        );
    }
}
