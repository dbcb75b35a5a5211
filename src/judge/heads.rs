//! Verdicts on trained heads: what carries the growth of their logits, and what orders them.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::predict::PARTS;
use crate::table::{
    HeadOrdering, PartsOfGrowth, Spread, TrainedHeads, WiderHead, plural, significant,
};

/// Growth of a largest logit by less than this factor is none to be explained.
const LEAST_GROWTH: f64 = 2.0;
/// A share of the growth from here on carries it.
const CARRIES: f64 = 0.5;
/// A share up to here is next to nothing.
const NEXT_TO_NOTHING: f64 = 0.1;

/// What carries the growth: the share of inflation in the growth of log max |logit| of every `mhsa` run whose
/// largest logit at least doubles.
///
/// - *confirmed*: half or more in every such run, three seeds or more;
/// - *refuted*: a tenth or less in every one;
/// - *qualified*: anything between, or few seeds where it would be confirmed;
/// - *not yet measured*: no `mhsa` run of two steps or more whose logits double.
pub(crate) fn growth(study: &TrainedHeads) -> Verdict {
    let epsilon = study.epsilon_told();
    let grown: Vec<PartsOfGrowth> = study
        .growth()
        .into_iter()
        .filter(|g| g.arm == "mhsa" && g.epsilon == epsilon && g.growth >= LEAST_GROWTH.ln())
        .collect();
    let share = |growth: &PartsOfGrowth, part: usize| growth.by_part[part] / growth.growth;
    let Some(inflation) = Spread::of(grown.iter().map(|growth| share(growth, 1))) else {
        let why = "Needs runs of mhsa with several checkpoints, whose largest logit doubles.";
        return Verdict::new(Claim::RankCarriesGrowth, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let word = word(inflation);
    let shares: Vec<String> = (0..PARTS.len())
        .filter_map(|part| {
            let spread = Spread::of(grown.iter().map(|growth| 100.0 * share(growth, part)))?;
            Some(format!("{} {} %", PARTS[part], spread.shown(2)))
        })
        .collect();
    let times = Spread::of(grown.iter().map(|growth| growth.growth.exp()));
    let steps = grown[0].steps;
    let mut settings: Vec<(&str, usize)> = grown.iter().map(|g| (&*g.run, g.n)).collect();
    settings.sort_unstable();
    settings.dedup();
    let seeds = settings
        .iter()
        .map(|setting| grown.iter().filter(|g| (&*g.run, g.n) == *setting).count())
        .min()
        .unwrap_or(0);
    let mut lengths: Vec<usize> = settings.iter().map(|(_, n)| *n).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let runs_of = |n: &usize| {
        let count = grown.iter().filter(|g| g.n == *n).count();
        format!("{} at n = {n}", plural(count, "run"))
    };
    let lengths: Vec<String> = lengths.iter().map(runs_of).collect();
    let measured = format!(
        "From step {} to {} the largest logit of mhsa grew {} times; of the growth of its logarithm, at ε = {epsilon}: \
         {}. {}, those whose logits doubled. Needed logits are upper bounds.",
        steps.0,
        steps.1,
        times.map_or_else(String::new, |times| times.shown(3)),
        shares.join(", "),
        lengths.join(", "),
    );
    Verdict::new(Claim::RankCarriesGrowth, measured, word, seeds)
}

/// Whether rank is the cause once the inputs are given: the share of log tying that goes where W_q·W_kᵀ may be any
/// matrix, in the largest head of every `mhsa` model at its last step.
///
/// - *confirmed*: half or more in every one, three seeds or more;
/// - *refuted*: a tenth or less in every one;
/// - *qualified*: anything between, or few seeds where it would be confirmed;
/// - *not yet measured*: no `mhsa` model at any rank.
pub(crate) fn given_inputs(study: &TrainedHeads) -> Verdict {
    let epsilon = study.epsilon_told();
    let last = study.last_step();
    let wider = study.wider();
    let widest = wider.iter().map(|one| one.wider.rank).max().unwrap_or(0);
    let models: Vec<(&WiderHead<'_>, f64)> = wider
        .iter()
        .filter(|one| one.own.arm == "mhsa" && one.own.epsilon == epsilon)
        .filter(|one| one.own.step == last && one.wider.rank == widest)
        .filter_map(|one| Some((one, one.own.share_of_tying_by_rank()?)))
        .collect();
    let Some(share) = Spread::of(models.iter().map(|(_, share)| *share)) else {
        let why = "Needs models of mhsa whose heads were fitted at larger ranks.";
        return Verdict::new(Claim::RankGivenInputs, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let word = word(share);
    let mut runs: Vec<&str> = models.iter().map(|(one, _)| one.own.run.as_str()).collect();
    runs.sort_unstable();
    runs.dedup();
    let of_run = |run: &str| {
        let here = || models.iter().map(|(one, _)| one).filter(|one| one.own.run == run);
        let over = |value: &dyn Fn(&WiderHead<'_>) -> Option<f64>| {
            Spread::of(here().filter_map(|one| value(one))).map_or_else(String::new, |s| s.shown(3))
        };
        format!(
            "{run} {} nats at rank {}, {} at {widest}, {} at any (no less than {}: proven); {} without inputs, {} actual",
            over(&|one| one.own.needed_tied),
            models[0].0.own.rank,
            over(&|one| one.wider.needed_tied),
            over(&|one| one.own.needed_any_rank),
            over(&|one| one.own.lower_bound_tied),
            over(&|one| one.own.needed),
            over(&|one| Some(one.own.actual)),
        )
    };
    let each: Vec<String> = runs.iter().map(|run| of_run(run)).collect();
    let seeds = runs
        .iter()
        .map(|run| models.iter().filter(|(one, _)| one.own.run == *run).count())
        .min()
        .unwrap_or(0);
    let measured = format!(
        "What the attention of the largest head needs with its inputs, ε = {epsilon}: {}. Without a limit on rank {} % of the \
         logarithm of tying goes. {}, {} a setting. What is not said to be proven is an upper bound.",
        each.join("; "),
        Spread::of(models.iter().map(|(_, share)| 100.0 * share))
            .map_or_else(String::new, |share| share.shown(2)),
        plural(models.len(), "model"),
        plural(seeds, "seed"),
    );
    Verdict::new(Claim::RankGivenInputs, measured, word, seeds)
}

/// What orders heads: Spearman's ρ of needed against actual within each `mhsa` model, and its partial ρ with
/// the attention's entropy taken out.
///
/// - *confirmed*: ρ is 0.5 or more, and the partial one's interval lies above 0, three models or more;
/// - *refuted*: the partial one's interval holds 0 or lies below;
/// - *qualified*: anything between, or few models where it would be confirmed;
/// - *not yet measured*: no `mhsa` model of enough heads.
pub(crate) fn ordering(study: &TrainedHeads) -> Verdict {
    let epsilon = study.epsilon_told();
    let all: Vec<HeadOrdering> = study
        .orderings()
        .into_iter()
        .filter(|one| one.arm == "mhsa" && one.epsilon == epsilon)
        .collect();
    let by = |name: &str| all.iter().find(|one| one.by == name).map(|one| one.correlation);
    let (Some(needed), Some(given)) = (by("needed"), by("needed, given entropy")) else {
        let why = "Needs models of mhsa with several heads.";
        return Verdict::new(Claim::NeededTellsActual, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let word = if given.low <= 0.0 {
        Word::Refuted
    } else if needed.rho >= 0.5 {
        Word::Confirmed
    } else {
        Word::Qualified
    };
    let shown = |name: &str| {
        by(name).map(|c| {
            let [rho, low, high] = [c.rho, c.low, c.high].map(|v| significant(v, 2));
            format!("{name} {rho} [{low}, {high}]")
        })
    };
    let each: Vec<String> = [
        "needed",
        "needed, given entropy",
        "inflation",
        "floor",
        "low entropy",
        "needed, tied",
        "needed, tied, given entropy",
    ]
    .into_iter()
    .filter_map(shown)
    .collect();
    let measured = format!(
        "Spearman's ρ with actual max |logit| within a model, ε = {epsilon}, 95 % by bootstrap: {}; by chance |ρ| is \
         up to {}. {} heads of {} of mhsa.",
        each.join("; "),
        significant(needed.by_chance, 2),
        needed.points,
        plural(needed.groups, "model"),
    );
    Verdict::new(Claim::NeededTellsActual, measured, word, needed.groups)
}

/// What a share of rank's says of rank as the cause, from the least to the greatest over models.
fn word(share: Spread) -> Word {
    if share.low >= CARRIES {
        Word::Confirmed
    } else if share.high <= NEXT_TO_NOTHING {
        Word::Refuted
    } else {
        Word::Qualified
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{HeadParts, head_of_parts};

    fn grown(inflation: f64, tying: f64, seeds: usize) -> TrainedHeads {
        let heads = (0..seeds).flat_map(|seed| {
            [
                head_of_parts(("mhsa", seed, 10, 0), [2.0, 1.0, 1.0, 1.0, 1.0], 1.0),
                head_of_parts(("mhsa", seed, 20, 0), [2.0, inflation, tying, 1.0, 1.0], 1.0),
            ]
        });
        TrainedHeads { heads: heads.collect(), failed: 0 }
    }

    #[test]
    fn growth_has_every_word() {
        assert_eq!(growth(&grown(4.0, 1.1, 3)).word, Word::Confirmed);
        assert_eq!(growth(&grown(4.0, 1.1, 2)).word, Word::Qualified, "two seeds");
        assert_eq!(growth(&grown(1.5, 3.0, 3)).word, Word::Qualified);
        assert_eq!(growth(&grown(1.02, 4.0, 3)).word, Word::Refuted);
        assert_eq!(growth(&grown(1.1, 1.1, 3)).word, Word::NotYetMeasured, "no growth");
        let verdict = growth(&grown(1.02, 4.0, 3));
        assert!(verdict.measured.contains("tying 99 %"), "{}", verdict.measured);
    }

    #[test]
    fn rank_given_inputs_has_every_word() {
        let study = |at_any_rank: f64, seeds: usize| {
            let heads = (0..seeds).flat_map(move |seed| {
                let parts = [2.0, 1.0, 8.0, 2.0, 1.0];
                let own = HeadParts {
                    needed_any_rank: Some(at_any_rank),
                    lower_bound_tied: Some(0.9 * at_any_rank),
                    ..head_of_parts(("mhsa", seed, 20, 0), parts, 1.0)
                };
                [HeadParts { rank: 16, needed_tied: Some(15.5), ..own.clone() }, own]
            });
            TrainedHeads { heads: heads.collect(), failed: 0 }
        };
        assert_eq!(given_inputs(&study(4.0, 3)).word, Word::Confirmed);
        assert_eq!(given_inputs(&study(4.0, 2)).word, Word::Qualified, "two seeds");
        assert_eq!(given_inputs(&study(10.0, 3)).word, Word::Qualified);
        assert_eq!(given_inputs(&study(15.0, 3)).word, Word::Refuted);
        assert_eq!(given_inputs(&grown(1.0, 4.0, 3)).word, Word::NotYetMeasured, "one rank");
        let verdict = given_inputs(&study(4.0, 3));
        let said = "16.0 nats at rank 8, 15.5 at 16, 4.00 at any (no less than 3.60: proven)";
        assert!(verdict.measured.contains(said), "{verdict:?}");
        assert!(verdict.measured.contains("67 % of the logarithm of tying goes"), "{verdict:?}");
    }

    #[test]
    fn orderings_have_every_word() {
        // Heads of 3 models: entropy in one order, needed in that of the actual or against it.
        let study = |needed: fn(usize) -> f64, models: usize| {
            let heads = (0..models).flat_map(move |seed| {
                (0..12).map(move |at| {
                    let actual = 1.0 + at as f64;
                    let entropy = [3.0, 1.0, 2.5, 2.0][at % 4] + 0.01 * at as f64;
                    let needed = needed(at);
                    let parts = [needed, 1.0, 1.0, actual / needed, 1.0];
                    head_of_parts(("mhsa", seed, 20, at), parts, entropy)
                })
            });
            TrainedHeads { heads: heads.collect::<Vec<HeadParts>>(), failed: 0 }
        };
        assert_eq!(ordering(&study(|at| 0.1 + at as f64, 3)).word, Word::Confirmed);
        assert_eq!(ordering(&study(|at| 0.1 + at as f64, 2)).word, Word::Qualified);
        assert_eq!(ordering(&study(|at| 20.0 - at as f64, 3)).word, Word::Refuted);
        assert_eq!(ordering(&study(|_| 1.0, 3)).word, Word::NotYetMeasured, "all alike");
    }
}
