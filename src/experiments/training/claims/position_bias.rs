//! Verdict on linear position biases.

use super::scale_of_runs;
use crate::claims::estimate::shown;
use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::{Claim, Group, Origin, Verdict};
use crate::experiments::training::claims::tuning::Tuned;
use crate::experiments::training::tables::training::{TrainingRun, Trainings};
use crate::table::{Estimate, plural, significant};

/// The predicted bound on the peak with the bias, as a share of the peak without it.
const OF_PEAK: f64 = 0.5;
/// The predicted bound on the loss above LS-attention's, in nats.
const ABOVE_LS_NATS: f64 = 0.05;
/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[SLOPES_FREE_LOGITS];

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

/// The verdicts on [`CLAIMS`].
pub(crate) fn verdicts(study: &Trainings, baselines: &[String]) -> Vec<Verdict> {
    slopes(study, baselines).into_iter().collect()
}

/// Compares multi-head attention with learned positions and ALiBi with the same without ALiBi, seed by seed; `None`
/// without such a run. Intervals are Student's over seeds. The peak is of QKᵀ/√d without the bias.
fn slopes(study: &Trainings, baselines: &[String]) -> Option<Verdict> {
    let is_sloped = |run: &TrainingRun| {
        (run.arm(), &*run.of.model.positions, &*run.of.model.slopes) == ("mhsa", "learned", "alibi")
    };
    let is_compared = |run: &TrainingRun| is_sloped(run) || baselines.contains(&run.of.model.run);
    let tuned = Tuned::of(study, baselines, is_compared);
    let variants = tuned.study.variants(baselines);
    let sloped = variants.iter().find(|variant| is_sloped(&variant.seeds[0]))?;
    let peak = Estimate::mean(sloped.log_peaks.iter().copied()).map(Estimate::exp);
    let loss = sloped.loss_difference();
    let parts = [(peak, OF_PEAK), (loss, ABOVE_LS_NATS)];
    let parts = parts.map(|(part, bound)| part.map(|part| part.at_most(bound)));
    let ruling = match parts {
        [Some(peak), Some(loss)] => Ruling::both([peak, loss]),
        _ => Ruling::of_rule(false, false),
    };
    let bias = format!("has half-range {}", significant(half_range_of_alibi(&sloped.seeds[0]), 2));
    let ratio = peak.map_or_else(|| "–".to_owned(), |peak| peak.times(2));
    let peaks = Estimate::median(sloped.seeds.iter().filter_map(TrainingRun::peak));
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
fn half_range_of_alibi(run: &TrainingRun) -> f64 {
    let steepest = f64::exp2(-8.0 / run.of.model.heads as f64);
    0.5 * steepest * (run.of.context as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{self, Confirmed, Qualified, Refuted};
    use crate::experiments::training::claims::tuning::at_three_rates;

    /// The status with one learning rate and with three.
    fn judged(peak: f64, loss: f64, seeds: u64) -> [Option<VerdictStatus>; 2] {
        let run = |(name, arm, peak, loss): (&str, &str, f64, f64), seed: u64| {
            // Seeds differ by more than the effects of interest.
            let apart = seed as f64;
            let mut run = TrainingRun::made_up(name, arm, seed, peak * (1.0 + apart), loss + apart);
            run.of.model.positions = "learned".to_owned();
            run.of.model.slopes = if name == "sloped" { "alibi" } else { "none" }.to_owned();
            (run.of.model.heads, run.of.context) = (4, 512);
            run
        };
        let variants =
            [("ls", "ls", 16.0, 1.9), ("mhsa", "mhsa", 100.0, 2.0), ("sloped", "mhsa", peak, loss)];
        let runs = variants.into_iter().flat_map(|one| (0..seeds).map(move |seed| run(one, seed)));
        let study = Trainings::made_up(runs);
        let baselines = ["mhsa".to_owned(), "ls".to_owned()];
        let status = |study: &Trainings| slopes(study, &baselines).map(|verdict| verdict.status);
        [status(&study), status(&at_three_rates(&study))]
    }

    #[test]
    fn the_half_range_of_alibi_is_that_of_its_steepest_slope() {
        let mut run = TrainingRun::default();
        (run.of.model.heads, run.of.context) = (4, 513);
        assert_eq!(half_range_of_alibi(&run), 64.0);
    }

    #[test]
    fn every_status_has_its_rows_and_one_learning_rate_decides_nothing() {
        assert_eq!(judged(10.0, 1.9, 3), [Qualified, Confirmed].map(Some));
        assert_eq!(judged(10.0, 1.9, 2), [Qualified; 2].map(Some), "few seeds");
        assert_eq!(judged(80.0, 1.9, 3), [Qualified, Refuted].map(Some), "large logits");
        assert_eq!(judged(10.0, 2.1, 3), [Qualified, Refuted].map(Some), "a loss above");
        assert_eq!(judged(10.0, 1.9, 0), [None; 2], "no such run");
    }
}
