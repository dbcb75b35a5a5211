//! The verdict on inference.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::table::{Latencies, LatencyCell, Spread, plural, significant};

/// The paper's: up to 36 % less.
const LESS: f64 = 0.36;

type Time = fn(&LatencyCell) -> Option<Spread>;

/// The least of `ls`'s times over `mhsa`'s, reading or one token more, over all lengths.
///
/// - *confirmed*: at some length it is 0.64 or less, three rounds or more;
/// - *refuted*: at none is it under 1;
/// - *qualified*: it is less, but not by so much, or rounds are few;
/// - *not yet measured*: one of the arms is missing.
pub(crate) fn latency(study: &Latencies) -> Verdict {
    let kinds: [(&str, Time); 2] =
        [("reading", |cell| cell.prefill_s), ("one token more", |cell| cell.decode_s)];
    let mut ratios: Vec<(&str, usize, f64)> = Vec::new();
    let mut rounds = usize::MAX;
    for cell in study.cells.iter().filter(|cell| cell.arm == "ls") {
        let Some(mhsa) = study.at("mhsa", cell.n) else { continue };
        rounds = rounds.min(cell.rounds.min(mhsa.rounds));
        for (name, of) in kinds {
            if let (Some(ours), Some(theirs)) = (of(cell), of(mhsa)) {
                ratios.push((name, cell.n, ours.median / theirs.median));
            }
        }
    }
    let Some(least) = ratios.iter().map(|r| r.2).reduce(f64::min) else {
        let why = "Needs times of both arms, ls and mhsa, at one length.";
        return Verdict::new(Claim::Latency, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let word = match least {
        least if least <= 1.0 - LESS => Word::Confirmed,
        least if least < 1.0 => Word::Qualified,
        _ => Word::Refuted,
    };
    let text = |(name, _): &(&str, Time)| {
        let each: Vec<String> = ratios
            .iter()
            .filter(|ratio| ratio.0 == *name)
            .map(|(_, n, ratio)| format!("{} at {n}", significant(*ratio, 2)))
            .collect();
        format!("{name}: {}", each.join(", "))
    };
    let all: Vec<String> = kinds.iter().map(text).collect();
    let measured = format!(
        "ls's time over mhsa's on a CPU, both of this project's own. {}. {}.",
        all.join("; "),
        plural(rounds, "round")
    );
    Verdict::new(Claim::Latency, measured, word, rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ls: f64, rounds: usize) -> Word {
        let cell = |arm: &str, time: f64| LatencyCell {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            n: 1024,
            prefill_s: Spread::of([time]),
            decode_s: Spread::of([time]),
            cache_bytes: None,
            rounds,
        };
        latency(&Latencies { cells: vec![cell("mhsa", 1.0), cell("ls", ls)] }).word
    }

    #[test]
    fn every_word_has_its_times() {
        assert_eq!(judged(0.5, 3), Word::Confirmed);
        assert_eq!(judged(0.5, 2), Word::Qualified);
        assert_eq!(judged(0.9, 3), Word::Qualified);
        assert_eq!(judged(1.1, 3), Word::Refuted);
        assert_eq!(latency(&Latencies { cells: Vec::new() }).word, Word::NotYetMeasured);
    }
}
