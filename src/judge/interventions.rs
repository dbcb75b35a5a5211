//! The verdict on interventions: runs that differ from a baseline in one thing.

use super::claims::Claim;
use super::scale::of_runs;
use super::training::LOGITS_ALIKE;
use super::verdict::{Verdict, Word};
use crate::table::{Interval, Spread, TrainingRun, Trainings, plural, significant};

/// The run with twice the rank at equal parameters.
const MORE_RANK: &str = "mhsa-wide-heads";

/// The word on peaks with twice the rank over those without, of which this is the spread over seeds and the interval.
pub(super) fn of_more_rank(spread: Spread, interval: Option<Interval>) -> Word {
    let alike = 1.0 / LOGITS_ALIKE;
    if spread.high <= 2.0 / 3.0 && interval.is_some_and(|i| i.is_at_most(alike)) {
        Word::Confirmed
    } else if spread.low >= 1.0 && interval.is_some_and(|i| i.is_at_least(alike)) {
        Word::Refuted
    } else {
        Word::Qualified
    }
}

/// Peak max |logit| of every intervention over its baseline's, seed by seed; the word is on more rank. Intervals are
/// Student's over seeds, of the logarithm. *Not yet measured* where there is no such run beside an `mhsa` of its seed;
/// the other words are those of [`of_more_rank`].
pub(crate) fn interventions(study: &Trainings, baselines: &[String]) -> Verdict {
    let against = |run: &str, value: fn(&TrainingRun) -> Option<f64>| -> Vec<(f64, f64)> {
        let runs = study.runs.iter().filter(|other| other.run == run);
        runs.filter_map(|changed| {
            let base = study.runs.iter().find(|base| {
                baselines.contains(&base.run)
                    && (&base.arm, base.seed, base.context)
                        == (&changed.arm, changed.seed, changed.context)
            })?;
            Some((value(changed)?, value(base)?))
        })
        .collect()
    };
    let ratios = |run: &str| -> Vec<f64> {
        against(run, |run| run.peak_max_abs_logit).iter().map(|(new, old)| new / old).collect()
    };
    let within = |run: &str| Interval::of(ratios(run).iter().map(|r| r.ln())).map(Interval::exp);
    let more_rank = ratios(MORE_RANK);
    let Some(spread) = Spread::of(more_rank.iter().copied()) else {
        let why = format!("Needs runs {MORE_RANK} beside the mhsa of their seeds and length.");
        return Verdict::new(Claim::MoreRankHelps, why, Word::NotYetMeasured, 0);
    };
    let word = of_more_rank(spread, within(MORE_RANK));
    let changed: Vec<&str> = study
        .by_run()
        .map(|seeds| &*seeds[0].run)
        .filter(|run| !baselines.iter().any(|base| base == run))
        .collect();
    let peaks = changed.iter().filter_map(|run| {
        let (mean, range) = (within(run)?.shown(2), Spread::of(ratios(run))?.range(2));
        Some(format!("{run} {mean} ({range})"))
    });
    let gains = changed.iter().filter_map(|run| {
        let both = against(run, |run| run.valid_loss_nats);
        let gain = Interval::of(both.iter().map(|(new, old)| new - old))?.shown(2);
        let median = Spread::of(both.iter().map(|(new, _)| *new))?.median;
        Some(format!("{run} {gain} at {}", significant(median, 4)))
    });
    let measured = format!(
        "Peak max |logit| over that of the same arm unchanged, seed by seed, geometric mean with its 95 % interval (least–greatest): \
         {}. Validation loss less that of the same arm unchanged, in nats, at a median of: {}. {}, {}.",
        peaks.collect::<Vec<_>>().join(", "),
        gains.collect::<Vec<_>>().join(", "),
        plural(more_rank.len(), "seed"),
        of_runs(&study.runs)
    );
    Verdict::new(Claim::MoreRankHelps, measured, word, more_rank.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ratio: f64, seeds: usize) -> Word {
        judged_seeds(&vec![ratio; seeds])
    }

    fn judged_seeds(ratios: &[f64]) -> Word {
        let run = |name: &str, seed: usize, peak: f64| TrainingRun {
            run: name.to_owned(),
            arm: "mhsa".to_owned(),
            seed,
            context: Some(256),
            peak_max_abs_logit: Some(peak),
            ..TrainingRun::default()
        };
        let runs = ratios.iter().enumerate().flat_map(|(seed, ratio)| {
            [run("mhsa-256", seed, 100.0), run(MORE_RANK, seed, 100.0 * ratio)]
        });
        let study = Trainings { runs: runs.collect(), failed: 0 };
        interventions(&study, &["mhsa-256".to_owned()]).word
    }

    #[test]
    fn every_word_has_its_ratio() {
        assert_eq!(judged(0.5, 3), Word::Confirmed);
        assert_eq!(judged(0.5, 2), Word::Qualified);
        assert_eq!(judged(0.9, 3), Word::Qualified);
        assert_eq!(judged(1.2, 3), Word::Refuted);
        assert_eq!(judged(1.2, 2), Word::Qualified, "two seeds");
        assert_eq!(judged_seeds(&[0.1, 0.65, 0.66]), Word::Qualified, "seeds too far apart");
        assert_eq!(judged_seeds(&[1.0, 1.1, 5.0]), Word::Qualified, "seeds too far apart");
        assert_eq!(judged(1.0, 0), Word::NotYetMeasured);
    }
}
