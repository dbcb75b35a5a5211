//! Verdicts on the objective ℓ^e: whether it helps where labels are wrong, and whether it lowers logits.

use super::scale_of_runs;
use crate::claims::words::joined;
use crate::claims::{Claim, Group, Origin, Verdict};
use crate::experiments::training::claims::pairs::{Compare, Pairs, difference, log_ratio};
use crate::experiments::training::claims::training::{LOGITS_ALIKE, NO_WORSE_NATS};
use crate::experiments::training::claims::tuning::Tuned;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::Estimate;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[ROBUST_TO_NOISE, LOWERS_LOGITS];

const LACKING: [&str; 2] = [
    "no runs with an exponent below 1",
    "Needs runs that differ in the key loss_exponent alone, some of them with label_noise.",
];

const ROBUST_TO_NOISE: Claim = Claim {
    id: "ExponentRobustToNoise",
    text: "Where training labels are wrong, minimising ℓ^e with e < 1 gives a lower loss on right labels",
    group: Group::Training,
    origin: Origin::Derived,
    place: "Hajra 2019, arXiv 1902.06127",
    rule: [
        "With label_noise the whole interval of the loss with e < 1, less that with e = 1, lies below −{0} nats, at every e.",
        "The whole interval lies above −{0} nats, at every e.",
    ],
    bounds: &[NO_WORSE_NATS],
    needs_tuning: true,
    lacking: LACKING,
    ..Claim::PLAIN
};

const LOWERS_LOGITS: Claim = Claim {
    id: "ExponentLowersLogits",
    text: "Minimising ℓ^e with e < 1 in place of ℓ lowers attention logits",
    group: Group::Training,
    origin: Origin::Derived,
    place: "asked of Hajra 2019, arXiv 1902.06127",
    rule: [
        "At every e and label_noise the whole interval of the ratio of peaks lies below 1/{0}.",
        "At every e and label_noise the whole interval lies above 1/{0}.",
    ],
    bounds: &[LOGITS_ALIKE],
    needs_tuning: true,
    lacking: LACKING,
    ..Claim::PLAIN
};

/// A number of a run's definition.
fn number(run: &TrainingRun, key: &str) -> Option<f64> {
    run.settings.get(key)?.parse().ok()
}

/// Whether any run has an exponent below 1.
pub(crate) fn has_exponents(study: &Trainings) -> bool {
    study.runs.iter().any(|run| number(run, "loss_exponent").is_some_and(|e| e < 1.0))
}

/// The verdicts on [`CLAIMS`]: pairs of runs of a seed that differ in the exponent alone, ours below 1, theirs 1; each at its own
/// best rate.
pub(crate) fn verdicts(study: &Trainings) -> Vec<Verdict> {
    let tuned = Tuned::of(study, &[], |_| true);
    let loss = Compared {
        claim: ROBUST_TO_NOISE,
        compare: difference,
        bound: -NO_WORSE_NATS,
        words: |loss| loss.apart(2, " nats"),
        what: "loss under label noise",
    };
    let peak = Compared {
        claim: LOWERS_LOGITS,
        compare: log_ratio,
        bound: -LOGITS_ALIKE.ln(),
        words: |ratio| ratio.exp().times(2),
        what: "peak",
    };
    let has_noise = |run: &TrainingRun| number(run, "label_noise").is_some_and(|noise| noise > 0.0);
    let noisy = |our: &TrainingRun, their: &TrainingRun| has_noise(our) && is_pair(our, their);
    vec![
        loss.verdict(&tuned, Pairs::matching(&tuned.study, noisy, TrainingRun::loss)),
        peak.verdict(&tuned, Pairs::matching(&tuned.study, is_pair, TrainingRun::peak)),
    ]
}

/// Whether two runs differ in the exponent alone, ours below 1 and theirs 1.
fn is_pair(our: &TrainingRun, their: &TrainingRun) -> bool {
    let without = |run: &TrainingRun| {
        let mut settings = run.settings.clone();
        settings.remove("loss_exponent");
        (run.of.seed, run.of.corpus.clone(), settings)
    };
    let [ours, theirs] = [our, their].map(|run| number(run, "loss_exponent"));
    ours.zip(theirs).is_some_and(|(ours, theirs)| ours < 1.0 && theirs == 1.0)
        && without(our) == without(their)
}

/// How a claim compares pairs.
struct Compared {
    claim: Claim,
    compare: Compare,
    bound: f64,
    words: fn(Estimate) -> String,
    what: &'static str,
}

impl Compared {
    fn verdict(&self, tuned: &Tuned, pairs: Option<Pairs>) -> Verdict {
        let Some(pairs) = pairs else { return Verdict::lacking(self.claim) };
        let ruling = pairs.every(self.compare, |found| found.at_most(self.bound));
        let values = pairs.estimates(self.compare).map(|found| (self.words)(found.without_ends()));
        let each = pairs
            .settings
            .iter()
            .map(|one| format!("{} {}", one.ours, (self.words)(one.estimate(self.compare))));
        let sentences = [
            format!("Beside e = 1: {}", joined(each, ", ")),
            scale_of_runs(&tuned.study.runs),
            tuned.note().to_owned(),
        ];
        let headline = format!("{}: {}", self.what, joined(values, ", "));
        let ruling = ruling.undecided_if(!tuned.is_tuned);
        Verdict::new(self.claim, ruling, pairs.seeds(), headline, sentences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus;
    use crate::experiments::training::claims::tuning::at_three_rates;

    /// Three seeds with label noise: e = 1, and e = 0.5 whose loss is lower by `gain` and whose peak is `ratio` times.
    fn runs(gain: f64, ratio: f64) -> Trainings {
        let run = |exponent: f64, seed: u64| {
            let [loss, peak] = match exponent < 1.0 {
                true => [2.0 - gain, 30.0 * ratio],
                false => [2.0, 30.0],
            };
            let scatter = 0.001 * seed as f64;
            let name = format!("mhsa-{exponent}");
            let mut run = TrainingRun::made_up(&name, "mhsa", seed, peak, loss + scatter);
            for (key, value) in [("loss_exponent", exponent), ("label_noise", 0.3)] {
                run.settings.insert(key, &value.into());
            }
            run
        };
        let all = [1.0, 0.5].into_iter().flat_map(|e| (0..3).map(move |seed| run(e, seed)));
        Trainings { runs: all.collect(), failed: 0 }
    }

    #[test]
    fn exponents_have_every_status() {
        let status = |gain, ratio| {
            verdicts(&at_three_rates(&runs(gain, ratio)))
                .iter()
                .map(|v| v.status)
                .collect::<Vec<_>>()
        };
        use VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted};
        assert_eq!(status(0.1, 0.5), [Confirmed, Confirmed]);
        assert_eq!(status(-0.1, 1.0), [Refuted, Refuted]);
        let untuned: Vec<_> = verdicts(&runs(0.1, 0.5)).iter().map(|v| v.status).collect();
        assert_eq!(untuned, [Qualified, Qualified]);
        let mut plain = runs(0.1, 0.5);
        plain.runs.retain(|run| number(run, "loss_exponent") == Some(1.0));
        assert!(!has_exponents(&plain));
        assert!(verdicts(&plain).iter().all(|v| v.status == NotMeasured));
    }
}
