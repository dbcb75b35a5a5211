//! The verdict on interventions: runs that differ from a baseline in one setting.

use super::claim::{Claim, Group, Origin, Rule};
use super::phrases::{apart, times};
use super::scale::of_runs;
use super::training;
use super::training::LOGITS_ALIKE;
use super::tuning::{Tuned, tuned};
use super::verdict::{Verdict, VerdictStatus};
use crate::table::{Interval, Spread, TrainingRun, Trainings, plural, significant};

pub(super) const MORE_RANK_HELPS: Claim = Claim {
    id: "MoreRankHelps",
    text: "Multi-head attention with twice the rank and half the heads has smaller logits",
    group: Group::Training,
    origin: Origin::Derived,
    place: "the rank argument, an intervention",
    rule: || Rule {
        confirmed: tuned(format!(
            "With twice the rank the peak is at most two thirds in every seed, and the whole \
            interval of the ratio lies below 1/{}.",
            training::LOGITS_ALIKE
        )),
        refuted: tuned(format!(
            "The peak is no smaller in every seed, and the whole interval lies above 1/{}.",
            training::LOGITS_ALIKE
        )),
    },
    ..Claim::PLAIN
};

/// The run with twice the rank at equal parameters.
const MORE_RANK: &str = "mhsa-wide-heads";

/// The status on peaks with twice the rank over those without, of which this is the spread over seeds and the interval.
pub(super) fn of_more_rank(spread: Spread, interval: Option<Interval>) -> VerdictStatus {
    let alike = 1.0 / LOGITS_ALIKE;
    if spread.high <= 2.0 / 3.0 && interval.is_some_and(|i| i.is_at_most(alike)) {
        VerdictStatus::Confirmed
    } else if spread.low >= 1.0 && interval.is_some_and(|i| i.is_at_least(alike)) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    }
}

/// Peak max |logit| of the run with twice the rank over its baseline's, seed by seed. Intervals are Student's over seeds, of
/// the logarithm. *Not measured* where there is no such run beside an `mhsa` of its seed; the other words are those of
/// [`of_more_rank`], undecided at one learning rate.
pub(crate) fn interventions(study: &Trainings, baselines: &[String]) -> Verdict {
    let tuned = Tuned::of(study, baselines);
    let study = &tuned.study;
    let against = |value: fn(&TrainingRun) -> Option<f64>| -> Vec<(f64, f64)> {
        let runs = study.runs.iter().filter(|other| other.run == MORE_RANK);
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
    let ratios: Vec<f64> =
        against(|run| run.peak_max_abs_logit).iter().map(|(new, old)| new / old).collect();
    let Some(spread) = Spread::of(ratios.iter().copied()) else {
        let needs = format!("Needs runs {MORE_RANK} beside mhsa with their seeds and length.");
        return Verdict::lacking(MORE_RANK_HELPS, "no runs with twice the rank", needs);
    };
    let within = Interval::of(ratios.iter().map(|ratio| ratio.ln())).map(Interval::exp);
    let changed: Vec<&TrainingRun> = study.runs.iter().filter(|run| run.run == MORE_RANK).collect();
    let status = tuned.decided(of_more_rank(spread, within), |run| run.arm == "mhsa");
    let ratio = match within {
        Some(within) => times(within, 2),
        None => format!("{}×", significant(spread.median, 2)),
    };
    let headline = format!("peak {ratio} with twice the rank, {}", plural(ratios.len(), "seed"));
    let losses = against(|run| run.valid_loss_nats);
    let loss = Interval::of(losses.iter().map(|(new, old)| new - old));
    let loss = loss
        .map_or_else(String::new, |loss| format!(" Validation loss {}.", apart(loss, 2, " nats")));
    let measured = format!(
        "Peak max |logit| of {MORE_RANK} over the unchanged run's: {ratio}, {} over seeds.{loss} {}.{}",
        spread.range(2),
        of_runs(changed),
        tuned.note(|run| run.arm == "mhsa")
    );
    Verdict::new(MORE_RANK_HELPS, [headline, measured], status, ratios.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::tuning::at_three_rates;

    fn judged(ratio: f64, seeds: usize) -> VerdictStatus {
        judged_seeds(&vec![ratio; seeds])
    }

    fn judged_seeds(ratios: &[f64]) -> VerdictStatus {
        let run = |name: &str, seed: usize, peak: f64| TrainingRun {
            run: name.to_owned(),
            arm: "mhsa".to_owned(),
            heads: Some(if name == MORE_RANK { 2 } else { 4 }),
            valid_loss_nats: Some(2.0),
            seed,
            context: Some(256),
            peak_max_abs_logit: Some(peak),
            ..TrainingRun::default()
        };
        let runs = ratios.iter().enumerate().flat_map(|(seed, ratio)| {
            [run("mhsa-256", seed, 100.0), run(MORE_RANK, seed, 100.0 * ratio)]
        });
        let study = Trainings { runs: runs.collect(), failed: 0 };
        interventions(&at_three_rates(&study), &["mhsa-256".to_owned()]).status
    }

    #[test]
    fn every_word_has_its_ratio() {
        assert_eq!(judged(0.5, 3), VerdictStatus::Confirmed);
        assert_eq!(judged(0.5, 2), VerdictStatus::Qualified);
        assert_eq!(judged(0.9, 3), VerdictStatus::Qualified);
        assert_eq!(judged(1.2, 3), VerdictStatus::Refuted);
        assert_eq!(judged(1.2, 2), VerdictStatus::Qualified, "two seeds");
        assert_eq!(
            judged_seeds(&[0.1, 0.65, 0.66]),
            VerdictStatus::Qualified,
            "seeds too far apart"
        );
        assert_eq!(judged_seeds(&[1.0, 1.1, 5.0]), VerdictStatus::Qualified, "seeds too far apart");
        assert_eq!(judged(1.0, 0), VerdictStatus::NotMeasured);
    }
}
