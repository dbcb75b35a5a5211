//! The verdict on inference.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::table::{Latencies, LatencyRound, Spread, plural};

/// The paper's: up to 36 % less.
pub(super) const LESS: f64 = 0.36;
/// Times within this ratio of each other are alike: what else a machine does moves them by some per cent.
pub(super) const ALIKE: f64 = 0.95;

type Time = fn(&LatencyRound) -> f64;

/// The least of `ls`'s times over `mhsa`'s, reading or one token more, over all lengths: "up to" is the paper's word, so
/// one length is enough. Of a few rounds, which are no draws of a law, the range stands for the interval: from `ls`'s least
/// over `mhsa`'s greatest to the reverse.
///
/// *Not yet measured*: one of the arms is missing.
pub(crate) fn latency(study: &Latencies) -> Verdict {
    let kinds: [(&str, Time); 2] =
        [("reading", |round| round.prefill_s), ("one token more", |round| round.decode_s)];
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
        let why = "Needs times of both arms, ls and mhsa, at one length.";
        return Verdict::new(Claim::Latency, why.to_owned(), Word::NotYetMeasured, 0);
    }
    let word = if ratios.iter().any(|(_, _, ratio)| ratio.high <= 1.0 - LESS) {
        Word::Confirmed
    } else if ratios.iter().all(|(_, _, ratio)| ratio.low >= ALIKE) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let text = |(name, _): &(&str, Time)| {
        let each: Vec<String> = ratios
            .iter()
            .filter(|ratio| ratio.0 == *name)
            .map(|(_, n, ratio)| format!("{} at {n}", ratio.shown(2)))
            .collect();
        format!("{name}: {}", each.join(", "))
    };
    let all: Vec<String> = kinds.iter().map(text).collect();
    let measured = format!(
        "ls's time over mhsa's at n tokens on a CPU, both of this project's own, medians (least–greatest) over rounds. {}. {}.",
        all.join("; "),
        plural(rounds, "round")
    );
    Verdict::new(Claim::Latency, measured, word, rounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::LatencyCell;

    fn judged(ls: f64, rounds: usize) -> Word {
        judged_times(&[ls], rounds)
    }

    fn judged_times(ls: &[f64], rounds: usize) -> Word {
        let round =
            |time: &f64| LatencyRound { prefill_s: *time, decode_s: *time, cache_bytes: 1.0 };
        let cell = |arm: &str, times: &[f64]| LatencyCell {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            n: 1024,
            rounds: times.iter().cycle().map(round).take(rounds).collect(),
        };
        latency(&Latencies { cells: vec![cell("mhsa", &[1.0]), cell("ls", ls)] }).word
    }

    #[test]
    fn every_word_has_its_times() {
        assert_eq!(judged(0.5, 3), Word::Confirmed);
        assert_eq!(judged(0.5, 2), Word::Qualified);
        assert_eq!(judged(0.9, 3), Word::Qualified);
        assert_eq!(judged(1.1, 3), Word::Refuted);
        assert_eq!(judged(1.1, 2), Word::Qualified, "two rounds");
        assert_eq!(judged(0.97, 3), Word::Refuted, "alike");
        assert_eq!(judged_times(&[0.5, 0.5, 0.7], 3), Word::Qualified, "not in every round");
        assert_eq!(judged_times(&[0.9, 1.1, 1.1], 3), Word::Qualified, "less in a round");
        assert_eq!(latency(&Latencies { cells: Vec::new() }).word, Word::NotYetMeasured);
    }
}
