//! The verdict on data other than text: images and speech as bytes.

use super::claim::{Claim, Group, Origin, Rule};
use super::pairs::{Pairs, PairsOfSetting, difference, log_ratio};
use super::phrases::{apart, times};
use super::scale::of_runs;
use super::training;
use super::training::{LOGITS_ALIKE, NO_WORSE_NATS};
use super::tuning::{Tuned, tuned};
use super::verdict::{Verdict, VerdictStatus};
use crate::table::{TrainingRun, Trainings, plural, significant};

pub(super) const OTHER_MODALITIES: Claim = Claim {
    id: "OtherModalities",
    text: "LS-attention's lower loss and logits are not specific to text",
    group: Group::Training,
    origin: Origin::Paper,
    place: "text",
    rule: || Rule {
        confirmed: tuned(format!(
            "The whole interval of the loss of ls less mhsa's is at most {} nats, and that of the \
            ratio of peaks lies below 1/{}.",
            training::NO_WORSE_NATS,
            training::LOGITS_ALIKE
        )),
        refuted: tuned("One of the two intervals lies wholly above.".to_owned()),
    },
    ..Claim::PLAIN
};

/// The data of the synthetic corpora, which are of no kind.
const SYNTHETIC: &str = "synthetic";

/// The last validation loss and the peak of max |logit| of `ls` against `mhsa`, seed by seed, with the window of the lowest
/// loss. Intervals are Student's over seeds.
///
/// Confirmed where the whole interval of the loss is at most [`NO_WORSE_NATS`] and that of the ratio of peaks lies under
/// 1/[`LOGITS_ALIKE`]; refuted where either lies wholly above. None without `ls` and `mhsa` on real data.
pub(crate) fn other_data(study: &Trainings) -> Option<Verdict> {
    let tuned = Tuned::of(study, &[]);
    let is_compared = |run: &TrainingRun| ["ls", "mhsa"].contains(&&*run.arm);
    let is_real = |run: &TrainingRun| run.corpus != SYNTHETIC;
    let loss = |run: &TrainingRun| run.valid_loss_nats.filter(|_| is_real(run));
    let losses = Pairs::of(&tuned.study, ["ls", "mhsa"], loss)?;
    let peak = |run: &TrainingRun| run.peak_max_abs_logit.filter(|_| is_real(run));
    let peaks = Pairs::of(&tuned.study, ["ls", "mhsa"], peak)?;
    let lowest = |a: &&PairsOfSetting, b: &&PairsOfSetting| {
        a.mean(difference).total_cmp(&b.mean(difference))
    };
    let best = losses.settings.iter().min_by(lowest)?;
    let peaks = peaks.settings.iter().find(|setting| setting.ours == best.ours)?;
    let (lower, ratio) = (best.interval(difference), peaks.interval(log_ratio));
    let alike = -LOGITS_ALIKE.ln();
    let status = match (lower, ratio) {
        (Some(lower), Some(ratio))
            if lower.is_at_most(NO_WORSE_NATS) && ratio.is_at_most(alike) =>
        {
            VerdictStatus::Confirmed
        }
        (Some(lower), Some(ratio))
            if lower.is_at_least(NO_WORSE_NATS) || ratio.is_at_least(alike) =>
        {
            VerdictStatus::Refuted
        }
        _ => VerdictStatus::Qualified,
    };
    let status = tuned.decided(status, is_compared);
    let seeds = best.seeds.len().min(peaks.seeds.len());
    let loss = match lower {
        Some(lower) => apart(lower, 2, " nats"),
        None => {
            let mean = best.mean(difference);
            let side = if mean < 0.0 { "lower" } else { "higher" };
            format!("{} nats {side}", significant(mean.abs(), 2))
        }
    };
    let peak = match ratio {
        Some(ratio) => times(ratio.exp(), 2),
        None => format!("{}×", significant(peaks.mean(log_ratio).exp(), 2)),
    };
    let ours = tuned.study.runs.iter().find(|run| run.run == best.ours)?;
    let is_alike = |run: &TrainingRun| {
        (&run.positions, &run.slopes, &run.corpus) == (&ours.positions, &ours.slopes, &ours.corpus)
    };
    let compared: Vec<&TrainingRun> =
        tuned.study.runs.iter().filter(|run| is_compared(run) && is_alike(run)).collect();
    let corpus = &ours.corpus;
    let headline = format!("{corpus}: loss {loss}, peak {peak}, {}", plural(seeds, "seed"));
    let measured = format!(
        "On {corpus} as bytes, {} against multi-head attention: validation loss {loss}, peak max |logit| {peak}. {}.{}",
        best.ours,
        of_runs(compared.iter().copied()),
        tuned.note(is_compared)
    );
    Some(Verdict::new(OTHER_MODALITIES, [headline, measured], status, seeds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::tuning::at_three_rates;

    fn study(corpus: &str, seeds: usize, loss: f64, peak: f64) -> Trainings {
        let run = |arm: &str, seed: usize, loss: f64, peak: f64| TrainingRun {
            run: arm.to_owned(),
            arm: arm.to_owned(),
            corpus: corpus.to_owned(),
            seed,
            valid_loss_nats: Some(loss),
            peak_max_abs_logit: Some(peak),
            ..TrainingRun::default()
        };
        let pair = |seed| [run("ls", seed, loss, peak), run("mhsa", seed, 2.0, 100.0)];
        Trainings { runs: (0..seeds).flat_map(pair).collect(), failed: 0 }
    }

    #[test]
    fn other_data_have_every_word() {
        let status = |seeds, loss, peak| {
            other_data(&at_three_rates(&study("digits", seeds, loss, peak))).unwrap().status
        };
        assert_eq!(status(3, 1.9, 50.0), VerdictStatus::Confirmed);
        assert_eq!(status(2, 1.9, 50.0), VerdictStatus::Qualified, "two seeds");
        assert_eq!(status(1, 1.9, 50.0), VerdictStatus::SingleSeed);
        assert_eq!(status(3, 1.9, 95.0), VerdictStatus::Refuted, "logits alike");
        assert_eq!(status(3, 2.1, 50.0), VerdictStatus::Refuted, "a higher loss");
        let untuned = other_data(&study("digits", 3, 1.9, 50.0)).unwrap();
        assert_eq!(untuned.status, VerdictStatus::Qualified, "one learning rate");
        assert_eq!(other_data(&study("synthetic", 3, 1.9, 50.0)), None);
        assert_eq!(other_data(&study("digits", 0, 1.9, 50.0)), None);
    }
}
