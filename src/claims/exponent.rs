//! The verdict on a predicted growth of logits with n/d.

use super::claim::{Claim, Group, Origin, Rule};
use super::scale::of_runs;
use super::tuning::Tuned;
use super::verdict::{Verdict, VerdictStatus};
use crate::study::PredictedExponent;
use crate::table::{Slope, Spread, Trainings, arm_name, plural, significant};

pub(super) const PREDICTED_EXPONENT: Claim = Claim {
    id: "PredictedExponent",
    text: "Predicted here: max |logit| of trained models grows with n/d as fits of similar \
            targets do",
    group: Group::Training,
    origin: Origin::Here,
    place: "predicted here, growth with n/d",
    rule: || Rule {
        confirmed: format!(
            "The interval of every variant's exponent lies within the predicted one, or contains \
            the predicted exponent and is at most {TOO_WIDE} wide."
        ),
        refuted: "The interval of mhsa lies wholly outside the predicted one.".to_owned(),
    },
    ..Claim::PLAIN
};

/// An interval wider than this decides nothing.
const TOO_WIDE: f64 = 0.5;

/// The slope of log peak max |logit| on log n, which at one head dimension is that on log(n/d), over the runs of an
/// arm, against what was predicted of it.
///
/// *Not yet measured*: an arm has too few lengths.
pub(crate) fn exponent(study: &Trainings, predicted: &[PredictedExponent]) -> Option<Verdict> {
    if predicted.is_empty() {
        return None;
    }
    let (mut told, mut headline) = (Vec::new(), String::new());
    let (mut confirmed, mut refuted, mut seeds) = (true, false, usize::MAX);
    for expected in predicted {
        let points: Vec<(f64, f64)> = study
            .arm(&expected.arm)
            .filter_map(|run| Some(((run.context? as f64).ln(), run.peak_max_abs_logit?.ln())))
            .collect();
        let Some(slope) = Slope::through(&points) else {
            let needs = format!("Needs finished runs of {} at several lengths.", expected.arm);
            let lacking = "too few lengths for an exponent";
            return Some(Verdict::lacking(PREDICTED_EXPONENT, lacking, needs));
        };
        let within = slope.low >= expected.low && slope.high <= expected.high;
        let holds = (slope.low..=slope.high).contains(&expected.exponent)
            && slope.high - slope.low <= TOO_WIDE;
        confirmed &= within || holds;
        let apart = slope.high < expected.low || slope.low > expected.high;
        refuted |= expected.arm == "mhsa" && apart;
        let lengths = study.contexts();
        let of_length =
            |n: &usize| study.arm(&expected.arm).filter(|r| r.context == Some(*n)).count();
        seeds = seeds.min(lengths.iter().map(of_length).filter(|c| *c > 0).min().unwrap_or(0));
        let predicted =
            Spread { median: expected.exponent, low: expected.low, high: expected.high };
        let (measured, predicted) = (slope.shown(2), predicted.shown(2));
        let name = arm_name(&expected.arm);
        told.push(format!("{name} {measured}, predicted {predicted}"));
        if expected.arm == "mhsa" || headline.is_empty() {
            let predicted = significant(expected.exponent, 2);
            headline = format!("{name} exponent {measured} of n/d, predicted {predicted}");
        }
    }
    let status = match (confirmed, refuted) {
        (true, _) => VerdictStatus::Confirmed,
        (_, true) => VerdictStatus::Refuted,
        _ => VerdictStatus::Qualified,
    };
    let arms = study.runs.iter().filter(|run| predicted.iter().any(|p| p.arm == run.arm));
    let measured = format!(
        "Exponent of n/d in peak max |logit|: {}. {}.{}",
        told.join("; "),
        of_runs(arms),
        Tuned::of(study, &[]).note(|_| true)
    );
    headline.push_str(&format!(", {}", plural(seeds, "seed")));
    Some(Verdict::new(PREDICTED_EXPONENT, [headline, measured], status, seeds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TrainingRun;

    fn judged(mhsa: f64, ls: f64, seeds: usize) -> VerdictStatus {
        let of_arm = |arm: &'static str, exponent: f64| {
            [256usize, 512, 1024].into_iter().flat_map(move |n| {
                (0..seeds).map(move |seed| TrainingRun {
                    arm: arm.to_owned(),
                    seed,
                    context: Some(n),
                    peak_max_abs_logit: Some(
                        (n as f64).powf(exponent) * [1.0, 1.02, 0.98][seed % 3],
                    ),
                    ..TrainingRun::default()
                })
            })
        };
        let runs = of_arm("mhsa", mhsa).chain(of_arm("ls", ls)).collect();
        let predicted = |arm: &str, [low, exponent, high]: [f64; 3]| PredictedExponent {
            arm: arm.to_owned(),
            low,
            exponent,
            high,
        };
        let predicted = [predicted("mhsa", [0.1, 0.25, 0.35]), predicted("ls", [-0.1, 0.0, 0.1])];
        exponent(&Trainings { runs, failed: 0 }, &predicted).unwrap().status
    }

    #[test]
    fn every_word_has_its_exponents() {
        assert_eq!(judged(0.25, 0.0, 3), VerdictStatus::Confirmed);
        assert_eq!(judged(0.25, 0.0, 1), VerdictStatus::SingleSeed);
        assert_eq!(judged(-1.0, 0.0, 3), VerdictStatus::Refuted);
        assert_eq!(judged(-1.0, 0.0, 2), VerdictStatus::Qualified, "two seeds");
        assert_eq!(judged(0.25, 0.9, 3), VerdictStatus::Qualified, "ls grows");
        assert_eq!(judged(0.25, 0.0, 0), VerdictStatus::NotMeasured);
        assert_eq!(exponent(&Trainings { runs: Vec::new(), failed: 0 }, &[]), None);
    }
}
