//! Verdicts on what makes trained heads' logits large: positions, or the rank of queries and keys.

use super::claim::{Claim, Group, Origin, Rule};
use super::phrases::from_to;
use super::verdict::{Verdict, VerdictStatus};
use crate::predict::InputSet;
use crate::table::{LOCAL_MASS, LatticeOfHead, Lattices, Spread, plural};

pub(super) const POSITIONS_MAKE_LOGITS: Claim = Claim {
    id: "PositionsMakeLogits",
    text: "Predicted here: logits are large because the layer input does not separate positions",
    group: Group::TrainedHeads,
    origin: Origin::Here,
    place: "predicted here, position ramp",
    rule: || Rule {
        confirmed: format!(
            "In the largest local head (mass {LOCAL_MASS} on the last 16 tokens) of every model \
            of mhsa, a line or one Fourier pair removes {MAKES} or more of log(needed/floor), \
            beyond a column of ones."
        ),
        refuted: format!(
            "The best of a line, one pair and four removes {NEXT_TO_NOTHING} or less in every \
            one; or with a column per position {STAYS} or more of needed stays."
        ),
    },
    ..Claim::PLAIN
};

pub(super) const RANK_MAKES_LOGITS: Claim = Claim {
    id: "RankMakesLogits",
    text: "Logits are large because queries and keys of d channels lack rank",
    group: Group::TrainedHeads,
    origin: Origin::Derived,
    place: "the rank argument, trained heads",
    rule: || Rule {
        confirmed: format!(
            "In the largest head of every model, free queries and keys of rank d need \
            {SHORT_FREE} times the floor or more, or those of the layer input {SHORT_OWN} times \
            what any rank needs."
        ),
        refuted: format!("Both are at most {ENOUGH} in every model."),
    },
    ..Claim::PLAIN
};

/// A share of log(needed / floor) from here on makes logits large.
const MAKES: f64 = 0.5;
/// A share up to here is next to nothing.
const NEXT_TO_NOTHING: f64 = 0.1;
/// Of what the head's inputs need, from here on nearly all stays.
const STAYS: f64 = 0.9;
/// A head is local with so much of its attention on the last 16 tokens.
const LOCAL: f64 = 0.8;

/// Columns too few to stand for the width of the inputs: what confirms.
const FEW: [InputSet; 2] = [InputSet::Line, InputSet::Pair];
/// What they and several pairs more save is next to nothing: what refutes.
const MANY: [InputSet; 3] = [InputSet::Line, InputSet::Pair, InputSet::Pairs4];

/// Whether it is telling positions apart that makes logits large: the share of log(needed / floor), with the head's inputs and
/// any rank, that goes where positions are given for nothing, in the largest local head of every `mhsa` model at its
/// last step. Counted is what goes beyond what a column of ones takes away, which tells no positions apart.
///
/// *Not measured*: no `mhsa` model with a local head and these sets of inputs.
///
/// A column for every position confirms nothing: with so many W_q·W_kᵀ has more entries than two passages have visible
/// pairs, and reaches nearly any attention.
pub(crate) fn positions(study: &Lattices) -> Verdict {
    let epsilon = study.epsilon_told();
    let last = study.last_step();
    let is_of_claim =
        |head: &LatticeOfHead| head.arm == "mhsa" && head.epsilon == epsilon && head.step == last;
    let models = study.largest(is_of_claim).len();
    let best = |head: &LatticeOfHead, sets: &[InputSet]| -> Option<f64> {
        let shares: Option<Vec<f64>> =
            sets.iter().map(|&set| head.share_saved_beyond_bias(set)).collect();
        Some(shares?.into_iter().fold(f64::NEG_INFINITY, f64::max))
    };
    let heads: Vec<Given<'_>> = study
        .largest(|head| is_of_claim(head) && head.mass_within_16 >= LOCAL)
        .into_iter()
        .filter_map(|head| Some(Given { head, few: best(head, &FEW)?, many: best(head, &MANY)? }))
        .collect();
    let over =
        |value: &dyn Fn(&Given<'_>) -> Option<f64>| Spread::of(heads.iter().filter_map(value));
    let (Some(few), Some(many)) = (over(&|one| Some(one.few)), over(&|one| Some(one.many))) else {
        let needs = "Needs models of mhsa with a local head, fitted with ones, a line, one Fourier pair and four given.";
        return Verdict::lacking(POSITIONS_MAKE_LOGITS, "no local head was fitted so", needs);
    };
    let stays = over(&|one| Some(1.0 / one.head.saved_by(InputSet::Positions)?));
    let status = if few.low >= MAKES {
        VerdictStatus::Confirmed
    } else if many.high <= NEXT_TO_NOTHING || stays.is_some_and(|stays| stays.low >= STAYS) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let mut runs: Vec<&str> = heads.iter().map(|one| one.head.run.as_str()).collect();
    runs.sort_unstable();
    runs.dedup();
    let seeds = runs
        .iter()
        .map(|run| heads.iter().filter(|one| one.head.run == *run).count())
        .min()
        .unwrap_or(0);
    let shown = |spread: Option<Spread>, digits| {
        spread.map_or_else(|| "–".to_owned(), |spread: Spread| spread.shown(digits))
    };
    let percent = |share: &dyn Fn(&LatticeOfHead) -> Option<f64>| {
        shown(over(&|one| Some(100.0 * share(one.head)?)), 2)
    };
    let beyond = |set: InputSet| percent(&move |head| head.share_saved_beyond_bias(set));
    let left_out = match models - heads.len() {
        0 => String::new(),
        some => format!(" {} without a local head left out.", plural(some, "model")),
    };
    let headline = format!(
        "position columns remove {} % (line), {} % (one Fourier pair), {}",
        beyond(InputSet::Line),
        beyond(InputSet::Pair),
        plural(seeds, "seed")
    );
    let text = format!(
        "Share of log(needed/floor) that columns added to the layer input remove, beyond ones: line {} %, Fourier pair {} \
         %, four {} %. With a column per position {} % of needed stays. KL {epsilon}.{left_out}",
        beyond(InputSet::Line),
        beyond(InputSet::Pair),
        beyond(InputSet::Pairs4),
        percent(&|head| Some(1.0 / head.saved_by(InputSet::Positions)?)),
    );
    Verdict::new(POSITIONS_MAKE_LOGITS, [headline, text], status, seeds)
}

/// A head, and what its rank costs it over any: free, and with its own inputs.
struct Ranked<'h> {
    head: &'h LatticeOfHead,
    free: f64,
    own: Option<f64>,
}

/// A head, and the best shares that positions for nothing take away: few columns of them, and many.
struct Given<'h> {
    head: &'h LatticeOfHead,
    few: f64,
    many: f64,
}

/// Free queries and keys of the head's rank that need so many times the floor are short of rank.
const SHORT_FREE: f64 = 1.5;
/// The head's own inputs that need so many times as much at its rank as at any are short of rank.
const SHORT_OWN: f64 = 2.0;
/// Up to so many times, rank costs next to nothing.
const ENOUGH: f64 = 1.1;

/// Whether it is the rank of queries and keys, d, that makes logits large: what rank d costs over any rank, for free
/// queries and keys and for the head's own inputs, in the largest head of every model at its last step.
///
/// *Not measured*: no model whose heads were fitted freely.
///
/// Rotated queries and keys have no own inputs of any rank; there the free ones alone tell.
pub(crate) fn rank(study: &Lattices) -> Verdict {
    let epsilon = study.epsilon_told();
    let last = study.last_step();
    let heads = study.largest(|head| head.epsilon == epsilon && head.step == last);
    let costs: Vec<Ranked<'_>> = heads
        .into_iter()
        .filter_map(|head| {
            let free = head.cost_of_rank(InputSet::Free)?;
            Some(Ranked { head, free, own: head.cost_of_rank(InputSet::Own) })
        })
        .collect();
    if costs.is_empty() {
        let needs = "Needs heads fitted with free queries and keys, at their rank and at any.";
        return Verdict::lacking(RANK_MAKES_LOGITS, "no heads were fitted so", needs);
    }
    let is_short =
        |one: &Ranked<'_>| one.free >= SHORT_FREE || one.own.is_some_and(|own| own >= SHORT_OWN);
    let is_enough =
        |one: &Ranked<'_>| one.free <= ENOUGH && one.own.is_none_or(|own| own <= ENOUGH);
    let status = if costs.iter().all(is_short) {
        VerdictStatus::Confirmed
    } else if costs.iter().all(is_enough) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let mut runs: Vec<(usize, &str)> =
        costs.iter().map(|one| (one.head.own_rank, &*one.head.run)).collect();
    runs.sort_unstable();
    runs.dedup();
    let seeds_of = |run: &str| costs.iter().filter(|one| one.head.run == run).count();
    let over = |d: usize, value: &dyn Fn(&Ranked<'_>) -> Option<f64>| {
        let of_rank = costs.iter().filter(|one| one.head.own_rank == d);
        Spread::of(of_rank.filter_map(value)).map_or_else(|| "–".to_owned(), |s| s.shown(3))
    };
    let mut ranks: Vec<usize> = runs.iter().map(|(d, _)| *d).collect();
    ranks.dedup();
    let seeds = runs.iter().map(|(_, run)| seeds_of(run)).min().unwrap_or(0);
    let each = ranks.iter().map(|&d| {
        let (free, own) = (over(d, &|one| Some(one.free)), over(d, &|one| one.own));
        format!("d = {d}: {free} / {own}")
    });
    let medians = |value: &dyn Fn(&Ranked<'_>) -> Option<f64>| {
        let of_rank = |d: usize| {
            let of_rank = costs.iter().filter(|one| one.head.own_rank == d);
            Some(Spread::of(of_rank.filter_map(value))?.median)
        };
        from_to(ranks.iter().filter_map(|&d| of_rank(d)), 2)
    };
    let headline = format!(
        "rank d costs {}× free, {}× from inputs, d = {}, {}",
        medians(&|one| Some(one.free)),
        medians(&|one| one.own),
        from_to(ranks.iter().map(|&d| d as f64), 2).replace(".0", ""),
        plural(seeds, "seed")
    );
    let text = format!(
        "Needed at rank d over any rank, free / from the layer input: {}. {}.",
        each.collect::<Vec<_>>().join("; "),
        plural(costs.len(), "model"),
    );
    let seeds = runs.iter().map(|(_, run)| seeds_of(run));
    Verdict::over(RANK_MAKES_LOGITS, [headline, text], status, seeds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::RankLimit;
    use crate::table::{LatticeCorner, made_up_lattice as head};

    /// Heads that need 40 with their own inputs, and so much with ones, a line, one pair and four, over a floor of 4.
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

    /// Heads that need 4 at any rank and 5 at their own, and with their inputs 40 and so much.
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
