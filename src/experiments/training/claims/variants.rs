//! Verdicts on runs that differ from a baseline in one setting: linear position biases, wider heads, lengths.

use super::scale_of_runs;
use crate::claims::Verdict;
use crate::claims::estimate::{Estimate, shown};
use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::{from_to, joined};
use crate::claims::{Claim, Group, Origin};
use crate::experiments::training::PredictedExponent;
use crate::experiments::training::claims::pairs::{Pairs, PairsOfSetting, difference, log_ratio};
use crate::experiments::training::claims::training::LOGITS_ALIKE;
use crate::experiments::training::claims::tuning::Tuned;
use crate::experiments::training::tables::training::{TrainingRun, Trainings, arm_name};
use crate::table::{Slope, plural, significant};

/// The predicted bound on the peak with the bias, as a share of the peak without it.
const OF_PEAK: f64 = 0.5;
/// The predicted bound on the loss above LS-attention's, in nats.
const ABOVE_LS_NATS: f64 = 0.05;
/// The run with twice the rank at equal parameters.
const MORE_RANK: &str = "mhsa-wide-heads";
/// An interval of an exponent that is wider than this decides nothing.
const TOO_WIDE: f64 = 0.5;

pub(crate) const SLOPES_FREE_LOGITS: Claim = Claim {
    id: "SlopesFreeLogits",
    text: "Predicted here: with a linear position bias, QKᵀ has less than half the max |logit|, \
            at LS-attention's loss or lower",
    group: Group::Training,
    origin: Origin::Here,
    place: "predicted here, position ramp",
    rule: [
        "The whole interval of the ratio of peaks of QKᵀ, with ALiBi over without, lies below {0}, \
            and that of the loss less ls's below {1} nats.",
        "The whole interval of one of the two lies above.",
    ],
    bounds: &[OF_PEAK, ABOVE_LS_NATS],
    needs_tuning: true,
    ..Claim::PLAIN
};

pub(crate) const MORE_RANK_HELPS: Claim = Claim {
    id: "MoreRankHelps",
    text: "Multi-head attention with twice the rank and half the heads has smaller logits",
    group: Group::Training,
    origin: Origin::Derived,
    place: "the rank argument, an intervention",
    rule: [
        "With twice the rank the peak is at most two thirds in every seed, and the whole interval of \
            the ratio lies below 1/{0}.",
        "The peak is no smaller in every seed, and the whole interval lies above 1/{0}.",
    ],
    bounds: &[LOGITS_ALIKE],
    needs_tuning: true,
    lacking: [
        "no runs with twice the rank",
        "Needs runs mhsa-wide-heads beside mhsa with their seeds and length.",
    ],
    ..Claim::PLAIN
};

pub(crate) const PREDICTED_EXPONENT: Claim = Claim {
    id: "PredictedExponent",
    text: "Predicted here: max |logit| of trained models grows with n/d as fits of similar \
            targets do",
    group: Group::Training,
    origin: Origin::Here,
    place: "predicted here, growth with n/d",
    rule: [
        "The interval of every variant's exponent lies within the predicted one, or contains the \
            predicted exponent and is at most {0} wide.",
        "The interval of mhsa lies wholly outside the predicted one.",
    ],
    bounds: &[TOO_WIDE],
    ..Claim::PLAIN
};

/// Compares multi-head attention with learned positions and ALiBi with the same without ALiBi, seed by seed; `None`
/// without such a run. Intervals are Student's over seeds. The peak is of QKᵀ/√d without the bias.
pub(crate) fn slopes(study: &Trainings, baselines: &[String]) -> Option<Verdict> {
    let is_sloped = |run: &TrainingRun| {
        (&*run.arm, &*run.positions, &*run.slopes) == ("mhsa", "learned", "alibi")
    };
    let is_compared = |run: &TrainingRun| is_sloped(run) || baselines.contains(&run.run);
    let tuned = Tuned::of(study, baselines, is_compared);
    let variants = tuned.study.variants(baselines);
    let sloped = variants.iter().find(|variant| is_sloped(&variant.seeds[0]))?;
    let peak = Estimate::mean(sloped.log_peaks.iter().copied()).map(Estimate::exp);
    let loss = sloped.loss_difference().map(Estimate::from);
    let parts = [(peak, OF_PEAK), (loss, ABOVE_LS_NATS)];
    let parts = parts.map(|(part, bound)| part.map(|part| part.at_most(bound)));
    let ruling = match parts {
        [Some(peak), Some(loss)] => Ruling::both([peak, loss]),
        _ => Ruling::of_rule(false, false),
    };
    let bias = match half_range_of_alibi(&sloped.seeds[0]) {
        Some(half_range) => format!("has half-range {}", significant(half_range, 2)),
        None => "is not counted".to_owned(),
    };
    let ratio = peak.map_or_else(|| "–".to_owned(), |peak| peak.times(2));
    let peaks = Estimate::median(sloped.seeds.iter().filter_map(|run| run.peak_max_abs_logit));
    let seeds = [sloped.log_peaks.len(), sloped.losses.len()];
    let loss = loss.map_or_else(String::new, |loss| {
        let seeds = plural(seeds[1], "seed");
        format!("Loss {} than LS-attention's ({seeds})", loss.apart(2, " nats"))
    });
    let sentences = [
        format!(
            "With ALiBi, max |QKᵀ/√d| peaks at {}, {ratio}, but the bias itself {bias}; their sum is not measured",
            shown(peaks, 3)
        ),
        loss,
        scale_of_runs(sloped.seeds),
        tuned.note().to_owned(),
    ];
    let headline = format!("QKᵀ peaks at {ratio}; the bias itself {bias}");
    let ruling = ruling.undecided_if(!tuned.is_tuned);
    let seeds = Seeds::of_settings(seeds.into_iter().filter(|seeds| *seeds > 0));
    Some(Verdict::new(SLOPES_FREE_LOGITS, ruling, seeds, headline, sentences))
}

/// Half the range of ALiBi's steepest bias over a full context; its slopes are 2^(−8h/H) for h from 1 to H.
fn half_range_of_alibi(run: &TrainingRun) -> Option<f64> {
    let steepest = (-8.0 / run.heads? as f64).exp2();
    Some(0.5 * steepest * (run.context? as f64 - 1.0))
}

/// The ruling on pairs of a peak with twice the rank and one without; every seed and the interval of every setting count.
fn with_more_rank(pairs: &Pairs, tuned: &Tuned) -> Ruling {
    let ruling = |setting: &PairsOfSetting| {
        let each = || setting.seeds.iter().map(|(_, wide, narrow)| wide / narrow);
        let is_refuted = each().all(|ratio| ratio >= 1.0);
        setting
            .estimate(log_ratio)
            .at_most(-LOGITS_ALIKE.ln())
            .in_part_if(!each().all(|ratio| ratio <= 2.0 / 3.0))
            .undecided_if_fails(!is_refuted)
    };
    Ruling::every(pairs.settings.iter().map(ruling)).undecided_if(!tuned.is_tuned)
}

/// Peak max |logit| of the run with twice the rank over that of its baseline, seed by seed. Intervals are Student's
/// over seeds, of the logarithm.
pub(crate) fn interventions(study: &Trainings, baselines: &[String]) -> Verdict {
    let tuned = Tuned::of(study, baselines, |run| run.arm == "mhsa");
    let is_pair = |wide: &TrainingRun, base: &TrainingRun| {
        wide.run == MORE_RANK
            && baselines.contains(&base.run)
            && (&base.arm, base.seed, base.context) == (&wide.arm, wide.seed, wide.context)
            && wide.settings.agree_but_for(&base.settings, &["heads"])
    };
    let against = |value: fn(&TrainingRun) -> Option<f64>| {
        Pairs::matching(&tuned.study, is_pair, |wide, base| Some((value(wide)?, value(base)?)))
    };
    let Some(peaks) = against(|run| run.peak_max_abs_logit) else {
        return Verdict::lacking(MORE_RANK_HELPS);
    };
    let ratio = joined(peaks.estimates(log_ratio).map(|log| log.exp().times(2)), ", ");
    let each = from_to(peaks.all().map(|(wide, base)| wide / base), 2);
    let losses = against(|run| run.valid_loss_nats).into_iter();
    let losses = losses.flat_map(|losses| losses.estimates(difference).collect::<Vec<_>>());
    let losses = losses.filter(|loss| loss.ends().is_some());
    let changed = tuned.study.runs.iter().filter(|run| run.run == MORE_RANK);
    let sentences = [
        format!(
            "Peak max |logit| of {MORE_RANK} over the unchanged run's: {ratio}, {each} over seeds"
        ),
        joined(losses.map(|loss| format!("Validation loss {}", loss.apart(2, " nats"))), ". "),
        scale_of_runs(changed),
        tuned.note().to_owned(),
    ];
    let headline = format!("peak {ratio} with twice the rank");
    let ruling = with_more_rank(&peaks, &tuned);
    Verdict::new(MORE_RANK_HELPS, ruling, peaks.seeds(), headline, sentences)
}

/// Peak max |logit| of multi-head attention over that of the same model with twice as many heads of half the dimension,
/// seed by seed. One of the two must be unchanged. Returns `None` without such a pair.
pub(crate) fn head_dimension(study: &Trainings, baselines: &[String]) -> Option<Verdict> {
    let tuned = Tuned::of(study, baselines, |run| run.arm == "mhsa");
    let is_alike = |wide: &TrainingRun, narrow: &TrainingRun| {
        let size = |run: &TrainingRun| (run.seed, run.context, run.steps, run.d_model);
        let of_mhsa = |run: &TrainingRun| run.arm == "mhsa";
        of_mhsa(wide)
            && of_mhsa(narrow)
            && size(wide) == size(narrow)
            && (&wide.positions, &wide.slopes) == (&narrow.positions, &narrow.slopes)
            && wide.settings.agree_but_for(&narrow.settings, &["heads"])
            && [wide, narrow].iter().any(|run| baselines.contains(&run.run))
            && wide.heads.is_some_and(|heads| narrow.heads == Some(2 * heads))
    };
    let peaks = |wide: &TrainingRun, narrow: &TrainingRun| {
        Some((wide.peak_max_abs_logit?, narrow.peak_max_abs_logit?))
    };
    let study = &tuned.study;
    let mut pairs = Pairs::matching(study, is_alike, peaks)?;
    let dimension = |name: &str| {
        let run = study.runs.iter().find(|run| run.run == name)?;
        Some(run.d_model? / run.heads?)
    };
    pairs.settings.sort_by_key(|setting| dimension(&setting.ours));
    let each = pairs.settings.iter().map(|setting| {
        let [wide, narrow] = [&setting.ours, &setting.theirs]
            .map(|name| dimension(name).map_or_else(|| "?".to_owned(), |d| d.to_string()));
        format!("{wide} over {narrow}: {}", setting.estimate(log_ratio).exp().times(2))
    });
    let ratios = joined(each, "; ");
    let names: Vec<&String> =
        pairs.settings.iter().flat_map(|setting| [&setting.ours, &setting.theirs]).collect();
    let sentences = [
        format!("Peak max |logit| by head dimension at equal parameters, d_head {ratios}"),
        "The number of heads varies with it".to_owned(),
        scale_of_runs(study.runs.iter().filter(|run| names.contains(&&run.run))),
        tuned.note().to_owned(),
    ];
    let ruling = with_more_rank(&pairs, &tuned);
    let headline = format!("d_head {ratios}");
    Some(Verdict::new(MORE_RANK_HELPS, ruling, pairs.seeds(), headline, sentences))
}

/// The slope of log peak max |logit| on log n over the runs of a variant, compared with the predicted exponent; `None`
/// without a prediction. At one head dimension it equals the slope on log(n/d).
///
/// *Not measured*: a variant has too few lengths.
pub(crate) fn exponent(study: &Trainings, predicted: &[PredictedExponent]) -> Option<Verdict> {
    let mut measured: Vec<(&PredictedExponent, Estimate)> = Vec::new();
    for expected in predicted {
        let of_run =
            |run: &TrainingRun| Some(((run.context? as f64).ln(), run.peak_max_abs_logit?.ln()));
        let points: Vec<(f64, f64)> = study.arm(&expected.arm).filter_map(of_run).collect();
        let Some(slope) = Slope::through(&points) else {
            let needs = format!("Needs finished runs of {} at several lengths.", expected.arm);
            let headline = "too few lengths for an exponent";
            return Some(Verdict::unmeasured(PREDICTED_EXPONENT, headline, needs));
        };
        measured.push((expected, slope.into()));
    }
    let first = measured.first()?;
    let ruling = |&(expected, exponent): &(&PredictedExponent, Estimate)| {
        let [low, high] = exponent.ends()?;
        let is_within = low >= expected.low && high <= expected.high;
        let has_predicted = (low..=high).contains(&expected.exponent) && high - low <= TOO_WIDE;
        let is_outside = high < expected.low || low > expected.high;
        Some(Ruling::of_rule(is_within || has_predicted, expected.arm == "mhsa" && is_outside))
    };
    let rulings = measured.iter().filter_map(ruling);
    let length_counts = measured.iter().flat_map(|(expected, _)| {
        let of_length =
            |n: usize| study.arm(&expected.arm).filter(|run| run.context == Some(n)).count();
        study.contexts().into_iter().map(of_length).filter(|count| *count > 0).collect::<Vec<_>>()
    });
    let seeds = Seeds::all(length_counts.min().unwrap_or(0));
    let each = measured.iter().map(|(expected, exponent)| {
        let predicted = Estimate::range(expected.exponent, [expected.low, expected.high]);
        let name = arm_name(&expected.arm);
        format!("{name} {}, predicted {}", exponent.shown(2), predicted.shown(2))
    });
    let leading = measured.iter().rfind(|(expected, _)| expected.arm == "mhsa");
    let (expected, exponent) = leading.unwrap_or(first);
    let headline = format!(
        "{} exponent {} of n/d, predicted {}",
        arm_name(&expected.arm),
        exponent.shown(2),
        significant(expected.exponent, 2)
    );
    let arms = study.runs.iter().filter(|run| predicted.iter().any(|p| p.arm == run.arm));
    let sentences = [
        format!("Exponent of n/d in peak max |logit|: {}", joined(each, "; ")),
        scale_of_runs(arms),
        Tuned::of(study, &[], |_| true).note().to_owned(),
    ];
    Some(Verdict::new(PREDICTED_EXPONENT, Ruling::both(rulings), seeds, headline, sentences))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus;
    use crate::experiments::training::claims::tuning::at_three_rates;

    fn judged(peak: f64, loss: f64, seeds: usize) -> Option<VerdictStatus> {
        let run = |name: &str, arm: &str, seed: usize, peak: f64, loss: f64| TrainingRun {
            run: name.to_owned(),
            arm: arm.to_owned(),
            positions: "learned".to_owned(),
            slopes: if name == "sloped" { "alibi" } else { "none" }.to_owned(),
            seed,
            context: Some(512),
            // Seeds differ by more than the effects of interest.
            peak_max_abs_logit: Some(peak * (1.0 + seed as f64)),
            valid_loss_nats: Some(loss + seed as f64),
            ..TrainingRun::default()
        };
        let of = |name: &str, arm: &str, peak: f64, loss: f64| -> Vec<TrainingRun> {
            (0..seeds).map(|seed| run(name, arm, seed, peak, loss)).collect()
        };
        let runs = [
            of("ls", "ls", 16.0, 1.9),
            of("mhsa", "mhsa", 100.0, 2.0),
            of("sloped", "mhsa", peak, loss),
        ];
        let study = Trainings { runs: runs.concat(), failed: 0 };
        let baselines = ["mhsa".to_owned(), "ls".to_owned()];
        // Runs at one learning rate decide nothing.
        let status = |study: &Trainings| slopes(study, &baselines).map(|verdict| verdict.status);
        let at_one = status(&study);
        assert!(
            !matches!(at_one, Some(VerdictStatus::Confirmed | VerdictStatus::Refuted)),
            "{at_one:?}"
        );
        status(&at_three_rates(&study))
    }

    #[test]
    fn the_half_range_of_alibi_is_that_of_its_steepest_slope() {
        let run = TrainingRun { heads: Some(4), context: Some(513), ..TrainingRun::default() };
        assert_eq!(half_range_of_alibi(&run), Some(64.0));
        assert_eq!(half_range_of_alibi(&TrainingRun::default()), None);
    }

    #[test]
    fn every_word_has_its_rows() {
        assert_eq!(judged(10.0, 1.9, 3), Some(VerdictStatus::Confirmed));
        assert_eq!(judged(10.0, 1.9, 2), Some(VerdictStatus::Qualified), "few seeds");
        assert_eq!(judged(80.0, 1.9, 3), Some(VerdictStatus::Refuted), "large logits");
        assert_eq!(judged(10.0, 2.1, 3), Some(VerdictStatus::Refuted), "a loss above");
        assert_eq!(judged(10.0, 1.9, 0), None, "no such run");
    }

    /// Runs with d_head = 16 peak at 100, those with d_head = 8 and 32 at the given values.
    fn by_dimension(peak_of_8: f64, peak_of_32: f64, seeds: usize) -> Option<VerdictStatus> {
        let run = |name: &str, heads: usize, peak: f64, seed: usize| TrainingRun {
            run: name.to_owned(),
            arm: "mhsa".to_owned(),
            seed,
            d_model: Some(64),
            heads: Some(heads),
            peak_max_abs_logit: Some(peak),
            valid_loss_nats: Some(2.0),
            ..TrainingRun::default()
        };
        let of = |name: &str, heads: usize, peak: f64| -> Vec<TrainingRun> {
            (0..seeds).map(|seed| run(name, heads, peak, seed)).collect()
        };
        let runs = [of("8", 8, peak_of_8), of("16", 4, 100.0), of("32", 2, peak_of_32)];
        // A model of twice the width is a different model.
        let wider =
            of("wide", 8, 1.0).into_iter().map(|run| TrainingRun { d_model: Some(128), ..run });
        let runs = runs.concat().into_iter().chain(wider).collect();
        let study = Trainings { runs, failed: 0 };
        head_dimension(&at_three_rates(&study), &["16".to_owned()]).map(|verdict| verdict.status)
    }

    #[test]
    fn head_dimension_has_every_word() {
        assert_eq!(by_dimension(200.0, 50.0, 3), Some(VerdictStatus::Confirmed));
        assert_eq!(by_dimension(200.0, 50.0, 2), Some(VerdictStatus::Qualified), "few seeds");
        assert_eq!(by_dimension(200.0, 120.0, 3), Some(VerdictStatus::Qualified), "not alike");
        assert_eq!(by_dimension(80.0, 120.0, 3), Some(VerdictStatus::Refuted));
        assert_eq!(by_dimension(80.0, 120.0, 0), None);
    }

    fn rank_ruling(ratio: f64, seeds: usize) -> VerdictStatus {
        rank_by_seed(&vec![ratio; seeds])
    }

    fn rank_by_seed(ratios: &[f64]) -> VerdictStatus {
        let run = |name: &str, seed: usize, peak: f64| TrainingRun {
            run: name.to_owned(),
            arm: "mhsa".to_owned(),
            heads: Some(if name == MORE_RANK { 2 } else { 4 }),
            valid_loss_nats: Some(2.0),
            seed,
            context: Some(256),
            peak_max_abs_logit: Some(peak),
            ..TrainingRun::default()
        };
        let runs = ratios.iter().enumerate().flat_map(|(seed, ratio)| {
            [run("mhsa-256", seed, 100.0), run(MORE_RANK, seed, 100.0 * ratio)]
        });
        let study = Trainings { runs: runs.collect(), failed: 0 };
        interventions(&at_three_rates(&study), &["mhsa-256".to_owned()]).status
    }

    #[test]
    fn more_rank_has_every_status() {
        assert_eq!(rank_ruling(0.5, 3), VerdictStatus::Confirmed);
        assert_eq!(rank_ruling(0.5, 2), VerdictStatus::Qualified);
        assert_eq!(rank_ruling(0.9, 3), VerdictStatus::Qualified);
        assert_eq!(rank_ruling(1.2, 3), VerdictStatus::Refuted);
        assert_eq!(rank_ruling(1.2, 2), VerdictStatus::Qualified, "two seeds");
        assert_eq!(
            rank_by_seed(&[0.1, 0.65, 0.66]),
            VerdictStatus::Qualified,
            "seeds too far apart"
        );
        assert_eq!(rank_by_seed(&[1.0, 1.1, 5.0]), VerdictStatus::Qualified, "seeds too far apart");
        assert_eq!(rank_ruling(1.0, 0), VerdictStatus::NotMeasured);
    }

    fn exponents(mhsa: f64, ls: f64, seeds: usize) -> VerdictStatus {
        let of_arm = |arm: &'static str, exponent: f64| {
            [256usize, 512, 1024].into_iter().flat_map(move |n| {
                (0..seeds).map(move |seed| TrainingRun {
                    arm: arm.to_owned(),
                    seed,
                    context: Some(n),
                    peak_max_abs_logit: Some(
                        (n as f64).powf(exponent) * [1.0, 1.02, 0.98][seed % 3],
                    ),
                    ..TrainingRun::default()
                })
            })
        };
        let runs = of_arm("mhsa", mhsa).chain(of_arm("ls", ls)).collect();
        let predicted = |arm: &str, [low, exponent, high]: [f64; 3]| PredictedExponent {
            arm: arm.to_owned(),
            low,
            exponent,
            high,
        };
        let predicted = [predicted("mhsa", [0.1, 0.25, 0.35]), predicted("ls", [-0.1, 0.0, 0.1])];
        exponent(&Trainings { runs, failed: 0 }, &predicted).unwrap().status
    }

    #[test]
    fn exponents_have_every_status() {
        assert_eq!(exponents(0.25, 0.0, 3), VerdictStatus::Confirmed);
        assert_eq!(exponents(0.25, 0.0, 1), VerdictStatus::SingleSeed);
        assert_eq!(exponents(-1.0, 0.0, 3), VerdictStatus::Refuted);
        assert_eq!(exponents(-1.0, 0.0, 2), VerdictStatus::Qualified, "two seeds");
        assert_eq!(exponents(0.25, 0.9, 3), VerdictStatus::Qualified, "ls grows");
        assert_eq!(exponents(0.25, 0.0, 0), VerdictStatus::NotMeasured);
        assert_eq!(exponent(&Trainings { runs: Vec::new(), failed: 0 }, &[]), None);
    }
}
