//! The verdict on inference.

use super::claim::{Claim, Group, Origin, Rule};
use super::phrases::from_to;
use super::verdict::{Verdict, VerdictStatus};
use crate::table::{Latencies, LatencyRound, Spread, plural};

pub(super) const LATENCY: Claim = Claim {
    id: "Latency",
    text: "LS-attention's inference latency is up to 36 % lower",
    group: Group::Cost,
    origin: Origin::Paper,
    place: "abstract, figures",
    paper_says: Some("up to 36 % less"),
    rule: || Rule {
        confirmed: format!(
            "Not by this project's CPU kernels, which are what is measured here; a length where \
            ls takes at most {} of mhsa's time is qualified.",
            1.0 - LESS
        ),
        refuted: "Not by CPU times; the paper's are of a GPU.".to_owned(),
    },
    ..Claim::PLAIN
};

/// The paper's: up to 36 % less.
const LESS: f64 = 0.36;
/// Times within this ratio of each other are alike: what else a machine does moves them by some per cent.
const ALIKE: f64 = 0.95;

type Time = fn(&LatencyRound) -> f64;

/// The least of `ls`'s times over `mhsa`'s, reading or one token more, over all lengths: "up to" is the paper's word, so
/// one length is enough. Of a few rounds, which are no draws of a law, the range stands for the interval: from `ls`'s least
/// over `mhsa`'s greatest to the reverse.
///
/// Times of this project's own CPU kernels qualify the claim at most: the paper's are of a GPU.
///
/// *Not measured*: one of the variants is missing.
pub(crate) fn latency(study: &Latencies) -> Verdict {
    let kinds: [(&str, Time); 2] =
        [("prefill", |round| round.prefill_s), ("next token", |round| round.decode_s)];
    let mut ratios: Vec<(&str, usize, Spread)> = Vec::new();
    let mut rounds = usize::MAX;
    for cell in study.cells.iter().filter(|cell| cell.arm == "ls") {
        let Some(mhsa) = study.at("mhsa", cell.n) else { continue };
        rounds = rounds.min(cell.rounds.len().min(mhsa.rounds.len()));
        for (name, of) in kinds {
            if let (Some(ours), Some(theirs)) = (cell.over(of), mhsa.over(of)) {
                let ratio = Spread {
                    median: ours.median / theirs.median,
                    low: ours.low / theirs.high,
                    high: ours.high / theirs.low,
                };
                ratios.push((name, cell.n, ratio));
            }
        }
    }
    if ratios.is_empty() {
        let needs = "Needs times of ls and mhsa at one length.";
        return Verdict::lacking(LATENCY, "times of a variant are missing", needs);
    }
    let status = if ratios.iter().all(|(_, _, ratio)| ratio.low >= ALIKE) {
        VerdictStatus::Refuted
    } else if ratios.iter().any(|(_, _, ratio)| ratio.high <= 1.0 - LESS) {
        VerdictStatus::Confirmed
    } else {
        VerdictStatus::Qualified
    };
    // The paper's times are of a GPU and of the best implementation there.
    let status = status.undecided();
    let of_kind = |name: &str| -> Vec<(usize, Spread)> {
        let of_kind = ratios.iter().filter(|ratio| ratio.0 == name);
        of_kind.map(|(_, n, ratio)| (*n, *ratio)).collect()
    };
    let range = |name: &str| from_to(of_kind(name).iter().map(|(_, ratio)| ratio.median), 2);
    let headline = format!(
        "{} {}×, {} {}×; own CPU kernels, {}",
        kinds[0].0,
        range(kinds[0].0),
        kinds[1].0,
        range(kinds[1].0),
        plural(rounds, "round")
    );
    let text = |(name, _): &(&str, Time)| {
        let all = of_kind(name);
        let ends = [all.first(), all.last()].into_iter().flatten();
        let ends: Vec<String> =
            ends.map(|(n, ratio)| format!("{} at n = {n}", ratio.shown(2))).collect();
        format!("{name} {}", ends.join(" to "))
    };
    let all: Vec<String> = kinds.iter().map(text).collect();
    let measured = format!(
        "Time over multi-head attention's, this project's CPU kernels: {}. CPU times decide nothing about GPUs.",
        all.join("; ")
    );
    Verdict::new(LATENCY, [headline, measured], status, rounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::LatencyCell;

    fn judged(ls: f64, rounds: usize) -> VerdictStatus {
        judged_times(&[ls], rounds)
    }

    fn judged_times(ls: &[f64], rounds: usize) -> VerdictStatus {
        let round =
            |time: &f64| LatencyRound { prefill_s: *time, decode_s: *time, cache_bytes: 1.0 };
        let cell = |arm: &str, times: &[f64]| LatencyCell {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            n: 1024,
            rounds: times.iter().cycle().map(round).take(rounds).collect(),
        };
        latency(&Latencies { cells: vec![cell("mhsa", &[1.0]), cell("ls", ls)] }).status
    }

    #[test]
    fn every_word_has_its_times() {
        for time in [0.5, 0.9, 1.1, 0.97] {
            assert_eq!(judged(time, 3), VerdictStatus::Qualified, "a CPU never decides");
            assert_eq!(judged(time, 1), VerdictStatus::SingleSeed);
        }
        assert_eq!(
            judged_times(&[0.5, 0.5, 0.7], 3),
            VerdictStatus::Qualified,
            "not in every round"
        );
        assert_eq!(latency(&Latencies { cells: Vec::new() }).status, VerdictStatus::NotMeasured);
    }
}
