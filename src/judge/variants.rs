//! The verdict on slopes over the lag: what they do to logits and to loss.

use super::claims::Claim;
use super::scale::of_runs;
use super::verdict::{Verdict, Word};
use crate::table::{Spread, Trainings, Variant, plural};

/// The peak of heads that are given a slope is to be under this share of the peak without (PREDICTIONS.md).
const OF_PEAK: f64 = 0.5;
/// Their loss may be this much above LS-attention's, in nats (PREDICTIONS.md).
const ABOVE_LS_NATS: f64 = 0.05;

/// Multi-head attention with learned positions and ALiBi's slopes beside the same without, seed by seed; none where
/// there is no such run. Intervals are Student's over seeds.
///
/// - *confirmed*: the whole interval of the ratio of the peaks lies under [`OF_PEAK`], and that of its loss less
///   `ls`'s under [`ABOVE_LS_NATS`]; three seeds or more;
/// - *refuted*: the whole interval of the one or of the other lies above; three seeds or more;
/// - *qualified*: anything between, or few seeds.
pub(crate) fn slopes(study: &Trainings, baselines: &[String]) -> Option<Verdict> {
    let variants = study.variants(baselines);
    let sloped = variants.iter().find(|variant| {
        let run = &variant.seeds[0];
        run.arm == "mhsa" && (&*run.positions, &*run.slopes) == ("learned", "alibi")
    })?;
    let seeds = sloped.log_peaks.len().min(sloped.losses.len());
    let word = match (sloped.peak_ratio(), sloped.loss_difference()) {
        (Some(peak), Some(loss)) if peak.is_at_most(OF_PEAK) && loss.is_at_most(ABOVE_LS_NATS) => {
            Word::Confirmed
        }
        (Some(peak), Some(loss))
            if peak.is_at_least(OF_PEAK) || loss.is_at_least(ABOVE_LS_NATS) =>
        {
            Word::Refuted
        }
        _ => Word::Qualified,
    };
    let peaks = |variant: &Variant<'_>| {
        let peaks = variant.seeds.iter().filter_map(|run| run.peak_max_abs_logit);
        Some(format!("{} {}", variant.seeds[0].run, Spread::of(peaks)?.shown(3)))
    };
    let beside = |variant: &Variant<'_>| {
        let ratio = variant
            .peak_ratio()
            .map(|ratio| format!("{} times {}'s", ratio.shown(2), variant.seeds[0].arm));
        let loss = variant.loss_difference().map(|loss| format!("loss {}", loss.shown(2)));
        let parts: Vec<String> = [ratio, loss].into_iter().flatten().collect();
        let told = peaks(variant)?;
        Some(if parts.is_empty() { told } else { format!("{told} ({})", parts.join(", ")) })
    };
    let unchanged_loss = |variant: &Variant<'_>| {
        let loss = variant.loss_difference().filter(|_| variant.seeds[0].arm != "ls");
        let told = peaks(variant)?;
        Some(loss.map_or(told.clone(), |loss| format!("{told} (loss {})", loss.shown(2))))
    };
    let is_unchanged = |variant: &&Variant<'_>| baselines.contains(&variant.seeds[0].run);
    let unchanged: Vec<String> =
        variants.iter().filter(is_unchanged).filter_map(unchanged_loss).collect();
    let changed = variants.iter().filter(|variant| !is_unchanged(variant));
    let measured = format!(
        "Peak max |QKᵀ/√d| in nats, what a slope adds not counted, and validation loss less ls's: {}; unchanged {}. {}, \
         95 % intervals, {}.",
        changed.filter_map(beside).collect::<Vec<_>>().join("; "),
        unchanged.join("; "),
        plural(seeds, "seed"),
        of_runs(sloped.seeds),
    );
    Some(Verdict::new(Claim::SlopesFreeLogits, measured, word, seeds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TrainingRun;

    fn judged(peak: f64, loss: f64, seeds: usize) -> Option<Word> {
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
        slopes(&study, &["mhsa".to_owned(), "ls".to_owned()]).map(|verdict| verdict.word)
    }

    #[test]
    fn every_word_has_its_rows() {
        assert_eq!(judged(10.0, 1.9, 3), Some(Word::Confirmed));
        assert_eq!(judged(10.0, 1.9, 2), Some(Word::Qualified), "few seeds");
        assert_eq!(judged(80.0, 1.9, 3), Some(Word::Refuted), "large logits");
        assert_eq!(judged(10.0, 2.1, 3), Some(Word::Refuted), "a loss above");
        assert_eq!(judged(10.0, 1.9, 0), None, "no such run");
    }
}
