//! Verdict on local heads in long-range tasks.

use super::scale_of_runs;
use crate::claims::words::joined;
use crate::claims::{Claim, Group, Verdict};
use crate::experiments::training::claims::pairs::{Pairs, difference};
use crate::experiments::training::claims::training::NO_WORSE_NATS;
use crate::experiments::training::claims::tuning::Tuned;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::{Spread, significant};

/// The largest excess of the loss over the entropy for which look-ups count as learned. Also the difference in loss
/// between a variant that learned them and one that did not.
const LEARNED_NATS: f64 = 0.05;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[LONG_RANGE_LIMIT];

pub(crate) const LONG_RANGE_LIMIT: Claim = Claim {
    id: "LongRangeLimit",
    text: "On long-range tasks, local heads cost accuracy",
    group: Group::Training,
    place: "limitations",
    rule: [
        "At the largest share of look-ups ls and local-only are both worse than mhsa in every pair, \
            by more than {0} nats with the whole interval.",
        "No run is worse by more than {0} nats, and no interval reaches above that.",
    ],
    bounds: &[NO_WORSE_NATS],
    needs_tuning: true,
    lacking: [
        "no finished runs of every variant",
        "Needs finished runs of ls, mhsa and local-only with the same seeds.",
    ],
    ..Claim::PLAIN
};

/// The median losses of the variants above the corpus's entropy, at one share of recall: the smallest and the largest.
fn excess(study: &Trainings, recall: f64) -> Option<(f64, f64)> {
    let of_arm = |arm: &str| {
        let here = study.arm(arm).filter(|run| run.of.recall == Some(recall));
        let values = here.filter_map(|run| Some(run.loss()? - run.found.corpus_entropy_nats?));
        Spread::of(values).map(|spread| spread.median)
    };
    let arms = Spread::of(["mhsa", "ls", "local-only"].into_iter().filter_map(of_arm))?;
    Some((arms.low, arms.high))
}

/// The growth of the smallest excess with look-ups, if no variant has learned them. Then it exceeds [`LEARNED_NATS`],
/// and the variants differ by at most [`LEARNED_NATS`] more than at the smallest share.
fn unlearned(study: &Trainings, most: f64, least: f64) -> Option<f64> {
    let (most, least) = (excess(study, most)?, excess(study, least)?);
    let is_apart = (most.1 - most.0) - (least.1 - least.0) > LEARNED_NATS;
    Some(most.0 - least.0).filter(|&nats| nats > LEARNED_NATS && !is_apart)
}

/// The verdicts on [`CLAIMS`].
pub(crate) fn verdicts(study: &Trainings) -> Vec<Verdict> {
    vec![dial(study)]
}

/// Long-range tasks: the loss of `local-only` and of `ls` minus that of `mhsa`, seed by seed, at the largest share of
/// recall. Intervals are Student's over seeds.
///
/// *Not measured*: a variant is missing there, or none has learned look-ups.
fn dial(study: &Trainings) -> Verdict {
    let tuned = Tuned::of_arms(study, &["mhsa", "ls", "local-only"]);
    let study = &tuned.study;
    let recalls = || study.runs.iter().filter_map(|run| run.of.recall);
    let most = recalls().fold(f64::NEG_INFINITY, f64::max);
    let least = recalls().fold(f64::INFINITY, f64::min);
    let loss = |run: &TrainingRun| run.loss().filter(|_| run.of.recall == Some(most));
    let [Some(ls), Some(local)] =
        ["ls", "local-only"].map(|arm| Pairs::of_arms(study, [arm, "mhsa"], loss))
    else {
        return Verdict::lacking(LONG_RANGE_LIMIT);
    };
    let words = |pairs: &Pairs| {
        joined(pairs.estimates(difference).map(|lost| lost.shown_of_seeds(2)), ", ")
    };
    let losses = format!("LS-attention {}, local-only {} nats", words(&ls), words(&local));
    let pairs = Pairs { settings: ls.settings.into_iter().chain(local.settings).collect() };
    let worse = pairs.count(|ours, mhsa| ours > mhsa);
    let much_worse = pairs.count(|ours, mhsa| ours > mhsa + NO_WORSE_NATS);
    let unlearned = unlearned(study, most, least);
    let ruling = pairs
        .every(difference, |lost| lost.at_least(NO_WORSE_NATS))
        .undecided_if_holds(worse < pairs.len())
        .undecided_if_fails(much_worse > 0)
        .hidden_if(unlearned.is_some())
        .undecided_if(!tuned.is_tuned);
    let learned = unlearned.map_or_else(String::new, |nats| {
        format!(
            "No variant learned to look keys up: the least excess over the entropy grows by {} nats with look-ups",
            significant(nats, 2)
        )
    });
    let headline = match unlearned {
        Some(_) => "no variant learned to look keys up".to_owned(),
        None => format!("loss − multi-head's: {losses}"),
    };
    let sentences = [
        format!(
            "With {} % look-up segments, loss minus multi-head attention's: {losses}",
            significant(100.0 * most, 2)
        ),
        format!("Higher in {worse} of {} pairs", pairs.len()),
        scale_of_runs(&study.runs),
        tuned.note().to_owned(),
        learned,
    ];
    Verdict::new(LONG_RANGE_LIMIT, ruling, pairs.seeds(), headline, sentences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted};
    use crate::experiments::training::claims::tuning::{at_three_rates, with_losses};

    /// Runs on a text of look-ups with these losses.
    fn study(mhsa: &[f64], ls: &[f64], local: &[f64]) -> Trainings {
        let mut study = with_losses(&[("mhsa", mhsa), ("ls", ls), ("local-only", local)]);
        for run in &mut study.runs {
            (run.of.recall, run.found.corpus_entropy_nats) = (Some(0.9), Some(0.8));
        }
        study
    }

    #[test]
    fn long_range_tasks_have_every_word() {
        let of =
            |ls: &[f64], local: &[f64]| dial(&at_three_rates(&study(&[1.0; 3], ls, local))).status;
        assert_eq!(of(&[1.1; 3], &[1.2; 3]), Confirmed);
        assert_eq!(of(&[0.9; 3], &[1.2; 3]), Qualified);
        assert_eq!(of(&[0.9; 3], &[0.9; 3]), Refuted);
        assert_eq!(of(&[0.9; 2], &[0.9; 2]), Qualified, "two seeds");
        assert_eq!(of(&[1.1; 3], &[1.02, 1.2, 1.4]), Qualified, "seeds too far apart");
        assert_eq!(of(&[0.9; 3], &[0.6, 0.9, 0.99]), Qualified, "seeds too far apart");
        assert_eq!(of(&[], &[]), NotMeasured);
    }

    #[test]
    fn variants_that_learned_no_look_ups_measure_nothing() {
        let beside_easy = |losses: [f64; 3]| {
            let [mhsa, ls, local] = losses.map(|loss| [loss; 3]);
            let mut study = study(&mhsa, &ls, &local);
            let mut easy = study.runs.clone();
            for run in &mut easy {
                (run.of.recall, run.found.valid_loss_nats) = (Some(0.0), Some(0.9));
            }
            study.runs.extend(easy);
            dial(&at_three_rates(&study))
        };
        let unlearned = beside_easy([1.0, 1.02, 1.04]);
        assert_eq!(unlearned.status, NotMeasured, "0.2 against 0.1 nats, and all alike");
        assert!(unlearned.measured.contains("0.10 nats"), "{}", unlearned.measured);
        assert_eq!(beside_easy([1.0, 1.1, 1.2]).status, Confirmed, "one has learned something");
        assert_eq!(beside_easy([0.93, 0.95, 0.97]).status, Confirmed, "near to the entropy");
    }
}
