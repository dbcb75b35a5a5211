//! The verdict on interventions: runs that differ from a baseline in one thing.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::table::{Spread, TrainingRun, Trainings, plural, significant};

/// The run with twice the rank at equal parameters.
const MORE_RANK: &str = "mhsa-wide-heads";

/// Peak max |logit| of every intervention over its baseline's, seed by seed; the word is on more rank.
///
/// - *confirmed*: with more rank it is at most two thirds in every seed, three seeds or more;
/// - *refuted*: it is as large or larger in every seed;
/// - *qualified*: anything between, or few seeds;
/// - *not yet measured*: no such run beside an `mhsa` of its seed.
pub(crate) fn interventions(study: &Trainings, baselines: &[String]) -> Verdict {
    let ratios = |run: &str| -> Vec<f64> {
        let runs = study.runs.iter().filter(|other| other.run == run);
        runs.filter_map(|changed| {
            let base = study.runs.iter().find(|base| {
                baselines.contains(&base.run)
                    && (&base.arm, base.seed, base.context)
                        == (&changed.arm, changed.seed, changed.context)
            })?;
            Some(changed.peak_max_abs_logit? / base.peak_max_abs_logit?)
        })
        .collect()
    };
    let more_rank = ratios(MORE_RANK);
    let Some(spread) = Spread::of(more_rank.iter().copied()) else {
        let why = format!("Needs runs {MORE_RANK} beside the mhsa of their seeds and length.");
        return Verdict::new(Claim::MoreRankHelps, why, Word::NotYetMeasured, 0);
    };
    let word = if spread.high <= 2.0 / 3.0 {
        Word::Confirmed
    } else if spread.low >= 1.0 {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let names = study.by_run().map(|seeds| &seeds[0]).filter(|run| !baselines.contains(&run.run));
    let each: Vec<String> = names
        .filter_map(|run| Some(format!("{} {}", run.run, Spread::of(ratios(&run.run))?.shown(2))))
        .collect();
    let loss = |run: &str| {
        let of_run = study.runs.iter().filter(|other| other.run == run);
        Spread::of(of_run.filter_map(|run: &TrainingRun| run.valid_loss_nats))
            .map(|spread| significant(spread.median, 4))
    };
    let losses: Vec<String> = study
        .by_run()
        .filter_map(|seeds| Some(format!("{} {}", seeds[0].run, loss(&seeds[0].run)?)))
        .collect();
    let measured = format!(
        "Peak max |logit| over that of the same arm unchanged: {}. Validation loss in nats: {}. {}.",
        each.join(", "),
        losses.join(", "),
        plural(more_rank.len(), "seed")
    );
    Verdict::new(Claim::MoreRankHelps, measured, word, more_rank.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ratio: f64, seeds: usize) -> Word {
        let run = |name: &str, seed: usize, peak: f64| TrainingRun {
            run: name.to_owned(),
            arm: "mhsa".to_owned(),
            seed,
            context: Some(256),
            peak_max_abs_logit: Some(peak),
            ..TrainingRun::default()
        };
        let runs = (0..seeds)
            .flat_map(|seed| [run("mhsa-256", seed, 100.0), run(MORE_RANK, seed, 100.0 * ratio)]);
        let study = Trainings { runs: runs.collect(), failed: 0 };
        interventions(&study, &["mhsa-256".to_owned()]).word
    }

    #[test]
    fn every_word_has_its_ratio() {
        assert_eq!(judged(0.5, 3), Word::Confirmed);
        assert_eq!(judged(0.5, 2), Word::Qualified);
        assert_eq!(judged(0.9, 3), Word::Qualified);
        assert_eq!(judged(1.2, 3), Word::Refuted);
        assert_eq!(judged(1.0, 0), Word::NotYetMeasured);
    }
}
