//! Verdicts on other published systems: pairs of runs that differ in one key (and those that belong to it), each at its own
//! best learning rate.

use super::scale_of_runs;
use crate::claims::ruling::Ruling;
use crate::claims::words::joined;
use crate::claims::{Claim, Group, Origin, Verdict};
use crate::experiments::training::claims::pairs::{
    Compare, Pairs, PairsOfSetting, difference, log_ratio,
};
use crate::experiments::training::claims::training::{LOGITS_ALIKE, NO_WORSE_NATS};
use crate::experiments::training::claims::tuning::Tuned;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::Estimate;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[
    ROBUST_TO_NOISE,
    EXPONENT_LOGITS,
    TERNARY_LOSS,
    TERNARY_LOGITS,
    TRILM_SCHEDULE,
    MEMORY_LOSS,
    MEMORY_SCORES,
    REWARMED_LOSS,
    REWARMED_LOGITS,
    NOT_REWARMED_LOSS,
    WARMUP_LENGTH,
    RECURSION_LOSS,
    RECURSION_LOGITS,
];

const PLAIN: Claim = Claim {
    group: Group::Training,
    origin: Origin::Here,
    needs_tuning: true,
    lacking: [
        "no runs that differ in the key alone",
        "Needs runs that differ in the key alone, at three learning rates each.",
    ],
    ..Claim::PLAIN
};

const ROBUST_TO_NOISE: Claim = Claim {
    id: "ExponentRobustToNoise",
    text: "Where training labels are wrong, minimising ℓ^e with e < 1 gives a lower loss on right labels",
    origin: Origin::Other,
    place: "Hajra 2019, arXiv 1902.06127",
    rule: [
        "With label_noise the whole interval of the loss with e < 1, less that with e = 1, lies below −{0} nats, at every e.",
        "The whole interval lies above −{0} nats, at every e.",
    ],
    bounds: &[NO_WORSE_NATS],
    ..PLAIN
};

const EXPONENT_LOGITS: Claim = Claim {
    id: "ExponentLowersLogits",
    text: "Minimising ℓ^e with e < 1 in place of ℓ lowers attention logits",
    place: "asked of Hajra 2019, arXiv 1902.06127",
    rule: [
        "At every e and label_noise the whole interval of the ratio of peaks lies below 1/{0}.",
        "At every e and label_noise the whole interval lies above 1/{0}.",
    ],
    bounds: &[LOGITS_ALIKE],
    ..PLAIN
};

const TERNARY_LOSS: Claim = Claim {
    id: "TernaryLoss",
    text: "At equal parameters a model with ternary weights has no higher loss than one with float32 weights",
    origin: Origin::Other,
    place: "Kaushal et al. 2024, arXiv 2407.12327",
    paper_says: Some("equal from a few billion parameters on"),
    rule: [
        "The whole interval of the loss with ternary weights, less that with float32 weights, lies below {0} nats.",
        "The whole interval lies above {0} nats.",
    ],
    bounds: &[NO_WORSE_NATS],
    ..PLAIN
};

const TERNARY_LOGITS: Claim = Claim {
    id: "TernaryRaisesLogits",
    text: "Ternary weights give larger attention logits",
    place: "asked of Kaushal et al. 2024, arXiv 2407.12327",
    rule: [
        "The whole interval of the ratio of peaks lies above {0}.",
        "The whole interval lies below {0}.",
    ],
    bounds: &[LOGITS_ALIKE],
    ..PLAIN
};

const TRILM_SCHEDULE: Claim = Claim {
    id: "TrilmSchedule",
    text: "TriLM's schedule of rate and weight decay lowers the loss of ternary models",
    rule: [
        "The whole interval of the loss with schedule = trilm, less that with cosine, lies below −{0} nats.",
        "The whole interval lies above −{0} nats.",
    ],
    paper_says: None,
    ..TERNARY_LOSS
};

const MEMORY_LOSS: Claim = Claim {
    id: "GatedMemoryLoss",
    text: "At equal parameters a gated memory has no higher loss than multi-head attention",
    origin: Origin::Other,
    place: "Acharya 2025, arXiv 2509.00605",
    rule: [
        "The whole interval of the loss with a gated memory, less that with attention, lies below {0} nats.",
        "The whole interval lies above {0} nats.",
    ],
    bounds: &[NO_WORSE_NATS],
    ..PLAIN
};

const MEMORY_SCORES: Claim = Claim {
    id: "GatedMemoryScores",
    text: "The scores of a gated memory grow larger than the logits of multi-head attention",
    place: "asked of Acharya 2025, arXiv 2509.00605",
    ..TERNARY_LOGITS
};

const REWARMED_LOSS: Claim = Claim {
    id: "RewarmedLoss",
    text: "A model trained on another text and warmed up again ends below one trained from scratch for as many steps",
    origin: Origin::Other,
    place: "Gupta et al. 2023, arXiv 2308.04014",
    rule: [
        "The whole interval of the loss with upstream_steps, less that without, lies below −{0} nats.",
        "The whole interval lies above −{0} nats.",
    ],
    bounds: &[NO_WORSE_NATS],
    ..PLAIN
};

const REWARMED_LOGITS: Claim = Claim {
    id: "RewarmedLogits",
    text: "Warming up again on another text gives larger logits than training from scratch",
    place: "asked of Gupta et al. 2023, arXiv 2308.04014",
    ..TERNARY_LOGITS
};

const NOT_REWARMED_LOSS: Claim = Claim {
    id: "NotRewarmedLoss",
    text: "A model that keeps its last learning rate on another text ends above one that is warmed up again",
    rule: [
        "The whole interval of the loss at a constant rate, less that with a second warm-up, lies above {0} nats.",
        "The whole interval lies below {0} nats.",
    ],
    needs_tuning: false,
    ..REWARMED_LOSS
};

const WARMUP_LENGTH: Claim = Claim {
    id: "WarmupLength",
    text: "The length of the second warm-up does not change the loss in the end",
    rule: [
        "At every length the whole interval of the difference of loss lies within ±{0} nats.",
        "At every length the whole interval lies outside.",
    ],
    needs_tuning: false,
    ..REWARMED_LOSS
};

const RECURSION_LOSS: Claim = Claim {
    id: "RecursionLoss",
    text: "At equal FLOPs recursions of chosen tokens have a lower loss than as many separate blocks",
    origin: Origin::Other,
    place: "Bae et al. 2025, arXiv 2507.10524",
    rule: [
        "The whole interval of the loss with recursions, less that without, lies below −{0} nats.",
        "The whole interval lies above −{0} nats.",
    ],
    bounds: &[NO_WORSE_NATS],
    ..PLAIN
};

const RECURSION_LOGITS: Claim = Claim {
    id: "RecursionLogits",
    text: "At equal FLOPs recursions of chosen tokens give larger attention logits than separate blocks",
    place: "asked of Bae et al. 2025, arXiv 2507.10524",
    ..TERNARY_LOGITS
};

/// Whether a run has this value of a key.
fn has(run: &TrainingRun, key: &str, value: &str) -> bool {
    run.settings.get(key) == Some(value)
}

/// Whether a token passes as many blocks in both runs. With R recursions and expert choice the r-th recursion has
/// (R − r + 1)/R of the tokens, so the middle blocks are passed (R + 1)/2 times per token.
fn has_equal_flops(recursive: &TrainingRun, plain: &TrainingRun) -> bool {
    let of = |run: &TrainingRun, key| run.settings.get(key)?.parse::<f64>().ok();
    let passes = |run: &TrainingRun| -> Option<f64> {
        let [layers, recursions] = [of(run, "layers")?, of(run, "recursions")?];
        Some(2.0 + (layers - 2.0) * (recursions + 1.0) / 2.0)
    };
    passes(recursive).is_some() && passes(recursive) == passes(plain)
}

/// How a claim compares runs.
struct Compared {
    claim: Claim,
    /// The key in which the runs of a pair differ, and its value in "theirs".
    key: [&'static str; 2],
    /// Keys that may differ too.
    beside: &'static [&'static str],
    is_compared: fn(&TrainingRun) -> bool,
    /// What else must hold of a pair, ours and theirs.
    matches: fn(&TrainingRun, &TrainingRun) -> bool,
    value: fn(&TrainingRun) -> Option<f64>,
    compare: Compare,
    ruling: fn(Estimate) -> Ruling,
    words: fn(Estimate) -> String,
    what: &'static str,
}

const LOSS: Compared = Compared {
    claim: TERNARY_LOSS,
    key: ["ternary", "false"],
    beside: &[],
    is_compared: |_| true,
    matches: |_, _| true,
    value: TrainingRun::loss,
    compare: difference,
    ruling: |loss| loss.at_most(NO_WORSE_NATS),
    words: |loss| loss.apart(2, " nats"),
    what: "loss",
};

const PEAK: Compared = Compared {
    claim: TERNARY_LOGITS,
    value: TrainingRun::peak,
    compare: log_ratio,
    ruling: |ratio| ratio.at_least(LOGITS_ALIKE.ln()),
    words: |ratio| ratio.exp().times(2),
    what: "peak",
    ..LOSS
};

/// Training from scratch has fewer steps in all, as many on the text.
const BESIDE_UPSTREAM: &[&str] = &["steps", "upstream_learning_rate"];

/// A gated memory has one head and as many slots as its parameters allow; attention has the positions that suit it.
const BESIDE_MEMORY: &[&str] = &["heads", "memory_slots", "positions"];

/// Models of equal FLOPs have other numbers of layers.
const BESIDE_RECURSION: &[&str] = &["layers", "router"];

const ALL: [Compared; 13] = [
    Compared {
        claim: ROBUST_TO_NOISE,
        key: ["loss_exponent", "1.0"],
        is_compared: |run| !has(run, "label_noise", "0.0"),
        ruling: |loss| loss.at_most(-NO_WORSE_NATS),
        what: "loss under label noise",
        ..LOSS
    },
    Compared {
        claim: EXPONENT_LOGITS,
        key: ["loss_exponent", "1.0"],
        ruling: |ratio| ratio.at_most(-LOGITS_ALIKE.ln()),
        ..PEAK
    },
    LOSS,
    PEAK,
    Compared {
        claim: TRILM_SCHEDULE,
        key: ["schedule", "cosine"],
        beside: &["final_learning_rate"],
        is_compared: |run| has(run, "ternary", "true"),
        ruling: |loss| loss.at_most(-NO_WORSE_NATS),
        ..LOSS
    },
    Compared {
        claim: MEMORY_LOSS,
        key: ["arm", "mhsa"],
        beside: BESIDE_MEMORY,
        is_compared: |run| has(run, "arm", "gam"),
        ..LOSS
    },
    Compared {
        claim: MEMORY_SCORES,
        key: ["arm", "mhsa"],
        beside: BESIDE_MEMORY,
        is_compared: |run| has(run, "arm", "gam"),
        ..PEAK
    },
    Compared {
        claim: REWARMED_LOSS,
        key: ["upstream_steps", "0"],
        beside: BESIDE_UPSTREAM,
        ruling: |loss| loss.at_most(-NO_WORSE_NATS),
        ..LOSS
    },
    Compared {
        claim: REWARMED_LOGITS,
        key: ["upstream_steps", "0"],
        beside: BESIDE_UPSTREAM,
        ..PEAK
    },
    Compared {
        claim: NOT_REWARMED_LOSS,
        key: ["schedule", "cosine"],
        beside: &["warmup_steps", "final_learning_rate"],
        is_compared: |run| !has(run, "upstream_steps", "0"),
        ruling: |loss| loss.at_least(NO_WORSE_NATS),
        ..LOSS
    },
    Compared {
        claim: WARMUP_LENGTH,
        key: ["warmup_steps", "100"],
        is_compared: |run| !has(run, "upstream_steps", "0"),
        ruling: |loss| Ruling::both([loss.at_most(NO_WORSE_NATS), loss.at_least(-NO_WORSE_NATS)]),
        ..LOSS
    },
    Compared {
        claim: RECURSION_LOSS,
        key: ["recursions", "1"],
        beside: BESIDE_RECURSION,
        is_compared: |run| has(run, "router", "expert"),
        matches: has_equal_flops,
        ruling: |loss| loss.at_most(-NO_WORSE_NATS),
        ..LOSS
    },
    Compared {
        claim: RECURSION_LOGITS,
        key: ["recursions", "1"],
        beside: BESIDE_RECURSION,
        is_compared: |run| has(run, "router", "expert"),
        matches: has_equal_flops,
        ..PEAK
    },
];

/// The verdicts on those of [`CLAIMS`] for whose key there are runs with another value than usual.
pub(crate) fn verdicts(study: &Trainings) -> Vec<Verdict> {
    let of_study = ALL.iter().filter(|one| study.runs.iter().any(|run| one.is_ours(run)));
    of_study.map(|one| one.verdict(study)).collect()
}

impl Compared {
    /// Whether a run has another value of the key than usual, and is compared.
    fn is_ours(&self, run: &TrainingRun) -> bool {
        let [key, usual] = self.key;
        run.settings.get(key).is_some_and(|value| value != usual) && (self.is_compared)(run)
    }

    /// Whether two runs differ in the key alone, or in the learning rate too.
    fn is_pair(&self, our: &TrainingRun, their: &TrainingRun) -> bool {
        let [key, usual] = self.key;
        let without = |run: &TrainingRun| {
            let mut settings = run.settings.clone();
            let keys = [key, "learning_rate"].into_iter().chain(self.beside.iter().copied());
            keys.for_each(|key| settings.remove(key));
            (run.of.seed, run.of.corpus.clone(), settings)
        };
        let is_theirs = has(their, key, usual);
        let is_alike = is_theirs && self.is_ours(our) && without(our) == without(their);
        is_alike && (self.matches)(our, their)
    }

    fn verdict(&self, study: &Trainings) -> Verdict {
        let is_of_pair = |study: &Trainings, run: &TrainingRun| {
            study.runs.iter().any(|other| self.is_pair(run, other) || self.is_pair(other, run))
        };
        let tuned = Tuned::of(study, &[], |run| is_of_pair(study, run));
        let pairs =
            Pairs::matching(&tuned.study, |our, their| self.is_pair(our, their), self.value);
        let Some(pairs) = pairs else { return Verdict::lacking(self.claim) };
        let is_open = self.claim.needs_tuning && !tuned.is_tuned;
        let ruling = pairs.every(self.compare, self.ruling).undecided_if(is_open);
        let values = pairs.estimates(self.compare).map(|found| (self.words)(found.without_ends()));
        let words = |one: &PairsOfSetting| (self.words)(one.estimate(self.compare));
        let compared = tuned.study.runs.iter().filter(|run| is_of_pair(&tuned.study, run));
        let sentences = [
            format!("Beside {} = {}: {}", self.key[0], self.key[1], pairs.by_setting(words)),
            scale_of_runs(compared),
            if is_open { tuned.note() } else { "" }.to_owned(),
        ];
        let headline = format!("{}: {}", self.what, joined(values, ", "));
        Verdict::new(self.claim, ruling, pairs.seeds(), headline, sentences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{self, Confirmed, Qualified, Refuted};
    use crate::experiments::training::claims::tuning::at_three_rates;

    /// Three seeds: the usual value of a key, and another one whose loss is higher by `loss` and whose peak is `ratio` times.
    fn runs([key, usual]: [&str; 2], other: &str, loss: f64, ratio: f64) -> Trainings {
        let run = |(value, loss, peak, seed): (&str, f64, f64, u64)| {
            let arm = if value == "gam" { value } else { "mhsa" };
            let mut run = TrainingRun::made_up(value, arm, seed, peak, loss + 0.001 * seed as f64);
            let layers = if [key, value] == ["recursions", "1"] { "4" } else { "3" };
            let given =
                [(key, value), ("label_noise", "0.3"), ("router", "expert"), ("layers", layers)];
            given.iter().for_each(|&(key, value)| run.settings.insert(key, &value.into()));
            run
        };
        let values = [(usual, 2.0, 30.0), (other, 2.0 + loss, 30.0 * ratio)];
        let of_seeds = |(value, loss, peak)| (0..3).map(move |seed| (value, loss, peak, seed));
        Trainings::made_up(values.into_iter().flat_map(of_seeds).map(run))
    }

    fn statuses(study: &Trainings) -> Vec<VerdictStatus> {
        verdicts(study).iter().map(|verdict| verdict.status).collect()
    }

    #[test]
    fn each_key_has_every_status() {
        for (key, other, up, raises) in [
            (["loss_exponent", "1.0"], "0.5", -0.1, false),
            (["ternary", "false"], "true", 0.0, true),
            (["arm", "mhsa"], "gam", 0.0, true),
            (["upstream_steps", "0"], "2000", -0.1, true),
            (["recursions", "1"], "3", -0.1, true),
        ] {
            let with = |loss, ratio| at_three_rates(&runs(key, other, loss, ratio));
            let [holds, fails] = if raises { [2.0, 1.0] } else { [0.5, 1.0] };
            assert_eq!(statuses(&with(up, holds)), [Confirmed, Confirmed], "{key:?}");
            assert_eq!(statuses(&with(0.2, fails)), [Refuted, Refuted], "{key:?}");
            assert_eq!(statuses(&runs(key, other, up, holds)), [Qualified, Qualified], "one rate");
            let mut usual = with(up, holds);
            usual.runs.retain(|run| run.settings.get(key[0]) == Some(key[1]));
            assert!(verdicts(&usual).is_empty(), "{key:?} has one value");
        }
    }
}
