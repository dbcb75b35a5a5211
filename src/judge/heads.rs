//! Verdicts on trained heads: what carries the growth of their logits, and what orders them.

use std::collections::BTreeMap;

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::predict::PARTS;
use crate::table::{
    HeadOrdering, Interval, LeftOut, PartsOfGrowth, Spread, TrainedHeads, WiderHead, plural,
    significant,
};

/// Growth of a largest logit by less than this factor is none to be explained.
const LEAST_GROWTH: f64 = 2.0;
/// A share of the growth from here on carries it.
pub(super) const CARRIES: f64 = 0.5;
/// A share up to here is next to nothing: what was predicted of it, in analysis/PREDICTIONS.md, before the rows.
pub(super) const NEXT_TO_NOTHING: f64 = 0.1;
/// A partial ρ up to here is next to nothing: it stands for 4 per cent of the variance of ranks.
pub(super) const NO_ORDER: f64 = 0.2;
/// From this variance inflation on, |ρ| of 0.95, two orders can hardly be told apart (Marquardt 1970, *Technometrics*
/// 12, whose bound of 10 is the usual one).
pub(super) const COLLINEAR: f64 = 10.0;

/// What carries the growth: the share of inflation in the growth of log max |logit| of every `mhsa` run whose
/// largest logit at least doubles. Intervals are Student's over the seeds of a setting, a run and its length.
///
/// *Not yet measured*: no `mhsa` run of two steps or more whose logits double.
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
    let mut settings: BTreeMap<(&str, usize), Vec<f64>> = BTreeMap::new();
    for one in &grown {
        settings.entry((&one.run, one.n)).or_default().push(share(one, 1));
    }
    let word = word(inflation, settings.values());
    let shares: Vec<String> = (0..PARTS.len())
        .filter_map(|part| {
            let spread = Spread::of(grown.iter().map(|growth| 100.0 * share(growth, part)))?;
            Some(format!("{} {} %", PARTS[part], spread.shown(2)))
        })
        .collect();
    let times = Spread::of(grown.iter().map(|growth| growth.growth.exp()));
    let steps = grown[0].steps;
    let of_setting = |((run, n), shares): (&(&str, usize), &Vec<f64>)| {
        let within = match Interval::of(shares.iter().map(|share| 100.0 * share)) {
            Some(interval) => format!("{} %", interval.shown(2)),
            None => "no interval".to_owned(),
        };
        format!("{within} in {} of {run} at n = {n}", plural(shares.len(), "run"))
    };
    let each: Vec<String> = settings.iter().map(of_setting).collect();
    let measured = format!(
        "From step {} to {} the largest logit of mhsa grew {} times; of the growth of its logarithm, at ε = {epsilon}: \
         {}. Inflation's, with its 95 % interval over seeds: {}. Those whose logits doubled, of {}. Needed logits are \
         upper bounds.",
        steps.0,
        steps.1,
        times.map_or_else(String::new, |times| times.shown(3)),
        shares.join(", "),
        each.join(", "),
        models(study),
    );
    Verdict::over(Claim::RankCarriesGrowth, measured, word, settings.values().map(Vec::len))
}

/// Whether rank is the cause once the inputs are given: the share of log tying that goes where W_q·W_kᵀ may be any
/// matrix, in the largest head of every `mhsa` model at its last step. Intervals are Student's over the seeds of a run.
///
/// *Not yet measured*: no `mhsa` model at any rank.
///
/// What was predicted asks for no interval: the sentence says what its rule gives.
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
        let why = "Needs models of mhsa whose heads were fitted at larger ranks, and that their inputs cost logits.";
        return Verdict::new(Claim::RankGivenInputs, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let mut settings: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (one, share) in &models {
        settings.entry(&one.own.run).or_default().push(*share);
    }
    let word = word(share, settings.values());
    let as_predicted = match share {
        Spread { low, .. } if low >= CARRIES => Word::Confirmed,
        Spread { high, .. } if high <= NEXT_TO_NOTHING => Word::Refuted,
        _ => Word::Qualified,
    };
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
    let seeds = settings.values().map(Vec::len).min().unwrap_or(0);
    let within: Vec<String> = settings
        .iter()
        .filter_map(|(run, shares)| {
            let interval = Interval::of(shares.iter().map(|share| 100.0 * share))?;
            Some(format!("{run} {} %", interval.shown(2)))
        })
        .collect();
    let measured = format!(
        "What the attention of the largest head needs with its inputs, ε = {epsilon}: {}. Without a limit on rank {} % of the \
         logarithm of tying goes{}; by the rule that was written before the rows, which \
         asks for no interval: {as_predicted}. {}, {} a setting, of {}. What is not said to be proven is an upper bound.",
        each.join("; "),
        Spread::of(models.iter().map(|(_, share)| 100.0 * share))
            .map_or_else(String::new, |share| share.shown(2)),
        match within.is_empty() {
            true => String::new(),
            false => format!(", with 95 % intervals over seeds {}", within.join(", ")),
        },
        plural(models.len(), "model"),
        plural(seeds, "seed"),
        self::models(study),
    );
    Verdict::over(Claim::RankGivenInputs, measured, word, settings.values().map(Vec::len))
}

/// What orders heads: Spearman's ρ of needed against actual within each `mhsa` model, and its partial ρ with
/// the attention's entropy taken out; medians over models, as was predicted of.
///
/// *Not yet measured*: no `mhsa` model of enough heads.
///
/// What was predicted asks for neither a region nor a variance inflation: the sentence says what its rule gives.
pub(crate) fn ordering(study: &TrainedHeads) -> Verdict {
    let epsilon = study.epsilon_told();
    let all: Vec<HeadOrdering> = study
        .orderings()
        .into_iter()
        .filter(|one| one.arm == "mhsa" && one.epsilon == epsilon)
        .collect();
    let by = |name: &str| all.iter().find(|one| one.by == name);
    let (Some(needed), Some(given)) = (by("needed"), by("needed, given entropy")) else {
        let why = "Needs models of mhsa with several heads.";
        return Verdict::new(Claim::NeededTellsActual, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let apart = given.variance_inflation().is_some_and(|inflation| inflation < COLLINEAR);
    let (rho, partial) = (needed.correlation, given.correlation);
    let word = if partial.high <= NO_ORDER {
        Word::Refuted
    } else if rho.rho >= 0.5 && partial.low > 0.0 && apart {
        Word::Confirmed
    } else {
        Word::Qualified
    };
    let as_predicted = match partial.low {
        low if low <= 0.0 => Word::Refuted,
        _ if rho.rho >= 0.5 => Word::Confirmed,
        _ => Word::Qualified,
    };
    let shown = |name: &str| {
        by(name).map(|HeadOrdering { correlation: c, .. }| {
            let over = match (c.left_out.groups(), c.points < rho.points) {
                (0, false) => String::new(),
                (0, true) => format!(" over {} heads", c.points),
                _ => format!(
                    " over {} heads of {}, {}",
                    c.points,
                    plural(c.groups, "model"),
                    left_out(c.left_out)
                ),
            };
            format!("{name} {} (mean {}){over}", c.shown(), significant(c.mean, 2))
        })
    };
    let each: Vec<String> = [
        "needed",
        "needed, given entropy",
        "inflation",
        "inflation, given entropy",
        "floor",
        "floor, given entropy",
        "low entropy",
        "needed, tied",
        "needed, tied, given entropy",
    ]
    .into_iter()
    .filter_map(shown)
    .collect();
    let with_entropy =
        given.with_entropy.zip(given.variance_inflation()).map(|(rho, inflation)| {
            format!(
                " Needed with low entropy has {}, a variance inflation of {}{}.",
                significant(rho, 2),
                significant(inflation, 2),
                if apart {
                    ""
                } else {
                    ": the partial ρ rests on the few heads that they order differently"
                }
            )
        });
    let measured = format!(
        "Spearman's ρ with actual max |logit| within a model, ε = {epsilon}, median over models with its 95 % interval by \
         bootstrap: {}; by chance |ρ| is up to {}.{} By the rule that was written before the rows: {as_predicted}. {} heads of \
         {} of mhsa, of {}.",
        each.join("; "),
        significant(rho.by_chance, 2),
        with_entropy.unwrap_or_default(),
        rho.points,
        plural(rho.groups, "model"),
        models(study),
    );
    Verdict::new(Claim::NeededTellsActual, measured, word, partial.groups)
}

/// Why models are left out of a correlation.
fn left_out(left: LeftOut) -> String {
    let LeftOut { few, alike, collinear } = left;
    let reasons = [
        (few, "of too few heads"),
        (alike, "whose heads are alike"),
        (collinear, "whose heads entropy orders exactly so"),
    ];
    let told = reasons.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, why)| format!("{count} {why}")).collect();
    format!("left out {}", told.join(", "))
}

/// The studies that the models are of, what they read, and the lengths and ranks of their heads.
fn models(study: &TrainedHeads) -> String {
    let listed = |value: fn(&crate::table::HeadParts) -> String| {
        let mut values: Vec<String> = Vec::new();
        for head in &study.heads {
            let value = value(head);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let steps = study.last_step();
    format!(
        "{} ({steps} steps; d = {}; n = {}; text: {})",
        listed(|head| head.of.clone()).join(", "),
        listed(|head| head.rank.to_string()).join(", "),
        listed(|head| head.n.to_string()).join(", "),
        listed(|head| head.corpus.clone()).join(", ")
    )
}

/// What a share of rank's says of rank as the cause: from the least to the greatest over models, and by Student's
/// interval over the seeds of each setting.
fn word<'s>(share: Spread, settings: impl Iterator<Item = &'s Vec<f64>> + Clone) -> Word {
    let every = |holds: &dyn Fn(Interval) -> bool| {
        settings.clone().all(|shares| Interval::of(shares.iter().copied()).is_some_and(holds))
    };
    if share.low >= CARRIES && every(&|i| i.is_at_least(CARRIES)) {
        Word::Confirmed
    } else if share.high <= NEXT_TO_NOTHING && every(&|i| i.is_at_most(NEXT_TO_NOTHING)) {
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
        assert_eq!(growth(&grown(1.02, 4.0, 2)).word, Word::Qualified, "two seeds");
        // A tenth at most in every run, but seeds too far apart to say so of others.
        let mut apart = grown(1.001, 4.0, 3);
        apart.heads[1].needed = Some(2.0 * 1.13);
        assert_eq!(growth(&apart).word, Word::Qualified);
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
        assert_eq!(given_inputs(&study(15.0, 2)).word, Word::Qualified, "two seeds");
        let mut apart = study(15.9, 3);
        apart.heads[0].needed_any_rank = Some(13.2);
        apart.heads[1].needed_any_rank = Some(13.2);
        let apart = given_inputs(&apart);
        assert_eq!(apart.word, Word::Qualified, "{apart:?}");
        assert!(apart.measured.contains("asks for no interval: refuted"), "{apart:?}");
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
        assert_eq!(ordering(&study(|at| 20.0 - at as f64, 2)).word, Word::Qualified, "two models");
        // In the order of entropy but for two neighbours: what is left is the order of the actual.
        let collinear = ordering(&study(
            |at| {
                let entropy = |at: usize| [3.0, 1.0, 2.5, 2.0][at % 4] + 0.01 * at as f64;
                let swapped = [at, 11, 7][usize::from(at == 7) + 2 * usize::from(at == 11)];
                10.0 - entropy(swapped)
            },
            3,
        ));
        assert_eq!(collinear.word, Word::Qualified, "{collinear:?}");
        assert!(collinear.measured.contains("order differently"), "{collinear:?}");
        assert_eq!(ordering(&study(|_| 1.0, 3)).word, Word::NotYetMeasured, "all alike");
    }
}
