//! The verdict on inference latency.

use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::{from_to, joined};
use crate::claims::{Claim, Group, Verdict};
use crate::experiments::latency::LatencyMeasurement;
use crate::experiments::latency::tables::{Latencies, LatencyGroup};
use crate::table::Estimate;

/// The paper's number: up to 36 % less.
const LESS: f64 = 0.36;
/// Times whose ratio is above this count as equal, because other load on the machine changes times by some per cent.
const ALIKE: f64 = 0.95;

type Time = fn(&LatencyMeasurement) -> f64;

/// The claims that [`verdicts`] decides, and those on the same subject for which no study has rows.
pub(crate) const CLAIMS: &[Claim] = &[LATENCY, TWENTIETH, FLASH_ATTENTION];

pub(crate) const LATENCY: Claim = Claim {
    id: "Latency",
    text: "LS-attention's inference latency is up to 36 % lower",
    group: Group::Cost,
    place: "abstract, figures",
    paper_says: Some("up to 36 % less"),
    rule: [
        "Not by this project's CPU kernels, which are what is measured here; a length where ls takes \
            at most {0} of mhsa's time is qualified.",
        "Not by CPU times; the paper's are of a GPU.",
    ],
    bounds: &[1.0 - LESS],
    lacking: ["times of a variant are missing", "Needs times of ls and mhsa at one length."],
    ..Claim::PLAIN
};

const TWENTIETH: Claim = Claim {
    id: "Twentieth",
    text: "LS-attention reaches another stabiliser's perplexity in 1/20 of its GPU hours",
    group: Group::Cost,
    place: "abstract, figures",
    paper_says: Some("1/20 of the GPU hours"),
    not_measured: [
        "no trainings on a GPU",
        "Not measured: the paper counts GPU hours, and no committed run was trained on a GPU.",
    ],
    rule: [
        "No rule yet: it needs GPU times at tuned rates, and at most 0.075 of each stabiliser's.",
        "No rule yet: such times, and more than 0.075 of each stabiliser's.",
    ],
    ..Claim::PLAIN
};

const FLASH_ATTENTION: Claim = Claim {
    id: "FlashAttention",
    text: "LS-attention is faster than FlashAttention-2 on a GPU at equal size",
    group: Group::Cost,
    place: "abstract",
    not_measured: [
        "no GPU and no FlashAttention-2 here",
        "Not measured: all times here are of this project's own CPU kernels (study latency).",
    ],
    rule: [
        "No rule yet: it needs a GPU and FlashAttention-2, and less time of ls at every length.",
        "No rule yet: such times, and no less time of ls at any length.",
    ],
    ..Claim::PLAIN
};

/// The verdicts on [`CLAIMS`].
pub(crate) fn verdicts(study: &Latencies) -> Vec<Verdict> {
    vec![latency(study)]
}

/// The smallest ratio of `ls`'s time to `mhsa`'s over all lengths, for prefill or the next token. The paper says "up
/// to", so one length is enough. A few rounds are no random sample, so a range replaces the interval: from `ls`'s
/// smallest over `mhsa`'s largest time to the reverse.
///
/// Times of this project's own CPU kernels qualify the claim at most, because the paper's times are from a GPU.
///
/// *Not measured*: one of the variants is missing.
fn latency(study: &Latencies) -> Verdict {
    let cells = study.cells.iter().filter(|cell| cell.arm == "ls");
    let pairs: Vec<(&LatencyGroup, &LatencyGroup)> =
        cells.filter_map(|ls| Some((ls, study.at("mhsa", ls.n)?))).collect();
    let rounds = pairs.iter().map(|(ls, mhsa)| ls.rounds.len().min(mhsa.rounds.len())).min();
    let Some(rounds) = rounds.filter(|rounds| *rounds > 0) else {
        return Verdict::lacking(LATENCY);
    };
    let kinds: [(&str, Time); 2] =
        [("prefill", |round| round.prefill_s), ("next token", |round| round.decode_s)];
    let kinds = kinds.map(|(name, time)| {
        let ratio = |(ls, mhsa): &(&LatencyGroup, &LatencyGroup)| {
            let (ours, theirs) = (ls.over(time)?, mhsa.over(time)?);
            let ends = [ours.low / theirs.high, ours.high / theirs.low];
            Some((ls.n, Estimate::range(ours.median / theirs.median, ends)))
        };
        (name, pairs.iter().filter_map(ratio).collect::<Vec<(usize, Estimate)>>())
    });
    let ratios = || kinds.iter().flat_map(|(_, ratios)| ratios);
    let rulings = || ratios().map(|(_, ratio)| ratio.beyond(1.0 - LESS, ALIKE));
    let is_confirmed = rulings().any(|ruling| ruling == Ruling::Holds);
    let is_refuted = rulings().all(|ruling| ruling == Ruling::Fails);
    let each = kinds.iter().map(|(name, ratios)| {
        let ends = [ratios.first(), ratios.last()].into_iter().flatten();
        let ends = ends.map(|(n, ratio)| format!("{} at n = {n}", ratio.shown(2)));
        format!("{name} {}", joined(ends, " to "))
    });
    let medians = kinds.iter().map(|(name, ratios)| {
        format!("{name} {}×", from_to(ratios.iter().map(|(_, ratio)| ratio.value), 2))
    });
    let headline = format!("{}; own CPU kernels", joined(medians, ", "));
    let sentences = [
        format!(
            "Time over multi-head attention's, this project's CPU kernels: {}",
            joined(each, "; ")
        ),
        "CPU times decide nothing about GPUs".to_owned(),
    ];
    // The paper's times are from a GPU, with the best implementation there.
    let ruling = Ruling::of_rule(is_confirmed, is_refuted).undecided_if(true);
    let seeds = Seeds::all(rounds).called("round");
    Verdict::new(LATENCY, ruling, seeds, headline, sentences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{NotMeasured, Qualified, SingleSeed};

    #[test]
    fn times_of_a_cpu_never_decide() {
        let judged = |ls: &[f64]| {
            let round = |time: &f64| LatencyMeasurement {
                prefill_s: *time,
                decode_s: *time,
                ..LatencyMeasurement::default()
            };
            let cell = |arm: &str, times: &[f64]| LatencyGroup {
                run: arm.to_owned(),
                arm: arm.to_owned(),
                n: 1024,
                rounds: times.iter().map(round).collect(),
            };
            let cells = vec![cell("mhsa", &vec![1.0; ls.len()]), cell("ls", ls)];
            latency(&Latencies { cells }).status
        };
        for time in [0.5, 0.9, 0.97, 1.1] {
            assert_eq!(judged(&[time; 3]), Qualified);
            assert_eq!(judged(&[time]), SingleSeed);
        }
        assert_eq!(judged(&[0.5, 0.5, 0.7]), Qualified, "not in every round");
        assert_eq!(latency(&Latencies { cells: Vec::new() }).status, NotMeasured);
    }
}
