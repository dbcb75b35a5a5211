//! Verdicts on runs that differ in positions or heads: linear position biases, and wider heads.

use super::claim::{Claim, Group, Origin, Rule};
use super::interventions::of_more_rank;
use super::phrases::{apart, times_or};
use super::scale::of_runs;
use super::tuning::{Tuned, tuned};
use super::verdict::{Verdict, VerdictStatus};
use crate::table::{Interval, Spread, TrainingRun, Trainings, plural, significant};

pub(super) const SLOPES_FREE_LOGITS: Claim = Claim {
    id: "SlopesFreeLogits",
    text: "Predicted here: with a linear position bias, QKᵀ has less than half the max |logit|, \
            at LS-attention's loss or lower",
    group: Group::Training,
    origin: Origin::Here,
    place: "predicted here, position ramp",
    rule: || Rule {
        confirmed: tuned(format!(
            "The whole interval of the ratio of peaks of QKᵀ, with ALiBi over without, lies below \
            {OF_PEAK}, and that of the loss less ls's below {ABOVE_LS_NATS} nats."
        )),
        refuted: tuned("The whole interval of one of the two lies above.".to_owned()),
    },
    ..Claim::PLAIN
};

/// The peak with the bias is to be under this share of the peak without it, as predicted.
const OF_PEAK: f64 = 0.5;
/// The loss may be this much above LS-attention's, in nats, as predicted.
const ABOVE_LS_NATS: f64 = 0.05;

/// Multi-head attention with learned positions and ALiBi against the same without ALiBi, seed by seed; none where there is
/// no such run. Intervals are Student's over seeds. The peak is of QKᵀ/√d alone: the bias is not counted in it.
pub(crate) fn slopes(study: &Trainings, baselines: &[String]) -> Option<Verdict> {
    let tuned = Tuned::of(study, baselines);
    let variants = tuned.study.variants(baselines);
    let sloped = variants.iter().find(|variant| {
        let run = &variant.seeds[0];
        run.arm == "mhsa" && (&*run.positions, &*run.slopes) == ("learned", "alibi")
    })?;
    let seeds = sloped.log_peaks.len().min(sloped.losses.len());
    let (peak, loss) = (sloped.peak_ratio(), sloped.loss_difference());
    let status = match (peak, loss) {
        (Some(peak), Some(loss)) if peak.is_at_most(OF_PEAK) && loss.is_at_most(ABOVE_LS_NATS) => {
            VerdictStatus::Confirmed
        }
        (Some(peak), Some(loss))
            if peak.is_at_least(OF_PEAK) || loss.is_at_least(ABOVE_LS_NATS) =>
        {
            VerdictStatus::Refuted
        }
        _ => VerdictStatus::Qualified,
    };
    let name = &sloped.seeds[0].run;
    let is_compared = |run: &TrainingRun| run.run == *name || baselines.contains(&run.run);
    let status = tuned.decided(status, is_compared);
    let bias = half_range_of_alibi(&sloped.seeds[0]);
    let bias = bias.map_or_else(
        || "is not counted".to_owned(),
        |half_range| format!("has half-range {}", significant(half_range, 2)),
    );
    let ratio = times_or(peak, geometric_mean(&sloped.log_peaks), 2);
    let headline = format!(
        "QKᵀ peaks at {ratio}; the bias itself {bias}, {}",
        plural(sloped.log_peaks.len(), "seed")
    );
    let peaks = Spread::of(sloped.seeds.iter().filter_map(|run| run.peak_max_abs_logit));
    let loss = loss.map_or_else(String::new, |loss| {
        format!(
            " Loss {} than LS-attention's ({}).",
            apart(loss, 2, " nats"),
            plural(seeds, "seed")
        )
    });
    let measured = format!(
        "With ALiBi, max |QKᵀ/√d| peaks at {}, {ratio}, but the bias itself {bias}; their sum is \
         not measured.{loss} {}.{}",
        peaks.map_or_else(|| "–".to_owned(), |peaks| peaks.shown(3)),
        of_runs(sloped.seeds),
        tuned.note(is_compared)
    );
    Some(Verdict::new(SLOPES_FREE_LOGITS, [headline, measured], status, seeds))
}

/// exp of the mean of logarithms.
fn geometric_mean(logs: &[f64]) -> f64 {
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// Half the range of the steepest of ALiBi's biases over a full context: slopes are 2^(−8h/H), h from 1 to H.
fn half_range_of_alibi(run: &TrainingRun) -> Option<f64> {
    let steepest = (-8.0 / run.heads? as f64).exp2();
    Some(0.5 * steepest * (run.context? as f64 - 1.0))
}

/// Peak max |logit| of multi-head attention over that of the same with heads of half as many channels, twice as many of
/// them, seed by seed, wherever one of the two is unchanged; none where there is no such pair. Confirmed and refuted
/// where every such pair of runs is, and qualified where they are not alike.
pub(crate) fn head_dimension(study: &Trainings, baselines: &[String]) -> Option<Verdict> {
    let tuned = Tuned::of(study, baselines);
    let study = &tuned.study;
    let setting = |run: &TrainingRun| {
        (run.seed, run.context, run.steps, run.d_model, run.positions.clone(), run.slopes.clone())
    };
    let unchanged = |of: &TrainingRun| {
        let is_base = |run: &&TrainingRun| baselines.contains(&run.run) && run.arm == "mhsa";
        study.runs.iter().filter(is_base).find(|base| setting(base) == setting(of))
    };
    let ratio = |run: &TrainingRun| {
        let base = unchanged(run)?;
        let (heads, of_base) = (run.heads?, base.heads?);
        let ratio = run.peak_max_abs_logit? / base.peak_max_abs_logit?;
        if of_base == 2 * heads {
            Some(ratio)
        } else {
            (heads == 2 * of_base).then_some(1.0 / ratio)
        }
    };
    let dimension = |run: &TrainingRun| run.d_model.zip(run.heads).map(|(width, h)| width / h);
    let mut pairs: Vec<(usize, Vec<f64>)> = Vec::new();
    let mut compared: Vec<&TrainingRun> = Vec::new();
    for seeds in study.by_run().filter(|seeds| seeds[0].arm == "mhsa") {
        let ratios: Vec<f64> = seeds.iter().filter_map(ratio).collect();
        let base = unchanged(&seeds[0]).and_then(dimension);
        if let (false, Some(one), Some(other)) = (ratios.is_empty(), dimension(&seeds[0]), base) {
            pairs.push((one.max(other), ratios));
            compared.extend(seeds.iter().chain(seeds.iter().filter_map(unchanged)));
        }
    }
    pairs.sort_by_key(|(wide, _)| *wide);
    let seeds = pairs.iter().map(|(_, ratios)| ratios.len()).min()?;
    let all: Vec<(usize, Spread, Option<Interval>)> = pairs
        .iter()
        .filter_map(|(wide, ratios)| {
            let interval = Interval::of(ratios.iter().map(|ratio| ratio.ln())).map(Interval::exp);
            Some((*wide, Spread::of(ratios.iter().copied())?, interval))
        })
        .collect();
    let words: Vec<VerdictStatus> =
        all.iter().map(|(_, spread, interval)| of_more_rank(*spread, *interval)).collect();
    let alike = words.windows(2).all(|two| two[0] == two[1]);
    let status = if alike { words[0] } else { VerdictStatus::Qualified };
    let status = tuned.decided(status, |run| run.arm == "mhsa");
    let shown = all.iter().map(|(wide, spread, interval)| {
        let mean = times_or(*interval, spread.median, 2);
        format!("{wide} over {}: {mean}", wide / 2)
    });
    let shown = shown.collect::<Vec<_>>().join("; ");
    let headline = format!("d_head {shown}, {}", plural(seeds, "seed"));
    let measured = format!(
        "Peak max |logit| by head dimension at equal parameters, d_head {shown}. The number of heads varies with it. {}.{}",
        of_runs(compared),
        tuned.note(|run| run.arm == "mhsa")
    );
    Some(Verdict::over(
        super::interventions::MORE_RANK_HELPS,
        [headline, measured],
        status,
        pairs.iter().map(|(_, ratios)| ratios.len()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::tuning::at_three_rates;

    fn judged(peak: f64, loss: f64, seeds: usize) -> Option<VerdictStatus> {
        let run = |name: &str, arm: &str, seed: usize, peak: f64, loss: f64| TrainingRun {
            run: name.to_owned(),
            arm: arm.to_owned(),
            positions: "learned".to_owned(),
            slopes: if name == "sloped" { "alibi" } else { "none" }.to_owned(),
            seed,
            context: Some(512),
            // Seeds differ by more than what is asked about.
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
        // At one learning rate nothing is decided.
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

    /// Heads of 16 channels peak at 100; those of 8 and 32 at so much.
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
        // Twice the width is another model.
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
}
