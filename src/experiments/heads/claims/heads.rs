//! Verdicts on trained heads: which factors drive the growth of their logits, and which quantities order them.

use std::collections::{BTreeMap, BTreeSet};

use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::{from_to, joined};
use crate::claims::{Claim, Group, Origin, Verdict, VerdictStatus};
use crate::experiments::heads::tables::heads::{
    FACTOR_NAMES, HeadRow, Ordering as HeadOrdering, PartsOfGrowth, TrainedHeads,
};
use crate::table::groups::groups;
use crate::table::{Estimate, Spread, plural, significant};

/// A largest logit that grows by less than this factor is not analysed.
const LEAST_GROWTH: f64 = 2.0;
/// A factor with at least this share of the growth drives it.
const CARRIES: f64 = 0.5;
/// A share of at most this counts as next to nothing, as fixed in the prediction.
const NEXT_TO_NOTHING: f64 = 0.1;
/// A partial ρ of at most this counts as next to nothing: it explains 4 % of the variance of ranks.
const NO_ORDER: f64 = 0.2;
/// From this variance inflation on (|ρ| of 0.95), two orders can hardly be separated. The bound of 10 is the usual one
/// (Marquardt 1970, *Technometrics* 12).
const COLLINEAR: f64 = 10.0;
/// Queries and keys lack rank if their rank penalty is at least this.
const SHORT: f64 = 1.5;
/// Up to this factor, a constraint costs next to nothing.
const ENOUGH: f64 = 1.1;
/// The head dimensions that the claim on rank compares.
const DIMENSIONS: [usize; 2] = [4, 32];
/// The number of heads of each model that the claim on rank takes, those with the largest logits.
const LARGEST: usize = 2;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[RANK_CARRIES_GROWTH, NEEDED_TELLS_ACTUAL, RANK_MAKES_LOGITS];

pub(crate) const RANK_CARRIES_GROWTH: Claim = Claim {
    id: "RankCarriesGrowth",
    text: "In training, the rank penalty drives the growth of multi-head attention's logits",
    group: Group::TrainedHeads,
    origin: Origin::Derived,
    place: "the rank argument, in training",
    rule: [
        "The rank penalty is {0} or more of the growth of log max |logit| in every run of mhsa whose \
            largest logit doubles, and by the whole interval of every setting.",
        "It is {1} or less in every run and by every interval.",
    ],
    bounds: &[CARRIES, NEXT_TO_NOTHING],
    lacking: [
        "no run whose logits double",
        "Needs runs of mhsa with several checkpoints, whose largest logit doubles.",
    ],
    ..Claim::PLAIN
};

pub(crate) const NEEDED_TELLS_ACTUAL: Claim = Claim {
    id: "NeededTellsActual",
    text: "Predicted here: needed logits order a model's heads by max |logit| beyond what \
            entropy does",
    group: Group::TrainedHeads,
    origin: Origin::Here,
    place: "predicted here, the order of heads",
    rule: [
        "Within models Spearman's ρ of needed and actual logits is 0.5 or more, the partial ρ given \
            entropy has its whole interval above 0, and the variance inflation is below {0}.",
        "The whole interval of the partial ρ is at most {1}.",
    ],
    bounds: &[COLLINEAR, NO_ORDER],
    lacking: ["no model with enough heads", "Needs models of mhsa with several heads."],
    ..Claim::PLAIN
};

pub(crate) const RANK_MAKES_LOGITS: Claim = Claim {
    id: "RankMakesLogits",
    text: "Logits are large because queries and keys of d channels lack rank",
    group: Group::TrainedHeads,
    origin: Origin::Derived,
    place: "the rank argument, trained heads",
    rule: [
        "In the two largest heads of every model with d_head of 4 to 32, the rank penalty is {0} or \
            more.",
        "In all of them the rank penalty and the input factor are at most {1}.",
    ],
    bounds: &[SHORT, ENOUGH],
    lacking: [
        "no heads of several dimensions were fitted",
        "Needs fitted heads of two or more d_head from 4 to 32.",
    ],
    ..Claim::PLAIN
};

/// The verdicts on [`CLAIMS`].
pub(crate) fn verdicts(study: &TrainedHeads) -> Vec<Verdict> {
    vec![growth(study), ordering(study), rank(study)]
}

/// The share of the rank penalty in the growth of log max |logit|, for every `mhsa` run whose largest logit at least
/// doubles. Intervals are Student's over the seeds of a setting, which is a run and its length.
fn growth(study: &TrainedHeads) -> Verdict {
    let epsilon = study.epsilon_told();
    let grown: Vec<PartsOfGrowth<'_>> = study
        .growth()
        .into_iter()
        .filter(|g| g.head.of.model.arm == "mhsa" && g.head.found.epsilon == epsilon)
        .filter(|g| g.growth >= LEAST_GROWTH.ln())
        .collect();
    let share = |growth: &PartsOfGrowth<'_>, part: usize| growth.by_part[part] / growth.growth;
    let mut by_setting: BTreeMap<(&str, usize), Vec<f64>> = BTreeMap::new();
    for one in &grown {
        by_setting.entry((one.head.run(), one.head.found.n)).or_default().push(share(one, 1));
    }
    let Some(penalty) = Estimate::median(by_setting.values().flatten().copied()) else {
        return Verdict::lacking(RANK_CARRIES_GROWTH);
    };
    // Every share and every interval over seeds must agree.
    let settings: Vec<(&Vec<f64>, Estimate)> = by_setting
        .values()
        .filter_map(|shares| Some((shares, Estimate::mean(shares.iter().copied())?)))
        .collect();
    let ruling = Ruling::every(settings.iter().map(|(shares, mean)| {
        mean.beyond(CARRIES, NEXT_TO_NOTHING)
            .undecided_if_holds(shares.iter().any(|share| *share < CARRIES))
            .undecided_if_fails(shares.iter().any(|share| *share > NEXT_TO_NOTHING))
    }));
    let penalty = penalty.map(|share| 100.0 * share).shown(2);
    let factors = FACTOR_NAMES.iter().enumerate().map(|(part, name)| {
        let median = Spread::of(grown.iter().map(|growth| 100.0 * share(growth, part)));
        let share = match median {
            _ if part == 1 => penalty.clone(),
            Some(spread) => significant(spread.median, 2),
            None => "–".to_owned(),
        };
        format!("{name} {share} %")
    });
    let ends = settings.iter().filter_map(|(_, mean)| Some(100.0 * mean.ends()?[1]));
    let highest = ends.reduce(f64::max).map_or_else(String::new, |high| {
        format!("Intervals of the penalty end at {} % or lower", significant(high, 2))
    });
    let sentences = [
        format!(
            "Median shares of the growth of log max |logit|, KL {epsilon}: {}",
            joined(factors, ", ")
        ),
        highest,
    ];
    let runs = plural(grown.len(), "run");
    let headline = format!("rank penalty carries {penalty} % of the growth ({runs})");
    let seeds = Seeds::of_settings(by_setting.values().map(Vec::len));
    Verdict::new(RANK_CARRIES_GROWTH, ruling, seeds, headline, sentences)
}

/// Tests which quantity orders heads: Spearman's ρ of needed against actual logits within each `mhsa` model, and its
/// partial ρ given the entropy of attention. Both are medians over models, as in the prediction.
///
/// The prediction has a rule without an undecided range and without variance inflation; the sentence gives the status
/// by that rule.
pub(crate) fn ordering(study: &TrainedHeads) -> Verdict {
    let epsilon = study.epsilon_told();
    let all: Vec<HeadOrdering> = study
        .orderings()
        .into_iter()
        .filter(|one| one.arm == "mhsa" && one.epsilon == epsilon)
        .collect();
    let by = |name: &str| all.iter().find(|one| one.by == name);
    let (Some(needed), Some(given)) = (by("needed"), by("needed, given entropy")) else {
        return Verdict::lacking(NEEDED_TELLS_ACTUAL);
    };
    let is_apart = given.variance_inflation().is_some_and(|inflation| inflation < COLLINEAR);
    let (rho, partial) = (needed.correlation.rho, given.correlation);
    let is_ordered = rho >= 0.5 && partial.low > 0.0;
    let ruling = Ruling::of_rule(is_ordered && is_apart, partial.high <= NO_ORDER);
    let as_predicted = match partial.low {
        low if low <= 0.0 => VerdictStatus::Refuted,
        _ if is_ordered => VerdictStatus::Confirmed,
        _ => VerdictStatus::Qualified,
    };
    let collinear = given.variance_inflation().map_or_else(String::new, |inflation| {
        format!("; variance inflation {}", significant(inflation, 2))
    });
    let orders = [
        ("needed", "needed"),
        ("given entropy", "needed, given entropy"),
        ("floor", "floor"),
        ("rank penalty", "inflation"),
        ("low entropy", "low entropy"),
    ];
    let each = orders.map(|(name, order)| {
        let rho = by(order).map_or_else(|| "–".to_owned(), |one| one.correlation.shown());
        format!("{name} {rho}")
    });
    let sentences = [
        format!("Spearman's ρ with max |logit| within a model: {}", joined(each, ", ")),
        format!("KL {epsilon}{collinear}"),
        format!("Rule committed before: {as_predicted}"),
    ];
    let seeds = Seeds::all(partial.groups).called("model");
    let headline = format!("partial ρ {} given entropy{collinear}", partial.shown());
    Verdict::new(NEEDED_TELLS_ACTUAL, ruling, seeds, headline, sentences)
}

/// Tests whether the rank d of queries and keys makes logits large, by the rank penalty of the largest heads of every
/// model at its last step.
///
/// The input factor may contain a cost of rank: what the head's inputs need at any rank is not fitted. So the claim is
/// refuted only if the input factor is small as well.
fn rank(study: &TrainedHeads) -> Verdict {
    let epsilon = study.epsilon_told();
    let [least, greatest] = DIMENSIONS;
    let heads: Vec<(&HeadRow, f64, f64)> = study
        .largest_at_last_step(LARGEST)
        .into_iter()
        .filter(|head| {
            head.found.epsilon == epsilon && (least..=greatest).contains(&head.found.rank)
        })
        .filter_map(|head| head.found.parts().map(|[_, penalty, input, ..]| (head, penalty, input)))
        .collect();
    let by_rank = groups(&heads, |(head, ..)| head.found.rank);
    if by_rank.len() < 2 {
        return Verdict::lacking(RANK_MAKES_LOGITS);
    }
    let mut medians: Vec<(usize, Estimate, Estimate)> = by_rank
        .iter()
        .filter_map(|alike| {
            let penalty = Estimate::median(alike.iter().map(|(_, penalty, _)| *penalty))?;
            let input = Estimate::median(alike.iter().map(|(.., input)| *input))?;
            Some((alike[0].0.found.rank, penalty, input))
        })
        .collect();
    medians.sort_by_key(|(rank, ..)| *rank);
    let headline = format!(
        "rank penalty {}×, input factor {}×, d = {}–{}",
        from_to(medians.iter().map(|(_, penalty, _)| penalty.value), 2),
        from_to(medians.iter().map(|(.., input)| input.value), 2),
        medians[0].0,
        medians[medians.len() - 1].0,
    );
    let each = medians
        .iter()
        .map(|(d, penalty, input)| format!("d = {d}: {} / {}", penalty.shown(3), input.shown(3)));
    let models: BTreeSet<_> = heads.iter().map(|(head, ..)| head.model()).collect();
    let sentences = [
        format!("Rank penalty / input factor, KL {epsilon}: {}", joined(each, "; ")),
        plural(models.len(), "model"),
    ];
    let mut seeds: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
    for (head, ..) in &heads {
        seeds.entry(head.setting()).or_default().insert(head.seed());
    }
    let seeds = Seeds::of_settings(seeds.values().map(BTreeSet::len));
    let ruling = Ruling::every(heads.iter().map(|(_, penalty, input)| {
        Ruling::of_rule(*penalty >= SHORT, *penalty <= ENOUGH && *input <= ENOUGH)
    }));
    Verdict::new(RANK_MAKES_LOGITS, ruling, seeds, headline, sentences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted};
    use crate::experiments::heads::tables::heads::tests::{head, study};

    fn grown(inflation: f64, input_factor: f64, seeds: u64) -> TrainedHeads {
        study((0..seeds).flat_map(|seed| {
            [
                head(("mhsa", seed, 10, 0), [2.0, 1.0, 1.0, 1.0, 1.0], 1.0),
                head(("mhsa", seed, 20, 0), [2.0, inflation, input_factor, 1.0, 1.0], 1.0),
            ]
        }))
    }

    #[test]
    fn growth_has_every_word() {
        let status = |inflation, input, seeds| growth(&grown(inflation, input, seeds)).status;
        assert_eq!(status(4.0, 1.1, 3), Confirmed);
        assert_eq!(status(4.0, 1.1, 2), Qualified, "two seeds");
        assert_eq!(status(1.5, 3.0, 3), Qualified);
        assert_eq!(status(1.02, 4.0, 3), Refuted);
        assert_eq!(status(1.1, 1.1, 3), NotMeasured, "no growth");
        // At most a tenth in every run, but seeds scatter too much to generalise.
        let mut apart = grown(1.001, 4.0, 3);
        apart.heads[1].found.needed = Some(2.0 * 1.13);
        assert_eq!(growth(&apart).status, Qualified);
        let Verdict { measured, .. } = growth(&grown(1.02, 4.0, 3));
        assert!(measured.contains("99 %"), "{measured}");
    }

    /// Two heads of each of several seeds at d = 8 and 16, with a rank penalty for each dimension.
    fn ranked(penalties: [f64; 2], input: f64, seeds: u64) -> TrainedHeads {
        study((0..seeds).flat_map(|seed| {
            [8, 16].into_iter().zip(penalties).flat_map(move |(rank, penalty)| {
                [0, 1].map(|at| {
                    let mut head =
                        head(("mhsa", seed, 20, at), [4.0, penalty, input, 1.2, 1.0], 1.0);
                    head.found.rank = rank;
                    head
                })
            })
        }))
    }

    #[test]
    fn rank_has_every_word() {
        let status = |penalties, input, seeds| rank(&ranked(penalties, input, seeds)).status;
        assert_eq!(status([2.0, 1.6], 3.0, 3), Confirmed);
        assert_eq!(status([2.0, 1.6], 3.0, 2), Qualified, "two seeds");
        assert_eq!(status([2.0, 1.05], 3.0, 3), Qualified, "d = 8 only");
        assert_eq!(status([1.05, 1.02], 1.1, 3), Refuted);
        let inputs = "the input factor may contain a cost of rank";
        assert_eq!(status([1.05, 1.02], 3.0, 3), Qualified, "{inputs}");
        let mut third = ranked([2.0, 1.6], 3.0, 3);
        third.heads.push(head(("mhsa", 0, 20, 2), [1.0; 5], 1.0));
        assert_eq!(rank(&third).status, Confirmed, "a third head has smaller logits");
        third.heads.retain(|head| head.found.rank == 8);
        assert_eq!(rank(&third).status, NotMeasured, "one dimension");
    }

    #[test]
    fn orderings_have_every_word() {
        // Heads of some models: entropy has one order, needed logits that of the actual ones or its reverse.
        let entropy = |at: usize| [3.0, 1.0, 2.5, 2.0][at % 4] + 0.01 * at as f64;
        let status = |needed: &dyn Fn(usize) -> f64, models: u64| {
            let one = |seed, at: usize| {
                let excess_factor = (1.0 + at as f64) / needed(at);
                head(
                    ("mhsa", seed, 20, at),
                    [needed(at), 1.0, 1.0, excess_factor, 1.0],
                    entropy(at),
                )
            };
            let heads = (0..models).flat_map(|seed| (0..12).map(move |at| (seed, at)));
            ordering(&study(heads.map(|(seed, at)| one(seed, at)))).status
        };
        assert_eq!(status(&|at| 0.1 + at as f64, 3), Confirmed);
        assert_eq!(status(&|at| 0.1 + at as f64, 2), Qualified, "two models");
        assert_eq!(status(&|at| 20.0 - at as f64, 3), Refuted);
        // Needed logits have the order of entropy except for two heads, whose swap follows the actual order.
        let collinear = |at| {
            let swapped = [at, 11, 7][usize::from(at == 7) + 2 * usize::from(at == 11)];
            10.0 - entropy(swapped)
        };
        assert_eq!(status(&collinear, 3), Qualified);
        assert_eq!(status(&|_| 1.0, 3), NotMeasured, "all alike");
    }
}
