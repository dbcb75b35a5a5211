//! Verdicts on the cause of trained heads' large logits: positions, or the rank of queries and keys.

use std::collections::BTreeMap;

use crate::claims::Verdict;
use crate::claims::estimate::{Estimate, shown};
use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::{from_to, joined};
use crate::claims::{Claim, Group, Origin};
use crate::experiments::lattice::tables::lattice::{LatticeOfHead, Lattices};
use crate::experiments::ramp::tables::LOCAL_MASS;
use crate::heads::InputSet;
use crate::table::plural;

/// A share of log(needed / floor) of at least this makes logits large.
const MAKES: f64 = 0.5;
/// A share of at most this is next to nothing.
const NEXT_TO_NOTHING: f64 = 0.1;
/// If at least this share of the logits needed with the head's inputs remains, nearly all remains.
const STAYS: f64 = 0.9;
/// A head is local if at least this share of its attention is on the last 16 tokens.
const LOCAL: f64 = 0.8;
/// Free queries and keys lack rank if they need at least this many times the floor at the head's rank.
const SHORT_FREE: f64 = 1.5;
/// The head's own inputs lack rank if they need at least this many times as much at its rank as at any rank.
const SHORT_OWN: f64 = 2.0;
/// Up to this factor, rank costs next to nothing.
const ENOUGH: f64 = 1.1;

/// Sets with few added columns, too few to replace the width of the inputs; they decide whether the claim is confirmed.
const FEW: [InputSet; 2] = [InputSet::Line, InputSet::Pair];
/// The same and a set with several pairs; if these save next to nothing, the claim is refuted.
const MANY: [InputSet; 3] = [InputSet::Line, InputSet::Pair, InputSet::Pairs4];

pub(crate) const POSITIONS_MAKE_LOGITS: Claim = Claim {
    id: "PositionsMakeLogits",
    text: "Predicted here: logits are large because the layer input does not separate positions",
    group: Group::TrainedHeads,
    origin: Origin::Here,
    place: "predicted here, position ramp",
    rule: [
        "In the largest local head (mass {0} on the last 16 tokens) of every model of mhsa, a line or \
            one Fourier pair removes {1} or more of log(needed/floor), beyond a column of ones.",
        "The best of a line, one pair and four removes {2} or less in every one; or with a column per \
            position {3} or more of needed stays.",
    ],
    bounds: &[LOCAL_MASS, MAKES, NEXT_TO_NOTHING, STAYS],
    lacking: [
        "no local head was fitted so",
        "Needs models of mhsa with a local head, fitted with ones, a line, one Fourier pair and four \
            given.",
    ],
    ..Claim::PLAIN
};

pub(crate) const RANK_MAKES_LOGITS: Claim = Claim {
    id: "RankMakesLogits",
    text: "Logits are large because queries and keys of d channels lack rank",
    group: Group::TrainedHeads,
    origin: Origin::Derived,
    place: "the rank argument, trained heads",
    rule: [
        "In the largest head of every model, free queries and keys of rank d need {0} times the floor \
            or more, or those of the layer input {1} times what any rank needs.",
        "Both are at most {2} in every model.",
    ],
    bounds: &[SHORT_FREE, SHORT_OWN, ENOUGH],
    lacking: [
        "no heads were fitted so",
        "Needs heads fitted with free queries and keys, at their rank and at any.",
    ],
    ..Claim::PLAIN
};

/// The number of heads in each group by a key.
fn counts<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    keys.fold(BTreeMap::new(), |mut counts, key| {
        *counts.entry(key).or_default() += 1;
        counts
    })
}

/// Tests whether separating positions makes logits large, in the largest local head of every `mhsa` model at its last
/// step. It takes the share of log(needed / floor), with the head's inputs at any rank, that vanishes if position
/// columns are added. Only what exceeds the effect of a column of ones counts, since that separates no positions.
///
/// A column for every position confirms nothing. W_q·W_kᵀ then has more entries than two passages have allowed pairs,
/// and reaches nearly any attention.
pub(crate) fn positions(study: &Lattices) -> Verdict {
    let epsilon = study.epsilon_told();
    let last = study.last_step();
    let is_of_claim =
        |head: &LatticeOfHead| head.arm == "mhsa" && head.epsilon == epsilon && head.step == last;
    let models = study.largest(is_of_claim).len();
    let best = |head: &LatticeOfHead, sets: &[InputSet]| -> Option<f64> {
        let shares: Option<Vec<f64>> =
            sets.iter().map(|&set| head.share_saved_beyond_bias(set)).collect();
        shares?.into_iter().reduce(f64::max)
    };
    let local = study.largest(|head| is_of_claim(head) && head.mass_within_16 >= LOCAL);
    // Each head with its best share over the sets with few columns, and over those with many.
    let heads: Vec<(&LatticeOfHead, f64, f64)> = local
        .into_iter()
        .filter_map(|head| Some((head, best(head, &FEW)?, best(head, &MANY)?)))
        .collect();
    if heads.is_empty() {
        return Verdict::lacking(POSITIONS_MAKE_LOGITS);
    }
    let stays =
        || heads.iter().filter_map(|(head, ..)| Some(1.0 / head.saved_by(InputSet::Positions)?));
    let is_confirmed = heads.iter().all(|(_, few, _)| *few >= MAKES);
    let is_refuted = heads.iter().all(|(.., many)| *many <= NEXT_TO_NOTHING)
        || (stays().next().is_some() && stays().all(|stays| stays >= STAYS));
    let percent = |share: &mut dyn Iterator<Item = f64>| {
        shown(Estimate::median(share.map(|share| 100.0 * share)), 2)
    };
    let [line, pair, four] = MANY.map(|set| {
        percent(&mut heads.iter().filter_map(|(head, ..)| head.share_saved_beyond_bias(set)))
    });
    let left_out = match models - heads.len() {
        0 => String::new(),
        some => format!("{} without a local head left out", plural(some, "model")),
    };
    let headline = format!("position columns remove {line} % (line), {pair} % (one Fourier pair)");
    let sentences = [
        format!(
            "Share of log(needed/floor) that columns added to the layer input remove, beyond ones: line {line} %, Fourier \
             pair {pair} %, four {four} %"
        ),
        format!("With a column per position {} % of needed stays", percent(&mut stays())),
        format!("KL {epsilon}"),
        left_out,
    ];
    let runs = counts(heads.iter().map(|(head, ..)| head.run.as_str()));
    let seeds = Seeds::all(runs.into_values().min().unwrap_or(0));
    let ruling = Ruling::of_rule(is_confirmed, is_refuted);
    Verdict::new(POSITIONS_MAKE_LOGITS, ruling, seeds, headline, sentences)
}

/// A head with the cost of its rank over any rank: with free queries and keys, and with its own inputs.
struct RankCost<'h> {
    head: &'h LatticeOfHead,
    free: f64,
    own: Option<f64>,
}

/// Tests whether the rank d of queries and keys makes logits large, by the cost of rank d over any rank. It uses free
/// queries and keys and the head's own inputs, for the largest head of every model at its last step.
///
/// With RoPE there are no own inputs at any rank; then only the free queries and keys decide.
pub(crate) fn rank(study: &Lattices) -> Verdict {
    let epsilon = study.epsilon_told();
    let last = study.last_step();
    let heads = study.largest(|head| head.epsilon == epsilon && head.step == last);
    let costs: Vec<RankCost<'_>> = heads
        .into_iter()
        .filter_map(|head| {
            let free = head.cost_of_rank(InputSet::Free)?;
            Some(RankCost { head, free, own: head.cost_of_rank(InputSet::Own) })
        })
        .collect();
    if costs.is_empty() {
        return Verdict::lacking(RANK_MAKES_LOGITS);
    }
    let ruling = |one: &RankCost<'_>| {
        let is_short = one.free >= SHORT_FREE || one.own.is_some_and(|own| own >= SHORT_OWN);
        let is_enough = one.free <= ENOUGH && one.own.is_none_or(|own| own <= ENOUGH);
        Ruling::of_rule(is_short, is_enough)
    };
    let runs = counts(costs.iter().map(|one| one.head.run.as_str()));
    let ranks = counts(costs.iter().map(|one| one.head.own_rank));
    let estimates = ranks.keys().map(|&rank| {
        let of_rank = || costs.iter().filter(move |one| one.head.own_rank == rank);
        let free = Estimate::median(of_rank().map(|one| one.free));
        (rank, free, Estimate::median(of_rank().filter_map(|one| one.own)))
    });
    let estimates: Vec<(usize, Option<Estimate>, Option<Estimate>)> = estimates.collect();
    let medians = |of_rank: Vec<Option<Estimate>>| {
        from_to(of_rank.into_iter().flatten().map(|one| one.value), 2)
    };
    let [least, greatest] = [ranks.keys().min(), ranks.keys().max()]
        .map(|rank| rank.map_or_else(String::new, ToString::to_string));
    let headline = format!(
        "rank d costs {}× free, {}× from inputs, d = {}",
        medians(estimates.iter().map(|(_, free, _)| *free).collect()),
        medians(estimates.iter().map(|(.., own)| *own).collect()),
        if least == greatest { least } else { format!("{least}–{greatest}") },
    );
    let each = estimates
        .iter()
        .map(|(rank, free, own)| format!("d = {rank}: {} / {}", shown(*free, 3), shown(*own, 3)));
    let sentences = [
        format!(
            "Needed at rank d over any rank, free / from the layer input: {}",
            joined(each, "; ")
        ),
        plural(costs.len(), "model"),
    ];
    let seeds = Seeds::of_settings(runs.into_values());
    let ruling = Ruling::every(costs.iter().map(ruling));
    Verdict::new(RANK_MAKES_LOGITS, ruling, seeds, headline, sentences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus;
    use crate::experiments::lattice::tables::lattice::LatticeCorner;
    use crate::experiments::lattice::tables::lattice::made_up::head;
    use crate::heads::RankLimit;

    /// Heads over a floor of 4 that need 40 with their own inputs, and the given values with ones, a line, one pair and four.
    fn study([bias, line, pair, pairs4]: [f64; 4], seeds: u64) -> Lattices {
        let one = |seed| {
            let mut head = head(seed, [40.0, 45.0], line);
            let sets = [(InputSet::Bias, bias), (InputSet::Pair, pair), (InputSet::Pairs4, pairs4)];
            head.corners.extend(sets.map(|(inputs, needed)| LatticeCorner {
                inputs,
                rank: RankLimit::Any,
                needed: Some(needed),
                lower_bound: Some(4.0),
            }));
            head
        };
        Lattices { heads: (0..seeds).map(one).collect(), failed: 0 }
    }

    #[test]
    fn positions_have_every_word() {
        assert_eq!(positions(&study([40.0, 10.0, 30.0, 8.0], 3)).status, VerdictStatus::Confirmed);
        assert_eq!(positions(&study([40.0, 30.0, 10.0, 8.0], 3)).status, VerdictStatus::Confirmed);
        assert_eq!(
            positions(&study([40.0, 10.0, 30.0, 8.0], 2)).status,
            VerdictStatus::Qualified,
            "two seeds"
        );
        let ones = [12.0, 10.0, 10.0, 8.0];
        assert_eq!(
            positions(&study(ones, 3)).status,
            VerdictStatus::Qualified,
            "ones are no positions"
        );
        assert_eq!(
            positions(&study([40.0, 30.0, 30.0, 5.0], 3)).status,
            VerdictStatus::Qualified,
            "only many"
        );
        assert_eq!(positions(&study([12.0, 11.5, 11.8, 11.0], 3)).status, VerdictStatus::Refuted);
        let mut all = study([40.0, 35.0, 35.0, 30.0], 3);
        for head in &mut all.heads {
            head.corners.push(LatticeCorner {
                inputs: InputSet::Positions,
                rank: RankLimit::Any,
                needed: Some(37.0),
                lower_bound: Some(4.0),
            });
        }
        assert_eq!(
            positions(&all).status,
            VerdictStatus::Refuted,
            "every position leaves 0.9 or more"
        );
        let mut global = study([40.0, 10.0, 10.0, 5.0], 3);
        global.heads.iter_mut().for_each(|head| head.mass_within_16 = 0.3);
        assert_eq!(positions(&global).status, VerdictStatus::NotMeasured);
        global.heads[0].mass_within_16 = 0.9;
        assert_ne!(positions(&global).status, VerdictStatus::NotMeasured);
        let measured = positions(&study([40.0, 10.0, 20.0, 8.0], 3)).measured;
        assert!(measured.contains("60 %") && measured.contains("30 %"), "{measured}");
    }

    /// Heads that need 4 at any rank and 5 at their own. With their inputs they need 40 at any rank and `own_at_rank`
    /// at their own.
    fn ranked(own_at_rank: f64, seeds: u64) -> VerdictStatus {
        let one = |seed| head(seed, [40.0, own_at_rank], 20.0);
        rank(&Lattices { heads: (0..seeds).map(one).collect(), failed: 0 }).status
    }

    #[test]
    fn rank_has_every_word() {
        assert_eq!(ranked(90.0, 3), VerdictStatus::Confirmed);
        assert_eq!(ranked(90.0, 2), VerdictStatus::Qualified, "two seeds");
        assert_eq!(ranked(60.0, 3), VerdictStatus::Qualified);
        assert_eq!(
            ranked(41.0, 3),
            VerdictStatus::Qualified,
            "free ones need 1.25 times the floor"
        );
        let mut own = head(1, [40.0, 41.0], 20.0);
        own.corners.retain(|corner| corner.inputs == InputSet::Own);
        assert_eq!(
            rank(&Lattices { heads: vec![own], failed: 0 }).status,
            VerdictStatus::NotMeasured
        );
        let mut enough = Lattices { heads: vec![head(1, [40.0, 41.0], 20.0)], failed: 0 };
        enough.heads.extend([2, 3].map(|seed| head(seed, [40.0, 41.0], 20.0)));
        for one in &mut enough.heads {
            let free = |c: &&mut LatticeCorner| c.inputs == InputSet::Free && c.needed == Some(5.0);
            one.corners.iter_mut().filter(free).for_each(|corner| corner.needed = Some(4.2));
        }
        assert_eq!(rank(&enough).status, VerdictStatus::Refuted);
        let measured = rank(&enough).measured;
        assert!(measured.contains("1.05") && measured.contains("1.02"), "{measured}");
    }
}
